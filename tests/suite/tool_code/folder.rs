//! The launcher's folder: where it is, and that it goes.

use std::fs;

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use rustix::process::Signal;
use serde_json::json;

use super::{execute, expect, fails, has, script, terminal};

#[test]
fn nothing_is_left_of_it() {
    let temporary = tempfile::tempdir().unwrap();
    let home = TidyHome::new();
    let _ = terminal(&home, &format!("export TMPDIR={}", temporary.path().display()));
    for (language, code) in [
        ("python", "import tempfile\nprint(len(__import__('os').listdir(tempfile.gettempdir())))"),
        ("bash", "ls \"$TMPDIR\" | wc -l; exit 3"),
        ("bash", "sleep 100"),
        ("python", "import time\ntime.sleep(100)"),
    ] {
        let value = execute(&home, &json!({ "language": language, "code": code, "timeout": 3 }));
        assert!(value["status"] == "timeout" || value["output"] == "1\n", "{value}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{language}: {code}");
    }
}

#[test]
fn a_temporary_folder_that_is_not_there_keeps_no_script_from_running() {
    let home = TidyHome::new();
    let _ = terminal(&home, "export TMPDIR=/nonexistent");
    for (language, program, code) in [
        ("python", "python3", "print('ran')"),
        ("bash", "bash", "echo ran"),
        ("node", "node", "console.log('ran')"),
    ] {
        if has(&home, program) {
            assert_eq!(script(&home, language, code)["output"], "ran\n", "{language}");
        }
    }
}

#[test]
fn a_script_that_ends_its_launcher_is_no_success() {
    let temporary = tempfile::tempdir().unwrap();
    let home = TidyHome::new();
    let _ = terminal(&home, &format!("export TMPDIR={}", temporary.path().display()));
    let code = "import os\nprint('so far', flush=True)\nos.kill(os.getppid(), 9)";
    let node = "console.log('so far'); process.kill(process.ppid, 'SIGKILL'); setInterval(() => {}, 1000)";
    for (language, program, code) in
        [("python", "python3", code), ("bash", "bash", "kill -9 $PPID; sleep 1"), ("node", "node", node)]
    {
        if has(&home, program) {
            let value = script(&home, language, code);
            assert!(fails(&value, "error", -1).contains("nobody knows"), "{value}");
            // What the launcher has made goes all the same.
            assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{language}");
        }
    }
}

#[test]
fn what_a_killed_host_has_left_goes_with_the_next_run() {
    let temporary = tempfile::tempdir().unwrap();
    let home = TidyHome::new();
    let _ = terminal(&home, &format!("export TMPDIR={}", temporary.path().display()));
    let left = || fs::read_dir(temporary.path()).unwrap().count();
    for (language, program, code) in [
        ("bash", "bash", "sleep MARK"),
        ("node", "node", "require('child_process').spawnSync('sleep', ['MARK'])"),
    ] {
        if !has(&home, program) {
            continue;
        }
        let mark = Mark::new();
        let arguments = json!({ "language": language, "code": code.replace("MARK", &mark.to_string()) });
        let call = Conversation::begin(
            home.command("hostel", &["tool", "execute_code", "--json", &arguments.to_string()]),
        );
        mark.appear(1);
        assert_eq!(left(), 1, "{language}");
        call.signal(Signal::KILL);
        mark.expect_gone();
        let _ = call.finish();
        // That of one that still runs stays.
        let beside = Mark::new();
        let arguments = json!({ "language": "bash", "code": format!("sleep {beside}") });
        let other = Conversation::begin(
            home.command("hostel", &["tool", "execute_code", "--json", &arguments.to_string()]),
        );
        beside.appear(1);
        expect(&script(&home, "bash", "echo 1"), "1\n");
        assert_eq!(left(), 1, "{language}");
        other.signal(Signal::TERM);
        let _ = other.finish();
        expect(&script(&home, "bash", "echo 1"), "1\n");
        assert_eq!(left(), 0, "{language}");
    }
}
