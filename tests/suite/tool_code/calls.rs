//! What a script may call, who ends it, and who hears it.

use std::fs;
use std::sync::{Arc, Mutex};

use hostel::tools::{Call, Listener, call};
use hostel::{Host, Options};
use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use hostel_tests::{Home, finish};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{execute, expect, fails, result, script};

#[test]
fn what_cannot_be_meant_is_refused() {
    let home = TidyHome::new();
    for (arguments, part) in [
        (json!({ "code": " \n" }), "`code` is empty"),
        (json!({ "code": "x", "language": "ruby" }), "`python`, `bash` or `node`"),
        (json!({}), "missing field `code`"),
        (json!({ "code": "x", "timeout": -1 }), "`timeout`"),
        (json!({ "code": "x", "path": "a" }), "unknown field `path`"),
    ] {
        let value = execute(&home, &arguments);
        assert!(fails(&value, "error", -1).contains(part), "{value}");
    }
    let value = execute(&home, &json!({ "code": "echo x", "language": "bash", "timeout": 1000 }));
    expect(&value, "x\n");
    assert!(value["warning"].as_str().unwrap().contains("300 seconds"), "{value}");
    let code = "for call in 'execute_code {}' 'process {\"action\": \"list\"}' 'terminal {\"command\": \"echo ran > ran\", \"background\": true}' \
                'terminal {' 'terminal {\"command\": \"sleep 9 &\"}'; do hostel_tools \"${call%% *}\" \"${call#* }\" && echo wrong; done; :";
    let value = script(&home, "bash", code);
    let answers: Vec<Value> =
        value["output"].as_str().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (answer, part) in answers.iter().zip([
        "cannot call `execute_code`",
        "cannot call `process`",
        "`background`",
        "no JSON",
        "would leave",
    ]) {
        assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
    }
    assert!(answers.len() == 5 && !home.path().join("ran").exists(), "{value}");
}

#[test]
fn a_script_has_no_longer_command_than_the_foreground_allows() {
    let home = Home::new().with("TERMINAL_MAX_FOREGROUND_TIMEOUT", "1");
    let mark = Mark::new();
    let code = format!("hostel_tools terminal '{{\"command\": \"sleep {mark}\", \"timeout\": 60}}'");
    let value = script(&home, "bash", &code);
    let answer: Value = serde_json::from_str(value["output"].as_str().unwrap()).unwrap();
    assert_eq!((&answer["exit_code"], answer.get("session_id")), (&json!(124), None), "{answer}");
    mark.expect_gone();
}

#[test]
fn a_script_that_is_interrupted_ends() {
    let home = TidyHome::new();
    let (mark, called) = (Mark::new(), Mark::new());
    let code =
        format!("echo half; sleep {mark} & hostel_tools terminal '{{\"command\": \"sleep {called}\"}}'");
    let arguments = json!({ "code": code, "language": "bash" }).to_string();
    let call = Conversation::begin(home.command("hostel", &["tool", "execute_code", "--json", &arguments]));
    mark.appear(1);
    called.appear(1);
    call.signal(Signal::INT);
    let value = result(&call.finish());
    assert!(
        fails(&value, "interrupted", 130).contains("cancelled") && value["output"] == "half\n",
        "{value}"
    );
    mark.expect_gone();
    called.expect_gone();
}

#[test]
fn what_is_printed_is_heard_as_it_comes_and_has_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let home = hostel::home::Home::at(dir.path().join("home")).unwrap();
    let host = Host::open(Options { home: Some(home), backend: Some("local".into()) }).unwrap();
    let session = host.session("here").unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let (theirs, go) = (Arc::clone(&heard), dir.path().join("go"));
    // The script goes on once its first line was heard.
    let listener: Listener = Arc::new(move |bytes: &[u8]| {
        theirs.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        fs::write(&go, "").unwrap();
    });
    let token = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let code = format!(
        "echo first {token}\nwhile [ ! -e {}/go ]; do sleep 0.05; done\necho second >&2\nhostel_tools terminal '{{\"command\": \"echo inner\"}}' >/dev/null",
        dir.path().display()
    );
    let with = Call::new().unwrap().with_listener(listener);
    let value = call(&session, "execute_code", json!({ "code": code, "language": "bash" }), &with).value;
    expect(&value, "first [redacted GitHub token]\n");
    assert_eq!((&value["stderr"], &value["tool_calls_made"]), (&json!("second\n"), &json!(1)), "{value}");
    assert_eq!(*heard.lock().unwrap(), "first [redacted GitHub token]\nsecond\n");
    assert!(host.close().is_empty());
}

#[test]
fn a_session_runs_many_also_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let home = hostel::home::Home::at(dir.path().join("home")).unwrap();
    let host = Host::open(Options { home: Some(home), backend: Some("local".into()) }).unwrap();
    let session = host.session("here").unwrap();
    let run = |number: u32| {
        let code =
            format!("hostel_tools terminal '{{\"command\": \"echo $((6 * {number}))\"}}'; echo {number}");
        let with = Call::new().unwrap();
        let value = call(&session, "execute_code", json!({ "code": code, "language": "bash" }), &with).value;
        let output = value["output"].as_str().unwrap();
        assert_eq!(value["status"], "success", "{value}");
        assert!(output.contains(&format!("\"output\":\"{}\\n\"", 6 * number)), "{value}");
        assert!(output.ends_with(&format!("}}\n{number}\n")), "{value}");
    };
    // From the third on the session's shell is a copy of one that is there.
    (0..6).for_each(run);
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || run(number));
        }
    });
    assert!(host.close().is_empty());
}

// upstream #13142: where calls could not be passed on, a script that had done nothing was told as a success with no calls
#[test]
fn a_backend_whose_commands_read_nothing_says_so() {
    for isolation in ["process", "in_process"] {
        let home = TidyHome::on("misfit", isolation).unwrap();
        let run = |behaviour: &str| {
            let arguments = json!({ "code": "echo x", "language": "bash" }).to_string();
            let mut command = home.command("hostel", &["tool", "execute_code", "--json", &arguments]);
            command.env("MISFIT", behaviour);
            result(&finish(command, b""))
        };
        expect(&run(""), "x\n");
        let value = run("no-input");
        let why = fails(&value, "error", -1);
        assert!(
            why.contains("`misfit` cannot run scripts") && why.ends_with("a command is sent whole"),
            "{value}"
        );
        assert!(value["hint"].as_str().unwrap().contains("`write_file`"), "{value}");
        let value = run("create-error");
        assert!(fails(&value, "error", -1).contains("closed today"), "{value}");
    }
}
