//! O-59 and O-60: no argument is code, and where the backend does not work nothing runs anywhere else.

use std::process::Command;

use hostel_tests::by_both_roads;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use serde_json::{Value, json};

use super::case::{Case, is};

by_both_roads! { o_59_no_argument_is_code }

fn o_59_no_argument_is_code(road: Road) {
    let case = Case::by(road);
    is(&case.run("echo hi", &json!({ "workdir": "." })), 0, "hi");
    for dir in [
        "nodir; touch pwned1",
        "$(touch pwned2)",
        "`touch pwned3`",
        "a\ntouch pwned4",
        "~/;touch pwned5",
        "-",
        "--help",
    ] {
        for background in [false, true] {
            let value = case.run("echo hi", &json!({ "workdir": dir, "background": background }));
            // What may be a directory's name is looked for.
            let code = if dir.starts_with('-') { 126 } else { -1 };
            assert!(value["error"].is_string() && value["exit_code"] == code, "{dir}: {value}");
        }
    }
    assert!(case.read("$(touch pwned10)")["error"].is_string());
    case.write("x'; touch pwned11; '", "t");
    let value = case.patch("x'; touch pwned11; '", "t", "$(touch pwned14)");
    assert_eq!(value["success"], true, "{value}");
    let value = case.tool("search_files", &json!({ "pattern": "'; touch pwned12; '", "path": "." }));
    assert_eq!(json!([value["total_count"], value["error"]]), json!([0, null]), "{value}");
    for arguments in [
        json!({ "pattern": "x", "path": "'; touch pwned15; '" }),
        json!({ "pattern": "x", "file_glob": "$(touch pwned16)" }),
        json!({ "pattern": "$(touch pwned17)", "target": "files" }),
    ] {
        let _ = case.tool("search_files", &arguments);
    }
    let value = case.tool_of("s'; touch pwned13; '", "terminal", &json!({ "command": "echo hi" }));
    is(&value, 0, "hi");
    let found = Command::new("find").arg(case.path()).args(["-name", "pwned*"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    case.x("ls -A", 0, "x'; touch pwned11; '");
}

#[test]
fn o_60_where_the_backend_does_not_work_nothing_runs() {
    for (backend, named) in [("acmebox", "acmebox"), ("dokcer", "dokcer"), ("''", "terminal.backend")] {
        let home = TidyHome::new();
        home.set_config(format!("terminal:\n  backend: {backend}\n"));
        for (tool, arguments) in calls() {
            let words = ["tool", tool, "--json", &arguments.to_string()];
            let ran = home.hostel(&words);
            assert!(ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains(named), "{tool}: {ran:?}");
        }
        // Clients show what a server has said that does not start.
        let ran = home.hostel(&["mcp"]);
        assert!(ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains(named), "{ran:?}");
        assert!(!home.path().join("where.txt").exists());
    }
}

by_both_roads! { o_60_nor_where_it_has_no_credentials_or_was_switched_off }

fn o_60_nor_where_it_has_no_credentials_or_was_switched_off(road: Road) {
    for switched_off in [false, true] {
        let home = TidyHome::on("acmebox", "process").unwrap().by(road).with("ACMEBOX_TOKEN", "");
        if switched_off {
            let _ = home.hostel(&["plugins", "disable", "acmebox"]).expect(0);
        }
        for (tool, arguments) in calls() {
            let value = home.tool(tool, &arguments);
            assert!(
                value["error"].as_str().is_some_and(|error| error.contains("acmebox")),
                "{tool}: {value}"
            );
        }
        assert!(!home.path().join("where.txt").exists());
    }
}

/// A call of each tool that runs something.
fn calls() -> [(&'static str, Value); 6] {
    let command = "echo ran > where.txt; hostname";
    [
        ("terminal", json!({ "command": command })),
        ("terminal", json!({ "command": command, "background": true })),
        ("write_file", json!({ "path": "where.txt", "content": "ran\n" })),
        ("patch", json!({ "mode": "patch", "patch": "*** Add File: where.txt\n+ran\n" })),
        ("read_file", json!({ "path": "config.yaml" })),
        ("search_files", json!({ "pattern": "backend" })),
    ]
}
