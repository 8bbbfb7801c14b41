//! O-29 to O-32: the file tools, with the bytes of the cases.

use hostel_tests::tools::Road;
use hostel_tests::{by_both_roads, is_root};
use serde_json::{Value, json};

use super::case::Case;

by_both_roads! {
    o_29_no_byte_changes_that_was_not_asked_for o_30_a_near_miss_is_no_match o_31_what_a_file_is_stays
    o_32_patterns_and_names_that_look_like_options
}

fn o_29_no_byte_changes_that_was_not_asked_for(road: Road) {
    let case = Case::by(road);
    case.x("printf '\\357\\273\\277alpha\\r\\nbeta\\r\\ngamma' > f.txt", 0, "");
    assert_eq!(case.patch("f.txt", "beta", "BETA")["success"], true);
    assert_eq!(case.patch("f.txt", "alpha\nBETA", "alpha\nBETA2")["success"], true);
    assert_eq!(case.bytes("f.txt"), b"\xef\xbb\xbfalpha\r\nBETA2\r\ngamma");
    assert_eq!(case.read("f.txt")["content"], "1|alpha\n2|BETA2\n3|gamma");
    case.x("printf 'one\\ntwo\\n\\n' > g.txt", 0, "");
    for (old, new, bytes) in [("one", "ONE", b"ONE\ntwo\n\n"), ("ONE", "one", b"one\ntwo\n\n")] {
        assert_eq!(case.patch("g.txt", old, new)["success"], true);
        assert_eq!(case.bytes("g.txt"), bytes);
    }
    case.write("f.txt", "x\ny\n");
    assert_eq!(case.read("f.txt")["content"], "1|x\n2|y");
    // The rule: mark and line ends of a file stay.
    assert_eq!(case.bytes("f.txt"), b"\xef\xbb\xbfx\r\ny\r\n");
}

fn o_30_a_near_miss_is_no_match(road: Road) {
    let case = Case::by(road);
    let text = "def a():\n    retry(2)\n    done()\n\ndef b():\n    retry(2)\n    done()\n";
    case.x(
        "printf 'def a():\\n    retry(2)\\n    done()\\n\\ndef b():\\n    retry(2)\\n    done()\\n' > m.py",
        0,
        "",
    );
    let value = case.patch("m.py", "    retry(9)\n    done()", "    retry(0)\n    done()");
    assert!(value["success"] == false && value["error"].is_string(), "{value}");
    assert_eq!(case.bytes("m.py"), text.as_bytes());
    let value = case.patch("m.py", "retry(2)", "retry(3)");
    assert!(value["error"].as_str().unwrap().contains("2 times, on lines 2 and 6"), "{value}");
    assert_eq!(case.bytes("m.py"), text.as_bytes());
    let new = "def b():  # $& \\1 \\n ${x} \\\" %s";
    assert_eq!(case.patch("m.py", "def b():", new)["success"], true);
    assert_eq!(case.bytes("m.py"), text.replace("def b():", new).as_bytes());
}

fn o_31_what_a_file_is_stays(road: Road) {
    let case = Case::by(road);
    case.x("umask 022", 0, "");
    case.write("new.txt", "x\n");
    case.x("stat -c %a new.txt", 0, "644");
    case.x("printf '#!/bin/sh\\necho 1\\n' > s.sh; chmod 755 s.sh", 0, "");
    assert_eq!(case.patch("s.sh", "1", "2")["success"], true);
    case.x("stat -c %a s.sh; ./s.sh", 0, "755\n2");
    case.x("echo t > target.txt; ln -s target.txt link.txt", 0, "");
    case.write("link.txt", "via link\n");
    case.x("readlink link.txt; cat target.txt", 0, "target.txt\nvia link");
    case.x("echo h > h1; ln h1 h2", 0, "");
    case.write("h1", "new\n");
    // The rule: all names of a file see what is written by one of them.
    case.x("cat h2", 0, "new");
    case.x("mkdir ro && echo k > ro/k && chmod 555 ro", 0, "");
    case.write("ro/k", "z\n");
    case.x("cat ro/k; ls -A ro; chmod 755 ro", 0, "z\nk");
    if is_root() {
        case.x("echo one > owned; chown 1234 owned", 0, "");
        assert_eq!(case.patch("owned", "one", "two")["success"], true);
        case.x("stat -c %u owned; cat owned", 0, "1234\ntwo");
    }
}

fn o_32_patterns_and_names_that_look_like_options(road: Road) {
    let case = Case::by(road);
    let script = "printf -- '- [ ] task\\ntemp is -77\\nsee --pdf-engine\\n' > todo.md\n\
                  printf 'needle\\n' > -n.txt; printf 'x\\nneedle\\n' > 'a:12:b.txt'; printf 'needle\\n' > $'two\\nlines.txt'";
    case.x(script, 0, "");
    let search = |arguments: &Value| case.tool("search_files", arguments);
    let places = |arguments: Value| {
        let value = search(&arguments);
        let matches = value["matches"].as_array().unwrap_or_else(|| panic!("{value}"));
        let place =
            |found: &Value| (found["path"].as_str().unwrap().to_owned(), found["line"].as_u64().unwrap());
        let mut places: Vec<_> = matches.iter().map(place).collect();
        places.sort();
        places
    };
    let at = |path: &str, line| (path.to_owned(), line);
    for (pattern, line) in [("-77", 2), ("--pdf-engine", 3), ("- \\[ \\]", 1)] {
        assert_eq!(places(json!({ "pattern": pattern })), [at("todo.md", line)]);
    }
    let needles = [at("-n.txt", 1), at("a:12:b.txt", 2), at("two\nlines.txt", 1)];
    assert_eq!(places(json!({ "pattern": "needle", "path": "." })), needles);
    assert_eq!(places(json!({ "pattern": "needle", "path": "-n.txt" })), [at("-n.txt", 1)]);
    let value = search(&json!({ "pattern": "[", "path": "." }));
    assert!(value["error"].as_str().unwrap().contains("`pattern`"), "{value}");
}
