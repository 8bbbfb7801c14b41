//! The tool `patch`, as an agent sees it.
//!
//! Files are put there and looked at by commands of the session, so that it does not matter where a backend has them.

mod at_once;
mod several;

use std::fs;

use hostel_tests::tools::Road;
use hostel_tests::{Home, by_both_roads, finish, is_root, on_every_backend_by_both_roads};
use serde_json::{Value, json};

by_both_roads! {
    what_a_file_is_stays_but_for_what_it_holds the_owner_stays_when_root_edits
    small_differences_are_forgiven_with_a_warning_and_others_are_not
    escapes_of_the_call_do_not_get_into_the_file hunks_are_found_by_whole_lines_and_what_stands_before_them
    what_was_written_is_put_back_when_a_later_file_cannot_be what_cannot_be_edited_is_said_with_what_to_do
    the_policy_is_not_edited_by_whom_it_binds
}

/// Calls the tool.
#[track_caller]
fn patch(home: &Home, arguments: &Value) -> Value {
    let object = home.tool("patch", arguments);
    assert_eq!(object["success"], object["error"].is_null(), "{object}");
    object
}

/// Replaces one text by another, which must go well.
#[track_caller]
fn replace(home: &Home, path: &str, old: &str, new: &str) -> Value {
    let object = patch(home, &json!({ "path": path, "old_string": old, "new_string": new }));
    assert!(object["error"].is_null(), "{object}");
    object
}

/// Requires that replacing is refused, and returns why.
#[track_caller]
fn refused(home: &Home, path: &str, old: &str, new: &str) -> Value {
    let object = patch(home, &json!({ "path": path, "old_string": old, "new_string": new }));
    assert!(object["error"].is_string() && object.get("diff").is_none(), "{object}");
    object
}

/// Applies a patch of several files, which must go well.
#[track_caller]
fn apply(home: &Home, text: &str) -> Value {
    let object = patch(home, &json!({ "mode": "patch", "patch": text }));
    assert!(object["error"].is_null(), "{object}");
    object
}

fn error(object: &Value) -> &str {
    object["error"].as_str().unwrap()
}

fn put(home: &Home, name: &str, bytes: impl AsRef<[u8]>) {
    let command = home.command("hostel", &["exec", "--stdin", "--", &format!("cat > '{name}'")]);
    let _ = finish(command, bytes.as_ref()).expect(0);
}

#[track_caller]
fn get(home: &Home, name: &str) -> Vec<u8> {
    home.exec(&format!("cat '{name}'")).expect(0).stdout
}

#[track_caller]
fn assert_holds(home: &Home, name: &str, bytes: impl AsRef<[u8]>) {
    let (found, wanted) = (get(home, name), bytes.as_ref());
    assert_eq!(found, wanted, "{:?}", String::from_utf8_lossy(&found));
}

/// Makes a home whose session stands in an empty folder.
fn in_folder(road: Road) -> Home {
    let home = Home::new().by(road);
    let _ = home.exec("mkdir w && cd w").expect(0);
    home
}

const M: &str = "def a():\n    retry(2)\n    done()\n\ndef b():\n    retry(2)\n    done()\n";

on_every_backend_by_both_roads! {
    // O-29
    fn an_edit_changes_no_byte_that_was_not_asked_for(home) {
        put(home, "f.txt", b"\xef\xbb\xbfalpha\r\nbeta\r\ngamma");
        let object = replace(home, "f.txt", "beta", "BETA");
        assert_eq!((&object["files_modified"], &object["strategy"]), (&json!(["f.txt"]), &json!("exact")));
        let diff = object["diff"].as_str().unwrap();
        assert!(diff.starts_with("--- a/f.txt\n+++ b/f.txt\n@@ "), "{diff}");
        assert!(diff.contains("\n-beta\n+BETA\n") && !diff.contains('\r') && !diff.contains('\u{feff}'), "{diff}");
        replace(home, "f.txt", "alpha\nBETA", "alpha\nBETA2");
        assert_holds(home, "f.txt", b"\xef\xbb\xbfalpha\r\nBETA2\r\ngamma");
        replace(home, "f.txt", "alpha\r\nBETA2", "alpha\r\nnew\r\nBETA2");
        replace(home, "f.txt", "gamma\n", "GAMMA\n");
        assert_holds(home, "f.txt", b"\xef\xbb\xbfalpha\r\nnew\r\nBETA2\r\nGAMMA");

        put(home, "g.txt", "one\ntwo\n\n");
        replace(home, "g.txt", "one", "ONE");
        replace(home, "g.txt", "ONE", "one");
        assert_holds(home, "g.txt", "one\ntwo\n\n");

        put(home, "mixed.txt", b"a\r\nb\na\nb\r\ncaf\xe9\n");
        replace(home, "mixed.txt", "b\na", "B\nx\na");
        assert_holds(home, "mixed.txt", b"a\r\nB\nx\na\nb\r\ncaf\xe9\n");
    }

    fn what_is_in_utf_16_is_edited_as_text_and_stays_in_it(home) {
        put(home, "u.txt", b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0");
        let object = replace(home, "u.txt", "b\n", "é\n");
        assert!(object["diff"].as_str().unwrap().contains("\n-b\n+é\n"), "{object}");
        assert_holds(home, "u.txt", b"\xff\xfea\0\r\0\n\0\xe9\0\r\0\n\0");
        let object = home.tool("write_file", &json!({ "path": "u.txt", "content": "x\n" }));
        assert!(object["error"].is_null() && object["bytes_written"] == 8, "{object}");
        assert_holds(home, "u.txt", b"\xff\xfex\0\r\0\n\0");
        assert_eq!(home.tool("read_file", &json!({ "path": "u.txt" }))["content"], "1|x");
    }

    // O-30
    fn a_near_miss_is_refused_and_new_text_is_taken_as_it_is(home) {
        put(home, "m.py", M);
        let object = refused(home, "m.py", "    retry(9)\n    done()", "    retry(0)\n    done()");
        assert!(error(&object).contains("`old_string` is not in `m.py`"), "{object}");
        assert_eq!(object["did_you_mean"], "2|    retry(2)\n3|    done()");
        let object = refused(home, "m.py", "retry(2)", "retry(3)");
        assert!(error(&object).contains("2 times, on lines 2 and 6"), "{object}");
        assert_holds(home, "m.py", M);

        let new = "def b():  # $& \\1 \\n ${x} \\\" %s";
        replace(home, "m.py", "def b():", new);
        assert_holds(home, "m.py", M.replace("def b():", new));
        put(home, "n.py", M);
        let all = json!({ "path": "n.py", "old_string": "retry(2)", "new_string": "$0\\n&", "replace_all": true });
        assert_eq!(patch(home, &all)["replacements"], 2);
        assert_holds(home, "n.py", M.replace("retry(2)", "$0\\n&"));
    }

    fn a_patch_of_several_files_is_applied_whole_or_not_at_all(home) {
        let start = || {
            put(home, "a.txt", "one\r\ntwo\r\n");
            put(home, "b.txt", "x\ny");
            put(home, "c.txt", "c\n");
        };
        let good = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n+3\n*** Add File: new/d.txt\n+d\n\
                    *** Delete File: c.txt\n*** Update File: b.txt\n*** Move to: e.txt\n@@\n-y\n+z\n";
        for bad in [
            "*** Update File: a.txt\n@@\n-nothing\n+n\n",
            "*** Update File: missing.txt\n@@\n-x\n+y\n",
            "*** Add File: a.txt\n+a\n",
            "*** Delete File: missing.txt\n",
            "*** Update File: new/d.txt\n*** Move to: a.txt\n",
            "*** Update File: ../b.txt\n@@\n-x\n",
            "*** Update File: a.txt\n@@\nx\n",
            "*** Update File: a.txt\n@@\n+only added\n",
        ] {
            start();
            let object = patch(home, &json!({ "mode": "patch", "patch": format!("{good}{bad}*** End Patch\n") }));
            assert!(error(&object).contains("line "), "{bad} {object}");
            let left = home.exec("cat a.txt b.txt c.txt; ls -d new e.txt 2>/dev/null").text();
            assert_eq!(left, "one\r\ntwo\r\nx\nyc\n", "{bad}");
        }
        let object = apply(home, &format!("{good}*** End Patch\n"));
        assert_eq!(object["files_modified"], json!(["a.txt"]));
        assert_eq!(object["files_created"], json!(["new/d.txt", "e.txt"]));
        assert_eq!(object["files_deleted"], json!(["c.txt", "b.txt"]));
        assert_holds(home, "a.txt", "one\r\n2\r\n3\r\n");
        assert_holds(home, "new/d.txt", "d\n");
        assert_holds(home, "e.txt", "x\nz");
        assert_eq!(home.exec("ls b.txt c.txt 2>/dev/null | wc -l").text().trim(), "0");
    }
}

// O-31
fn what_a_file_is_stays_but_for_what_it_holds(road: Road) {
    let home = in_folder(road);
    let _ = home.exec("umask 022; printf '#!/bin/sh\\necho 1\\n' > s.sh; chmod 755 s.sh").expect(0);
    let _ = home.exec("echo t > target.txt; ln -s target.txt link.txt").expect(0);
    replace(&home, "s.sh", "1", "2");
    assert_eq!(home.exec("stat -c %a s.sh; ./s.sh").expect(0).text(), "755\n2\n");
    replace(&home, "link.txt", "t", "via link");
    assert_eq!(home.exec("readlink link.txt; cat target.txt").expect(0).text(), "target.txt\nvia link\n");
    apply(
        &home,
        "*** Update File: s.sh\n*** Move to: t.sh\n@@\n-echo 2\n+echo 3\n*** Add File: new.txt\n+n\n",
    );
    assert_eq!(home.exec("stat -c %a t.sh; ./t.sh; cat new.txt").expect(0).text(), "755\n3\nn\n");
    assert_eq!(home.exec("ls -A").expect(0).text(), "link.txt\nnew.txt\nt.sh\ntarget.txt\n");
}

// O-31
fn the_owner_stays_when_root_edits(road: Road) {
    if !is_root() {
        return;
    }
    let home = in_folder(road);
    let _ = home.exec("echo one > f; chown 1234:1235 f; chmod 640 f").expect(0);
    replace(&home, "f", "one", "two");
    assert_eq!(home.exec("stat -c '%u %g %a' f; cat f").expect(0).text(), "1234 1235 640\ntwo\n");
}

// O-30, and what else models misremember.
fn small_differences_are_forgiven_with_a_warning_and_others_are_not(road: Road) {
    let home = in_folder(road);
    put(&home, "w.py", "class A:\n\tdef run(self):\n\t\tsay(“hi”)  # one\n\t\tstop()\n");
    let old = "def run(self):\n    say(\"hi\")  # one\n";
    let object = replace(&home, "w.py", old, "def run(self):\n    say(\"hi\")  # two\n    go()\n");
    assert_eq!(object["strategy"], "unicode_normalized");
    assert!(object["warning"].as_str().unwrap().contains("check the diff"), "{object}");
    assert_holds(&home, "w.py", "class A:\n\tdef run(self):\n\t\tsay(“hi”)  # two\n\t\tgo()\n\t\tstop()\n");

    let block = "fn start() {\n    // some old words\n    load(1);\n    check();\n    run();\n}\n";
    put(&home, "d.rs", block);
    let old = block.replace("some old words", "quite other ones");
    let object = replace(&home, "d.rs", old.trim_end(), &old.trim_end().replace("check()", "verify()"));
    assert_eq!(object["strategy"], "block_anchor");
    assert_holds(&home, "d.rs", block.replace("check()", "verify()"));

    put(&home, "d.rs", block);
    let old = block.replace("load(1)", "load(2)");
    for new in [old.replace("load(2)", "load(3)"), old.replace("run()", "walk()")] {
        let object = refused(&home, "d.rs", old.trim_end(), new.trim_end());
        assert!(error(&object).contains("as it was given") && object["did_you_mean"].is_string(), "{object}");
    }
    let old = block.replace("check()", "nothing(of, the, kind)");
    refused(&home, "d.rs", old.trim_end(), block.replace("check()", "verify()").trim_end());
    assert_holds(&home, "d.rs", block);

    let calls = "    run();\n    ran();\n    maximum(1);\n\n\n";
    put(&home, "c.rs", calls);
    for old in [
        "Run();",
        "rum();",
        "run ();",
        "  run();\n  ran(0);",
        "imum(1) ;",
        "maximum(2);",
        "\n\n\n\n",
        "}\nrun();",
    ] {
        refused(&home, "c.rs", old, "x();");
    }
    assert_holds(&home, "c.rs", calls);
}

fn escapes_of_the_call_do_not_get_into_the_file(road: Road) {
    let home = in_folder(road);
    put(&home, "e.js", "say(\"hi\");\nlog(\"a\\n\");\n");
    let object = refused(&home, "e.js", r#"say(\"hi\");"#, r#"say(\"ho\");"#);
    assert!(error(&object).contains("backslash"), "{object}");
    let object = replace(&home, "e.js", r#"say(\"hi\");"#, "say(1);");
    assert_eq!(object["strategy"], "escape_normalized");
    // What is in the file may be in the new text.
    replace(&home, "e.js", r#"log("a\n");"#, r#"log("b\n\t\"");"#);
    assert_holds(&home, "e.js", "say(1);\nlog(\"b\\n\\t\\\"\");\n");
}

fn hunks_are_found_by_whole_lines_and_what_stands_before_them(road: Road) {
    let home = in_folder(road);
    put(&home, "m.py", M);
    let change = "-    retry(2)\n+    retry(3)\n";
    for (hunk, reason) in [
        (format!("@@\n{change}"), "the hunk on line 2 of `patch` is in `m.py` 2 times, on lines 2 and 6"),
        (format!("@@ def c():\n{change}"), "`@@ def c():`"),
        ("@@\n-retry(9)\n+retry(3)\n".to_owned(), "is not in `m.py`"),
        // It is in a line, but no line.
        ("@@\n-try(2)\n+try(3)\n".to_owned(), "is not in `m.py`"),
    ] {
        let text = format!("*** Update File: m.py\n{hunk}");
        let object = patch(&home, &json!({ "mode": "patch", "patch": text }));
        assert!(error(&object).contains(reason), "{object}");
    }
    assert_holds(&home, "m.py", M);
    // Fenced, and with the line ends of another system.
    let fenced =
        format!("```\n*** Begin Patch\n*** Update File: m.py\n@@ def b():\n{change}*** End Patch\n```\n");
    apply(&home, &fenced.replace('\n', "\r\n"));
    let second = M.replace("b():\n    retry(2)", "b():\n    retry(3)");
    assert_holds(&home, "m.py", &second);
    let change = |from, to| format!("@@\n-    retry({from})\n+    retry({to})\n");
    apply(
        &home,
        &format!("*** Update File: m.py\n{}*** Update File: ./m.py\n{}", change(3, 4), change(4, 5)),
    );
    assert_holds(&home, "m.py", second.replace("retry(3)", "retry(5)"));
}

fn what_was_written_is_put_back_when_a_later_file_cannot_be(road: Road) {
    let home = in_folder(road);
    put(&home, "a.txt", "one\n");
    put(&home, "file", "f\n");
    let text = "*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: file/below.txt\n+b\n";
    let object = patch(&home, &json!({ "mode": "patch", "patch": text }));
    assert!(error(&object).contains("below.txt"), "{object}");
    assert_eq!(home.exec("cat a.txt file; ls -A").expect(0).text(), "one\nf\na.txt\nfile\n");
}

fn what_cannot_be_edited_is_said_with_what_to_do(road: Road) {
    let home = in_folder(road);
    put(&home, "bin", b"a\0b");
    put(&home, "m.py", M);
    let _ = home.exec("mkdir folder").expect(0);
    for (arguments, reason) in [
        (json!({ "path": "none.txt", "old_string": "a", "new_string": "b" }), "`none.txt`"),
        (json!({ "path": "folder", "old_string": "a", "new_string": "b" }), "folder"),
        (json!({ "path": "bin", "old_string": "a", "new_string": "b" }), "binary"),
        (json!({ "path": "m.py", "old_string": "", "new_string": "b" }), "`write_file`"),
        (json!({ "path": "m.py", "old_string": "def a", "new_string": "def a" }), "the same"),
        (json!({ "path": "m.py", "old_string": "def a" }), "`new_string` is missing"),
        (json!({ "old_string": "def a", "new_string": "def b" }), "`path` is missing"),
        (json!({ "mode": "patch" }), "`patch` is missing"),
        (json!({ "mode": "patch", "patch": "fix it, please" }), "line 1"),
        (json!({ "path": "m.py", "old": "def a", "new_string": "" }), "`old_string`"),
    ] {
        let object = patch(&home, &arguments);
        assert!(error(&object).contains(reason), "{arguments} {object}");
    }
    assert_holds(&home, "m.py", M);
    let first = "def a():\n    retry(2)\n    done()\n\n";
    let object =
        patch(&home, &json!({ "path": "m.py", "old_string": first, "new_string": "", "replace_all": null }));
    assert!(object["error"].is_null(), "{object}");
    assert_holds(&home, "m.py", "def b():\n    retry(2)\n    done()\n");
}

// O-28
fn the_policy_is_not_edited_by_whom_it_binds(road: Road) {
    let home = in_folder(road);
    let text = "approvals:\n  mode: ask\n";
    home.set_config(text);
    let config = home.path().join("config.yaml");
    let config = config.to_str().unwrap();
    let _ = home.exec(&format!("ln -s '{config}' note.txt")).expect(0);
    for path in [config, "../config.yaml", "note.txt"] {
        refused(&home, path, "mode: ask", "mode: off");
        assert_eq!(home.config(), text, "{path}");
    }
    for patched in [
        "*** Update File: note.txt\n@@\n-  mode: ask\n+  mode: off\n".to_owned(),
        format!("*** Update File: {config}\n@@\n-  mode: ask\n+  mode: off\n"),
        format!("*** Update File: {config}\n*** Move to: kept.yaml\n"),
        format!("*** Delete File: {config}\n"),
    ] {
        let object = patch(&home, &json!({ "mode": "patch", "patch": patched }));
        assert!(object["error"].is_string(), "{object}");
        assert!(fs::exists(config).unwrap() && home.config() == text, "{patched}");
    }
}
