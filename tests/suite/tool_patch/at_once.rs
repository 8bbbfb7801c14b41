//! Edits of one file at the same moment, and what is thought of a file after one.

use hostel_tests::by_both_roads;
use hostel_tests::tools::Road;
use serde_json::{Value, json};

use super::{apply, assert_holds, in_folder, put, replace};

by_both_roads! { edits_at_once_of_one_file_are_all_made files_written_at_once_are_all_written what_is_written_is_judged_and_not_refused }

/// A client that makes several calls at once edits one file by more than one of them, and so do several programs.
fn edits_at_once_of_one_file_are_all_made(road: Road) {
    let home = in_folder(road);
    let lines = (0..12).map(|number| format!("old {number};\n")).collect::<Vec<_>>().concat();
    put(&home, "f.txt", lines.as_bytes());
    let edit = |number| {
        let (old, new) = (format!("old {number};"), format!("new {number};"));
        if number % 3 == 0 {
            let hunk = format!(
                "*** Update File: f.txt\n@@\n-{old}\n+{new}\n*** Add File: f{number}.txt\n+{number}\n"
            );
            return json!({ "mode": "patch", "patch": hunk });
        }
        json!({ "path": "f.txt", "old_string": old, "new_string": new })
    };
    let calls: Vec<Value> = (0..12).map(edit).collect();
    for object in home.tool_at_once("patch", &calls) {
        assert_eq!(object["success"], true, "{object}");
    }
    assert_holds(&home, "f.txt", lines.replace("old", "new"));
    assert_eq!(home.exec("cat f0.txt f3.txt f6.txt f9.txt").expect(0).text(), "0\n3\n6\n9\n");
    // Of those that exclude each other one is made, and the others are told that there is nothing any more.
    let calls: Vec<Value> = (0..4)
        .map(|number| json!({ "path": "f.txt", "old_string": "new 1;", "new_string": format!("mine {number};") }))
        .collect();
    let made = home.tool_at_once("patch", &calls);
    let refused = made.iter().filter_map(|object| object["error"].as_str()).collect::<Vec<_>>();
    assert!(
        refused.len() == 3 && refused.iter().all(|error| error.contains("is not in `f.txt`")),
        "{made:?}"
    );
}

/// A whole file does not depend on what somebody else has written just before.
fn files_written_at_once_are_all_written(road: Road) {
    let home = in_folder(road);
    for name in ["new.txt", "new.txt", "other.txt"] {
        let calls: Vec<Value> =
            (0..6).map(|number| json!({ "path": name, "content": format!("{number}\n") })).collect();
        for object in home.tool_at_once("write_file", &calls) {
            assert!(object["error"].is_null() && object["bytes_written"] == 2, "{object}");
        }
    }
}

// What is the syntax of a file after an edit is told, whatever it is.
fn what_is_written_is_judged_and_not_refused(road: Road) {
    let home = in_folder(road);
    put(&home, "a.json", "{\"a\": 1}\n");
    put(&home, "p.py", "x = 1\n");
    put(&home, "n.txt", "{\n");
    let broken = replace(&home, "a.json", "1", "1,,")["lint"].clone();
    assert_eq!(broken["status"], "error", "{broken}");
    assert!(broken["output"].as_str().unwrap().contains("no valid JSON"), "{broken}");
    let still = replace(&home, "a.json", "1,,", "2,,")["lint"].clone();
    assert!(still["output"].as_str().unwrap().contains("was not valid either"), "{still}");
    assert_eq!(replace(&home, "a.json", "2,,", "2")["lint"], json!({ "status": "ok" }));
    assert_eq!(replace(&home, "n.txt", "{", "{{")["lint"]["status"], "skipped");
    let python = replace(&home, "p.py", "x = 1", "x = = 1")["lint"].clone();
    assert!(python["status"] == "error" && python["output"].as_str().unwrap().contains("line 1"), "{python}");
    let several = apply(
        &home,
        "*** Update File: p.py\n@@\n-x = = 1\n+x = 2\n*** Add File: c.yaml\n+a: [1\n*** Add File: d.toml\n+a = 1\n\
         *** Update File: n.txt\n*** Move to: m.txt\n*** Delete File: a.json\n",
    );
    let lint = &several["lint"];
    assert_eq!((&lint["p.py"], &lint["d.toml"]), (&json!({ "status": "ok" }), &json!({ "status": "ok" })));
    assert_eq!(
        (&lint["c.yaml"]["status"], lint.as_object().unwrap().len()),
        (&json!("error"), 3),
        "{several}"
    );
    assert_holds(&home, "c.yaml", "a: [1\n");
}
