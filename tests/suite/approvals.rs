//! Calls of tools that need a person's yes, where nobody is there, and where somebody is at a terminal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Barrier;

use hostel_tests::conversation::Conversation;
use hostel_tests::tidy::TidyHome;
use hostel_tests::{Home, finish, on_every_backend};
use serde_json::{Value, json};

use crate::terminals::on_a_terminal;

/// Lets these tools need a yes.
fn gate(home: &Home, tools: &str) {
    let _ = home.hostel(&["config", "set", "approvals.tools", tools]).expect(0);
}

/// Calls a tool in a task.
#[track_caller]
fn call_in(home: &Home, task: &str, tool: &str, arguments: &Value) -> Value {
    let ran = home.hostel(&["tool", tool, "--task", task, "--json", &arguments.to_string()]);
    let value = ran.json();
    assert_eq!(ran.code, i32::from(!value["error"].is_null()), "{ran:?}");
    value
}

#[track_caller]
fn call(home: &Home, tool: &str, arguments: &Value) -> Value {
    call_in(home, "default", tool, arguments)
}

#[track_caller]
fn sh(home: &Home, command: &str) -> Value {
    call(home, "terminal", &json!({ "command": command }))
}

/// Requires that a call waits for a person, and returns the name of the request.
#[track_caller]
fn pending(value: &Value) -> String {
    assert_eq!(value["status"], "pending_approval", "{value}");
    let id = value["approval_id"].as_str().unwrap().to_owned();
    let error = value["error"].as_str().unwrap();
    assert!(error.contains(&format!("`hostel approvals allow {id}`")), "{value}");
    id
}

/// Requires that a call was refused, and returns why.
#[track_caller]
fn blocked(value: &Value) -> String {
    assert!(value["status"] == "blocked" && value.get("approval_id").is_none(), "{value}");
    value["error"].as_str().unwrap().to_owned()
}

#[track_caller]
fn ran(value: &Value, output: &str) {
    assert!(value["error"].is_null() && value["output"] == output, "{value}");
}

#[track_caller]
fn allow(home: &Home, id: &str) {
    let _ = home.hostel(&["approvals", "allow", id]).expect(0);
}

fn waiting(home: &Home) -> Vec<Value> {
    home.hostel(&["approvals", "list", "--json"]).expect(0).json().as_array().unwrap().clone()
}

fn kept(home: &Home) -> Vec<PathBuf> {
    let folder = fs::read_dir(home.path().join("state/approvals")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

on_every_backend! {
    // upstream #92405: with nobody at a terminal, what had been allowed was refused all the same
    fn a_call_waits_until_it_is_allowed_and_is_then_made_once(home) {
        gate(home, "terminal");
        let command = "echo ran >> witness; wc -l < witness | tr -d ' '";
        let value = sh(home, command);
        let id = pending(&value);
        let first: Vec<&String> = value.as_object().unwrap().keys().take(3).collect();
        assert_eq!(first, ["output", "exit_code", "error"]);
        assert_eq!((&value["output"], &value["exit_code"]), (&json!(""), &json!(-1)), "{value}");
        assert_eq!(pending(&sh(home, command)), id, "it waits already");

        let rows = waiting(home);
        let row = rows[0].as_object().unwrap();
        let keys: Vec<&String> = row.keys().collect();
        assert_eq!(keys, ["id", "command", "reason", "backend", "task", "created"]);
        let named = [&row["id"], &row["command"], &row["backend"], &row["task"]];
        assert!(named == [&id, command, home.backend(), "default"] && rows.len() == 1, "{rows:?}");

        let done = home.hostel(&["approvals", "allow", &id]).expect(0);
        assert!(done.text().contains(command) && waiting(home).is_empty(), "{done:?}");
        // The arguments' order makes no other call, and everything else does.
        let other = pending(&sh(home, "echo ran >> witness; echo other"));
        let longer = json!({ "command": command, "timeout": 60 });
        assert_ne!(pending(&call(home, "terminal", &longer)), other);
        ran(&sh(home, command), "1\n");
        assert_ne!(pending(&sh(home, command)), id);
    }

    fn files_and_processes_have_the_same_gate(home) {
        gate(home, "write_file,patch,process");
        let write = json!({ "path": "a.txt", "content": "one\ntwo\n" });
        let id = pending(&call(home, "write_file", &write));
        ran(&sh(home, "test -e a.txt || echo none"), "none\n");
        let row = &waiting(home)[0];
        assert_eq!((&row["tool"], &row["command"]), (&json!("write_file"), &json!("path: a.txt\ncontent:\n    one\n    two\n    ")));
        allow(home, &id);
        assert_eq!(call(home, "write_file", &write)["bytes_written"], 8);
        let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2" });
        let id = pending(&call(home, "patch", &edit));
        let _ = home.hostel(&["approvals", "deny", &id, "--reason", "two is right"]).expect(0);
        let refused = blocked(&call(home, "patch", &edit));
        assert!(refused.contains("a person refused") && refused.contains("two is right"), "{refused}");
        assert!(refused.contains("do not try the same in another way"), "{refused}");
        ran(&sh(home, "cat a.txt"), "one\ntwo\n");
        let id = pending(&call(home, "process", &json!({ "action": "list" })));
        allow(home, &id);
        assert_eq!(call(home, "process", &json!({ "action": "list" }))["processes"], json!([]));
        assert!(call(home, "read_file", &json!({ "path": "a.txt" }))["content"].as_str().unwrap().contains("2|two"));
    }

    fn a_yes_for_the_session_ends_with_its_environment(home) {
        gate(home, "terminal");
        let id = pending(&sh(home, "echo one"));
        let object = home.hostel(&["approvals", "allow", &id, "--session", "--json"]).expect(0).json();
        assert_eq!((&object["id"], &object["status"]), (&json!(id), &json!("session")));
        ran(&sh(home, "echo two; cd /"), "two\n");
        ran(&sh(home, "pwd"), "/\n");
        pending(&call_in(home, "other", "terminal", &json!({ "command": "echo two" })));
        let _ = home.hostel(&["env", "cleanup", "default"]).expect(0);
        let id = pending(&sh(home, "pwd"));
        let _ = home.hostel(&["approvals", "allow", &id, "--session"]).expect(0);
        ran(&sh(home, "echo three"), "three\n");
        let _ = home.hostel(&["approvals", "deny", &id]).expect(0);
        blocked(&sh(home, "pwd"));
        pending(&sh(home, "echo three"));
    }
}

#[test]
fn another_backend_is_another_call() {
    let home = TidyHome::on("acmebox", "process").unwrap();
    gate(&home, "terminal");
    allow(&home, &pending(&sh(&home, "echo here")));
    let elsewhere = ["tool", "terminal", "--backend", "local", "--json", r#"{"command": "echo here"}"#];
    pending(&home.hostel(&elsewhere).expect(1).json());
    ran(&sh(&home, "echo here"), "here\n");
}

#[test]
fn of_two_programs_at_once_one_has_the_yes() {
    let home = Home::new();
    gate(&home, "terminal");
    let command = "echo x >> witness";
    for round in 1..=5 {
        allow(&home, &pending(&sh(&home, command)));
        let barrier = Barrier::new(4);
        let one = || {
            barrier.wait();
            sh(&home, command)
        };
        let values: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let made = values.iter().filter(|value| value["error"].is_null()).count();
        assert_eq!(made, 1, "{values:?}");
        assert_eq!(fs::read_to_string(home.path().join("witness")).unwrap().lines().count(), round);
    }
}

#[test]
fn the_mode_says_what_becomes_of_it() {
    let home = Home::new();
    gate(&home, "terminal");
    let id = pending(&sh(&home, "echo hi"));
    allow(&home, &id);
    let _ = home.hostel(&["config", "set", "approvals.mode", "deny"]).expect(0);
    let refused = blocked(&sh(&home, "echo hi"));
    assert!(refused.contains("`approvals.mode` is `deny`"), "{refused}");
    let _ = home.hostel(&["config", "set", "approvals.mode", "off"]).expect(0);
    ran(&sh(&home, "echo hi"), "hi\n");
    home.set_config("approvals: {tools: [terminal], mode: false}\n");
    let _ = home.hostel(&["config", "check"]).expect(0);
    ran(&sh(&home, "echo hi"), "hi\n");
    home.set_config("approvals: {tools: [patch]}\n");
    ran(&sh(&home, "echo hi"), "hi\n");
}

#[test]
fn a_tool_that_is_unknown_is_an_error_and_never_passed_over() {
    let home = Home::new();
    let wrong = ["config", "set", "approvals.tools", "terminal,bash"];
    home.hostel(&wrong).fails(1, "`bash` is unknown: use one of `terminal`, `process`, `read_file`");
    home.set_config("approvals: {tools: [termnal]}\n");
    let ran = home.hostel(&["config", "check"]).expect(1);
    assert!(ran.text().contains("`termnal` is unknown") && ran.text().contains("`execute_code`"), "{ran:?}");
    let call = ["tool", "terminal", "--json", r#"{"command": "touch witness"}"#];
    home.hostel(&call).fails(1, "`termnal` is unknown");
    home.set_config("approvals: {tools: terminal}\n");
    home.hostel(&call).fails(1, "a list is expected");
    assert!(!home.path().join("witness").exists());
    gate(&home, "[]");
    gate(&home, "terminal, execute_code");
    let shown = home.hostel(&["config", "get", "approvals.tools"]).expect(0);
    assert_eq!(shown.text(), "[terminal, execute_code]\n");
    assert_eq!(home.hostel(&["config", "get", "approvals.timeout_s"]).expect(0).text(), "60\n");
}

#[test]
fn nothing_in_a_request_can_hide_and_no_secret_is_in_it() {
    let home = Home::new().with("HOSTEL_MCP_TOKEN", "hunter22-hunter22");
    gate(&home, "terminal");
    let id = pending(&sh(&home, "echo hunter22-hunter22\x1b[2K\rls\u{202e}\n\n\n\n\n\n\n\n\n; rm -rf x"));
    let row = &waiting(&home)[0];
    let shown = "echo [redacted HOSTEL_MCP_TOKEN]^[[2K^Mls<U+202E>\n[8 empty lines]\n; rm -rf x";
    assert_eq!(row["command"], shown, "{row}");
    let table = home.hostel(&["approvals", "list"]).expect(0);
    let said = home.hostel(&["approvals", "allow", &id]).expect(0);
    for text in [table.text(), said.text()] {
        assert!(!text.contains(['\x1b', '\r', '\u{202e}']) && !text.contains("hunter22"), "{text:?}");
    }
    let file = fs::read_to_string(&kept(&home)[0]).unwrap();
    assert!(!file.contains("hunter22"), "{file}");
}

#[test]
fn what_cannot_be_meant_asks_nobody() {
    let home = Home::new();
    gate(&home, "terminal");
    let value = call(&home, "terminal", &json!({ "command": 7 }));
    assert!(value["error"].as_str().unwrap().contains("do not fit") && value.get("approval_id").is_none());
    assert!(!home.path().join("state/approvals").exists());
    assert_eq!(home.hostel(&["approvals", "list", "--json"]).expect(0).json(), json!([]));
    for id in ["appr_0123456789ab", "../../x", ""] {
        home.hostel(&["approvals", "allow", id]).fails(1, "waits for an answer");
    }
    assert!(!home.path().join("state/approvals").exists(), "to look makes nothing");
}

#[test]
fn what_others_could_have_written_allows_nothing() {
    let home = Home::new();
    gate(&home, "terminal");
    let command = "echo hi";
    allow(&home, &pending(&sh(&home, command)));
    let folder = home.path().join("state/approvals");
    let file = kept(&home).remove(0);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    pending(&sh(&home, command));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let refused = blocked(&sh(&home, command));
    assert!(refused.contains("must belong to this user"), "{refused}");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    ran(&sh(&home, command), "hi\n");
}

#[test]
fn an_agents_own_command_allows_nothing() {
    let home = Home::new();
    gate(&home, "write_file");
    let id = pending(&call(&home, "write_file", &json!({ "path": "a", "content": "" })));
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let value = sh(&home, &format!("'{program}' approvals allow {id}"));
    assert!(value["exit_code"] == 1 && value["output"].as_str().unwrap().contains("cannot allow"), "{value}");
    pending(&call(&home, "write_file", &json!({ "path": "a", "content": "" })));
}

/// Calls the tool `terminal` on a terminal, and waits until it asks.
fn asked(home: &TidyHome, command: &str) -> Conversation {
    let object = json!({ "command": command }).to_string();
    let script = format!("HOSTEL tool terminal --json '{object}'; echo \"code=$?\"");
    let mut said = Conversation::begin(on_a_terminal(home, &script));
    said.hear("An agent wants to use `terminal` in task `default` on backend `local`:");
    said.hear(format!("    {command}"));
    said.hear("anything else: no) ");
    said
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    let home = TidyHome::new();
    gate(&home, "terminal");
    for (answer, code) in [("y\r", 0), ("n\r", 1), ("\r", 1), ("Y\r", 0)] {
        let mut said = asked(&home, "echo x >> witness");
        said.say(answer);
        said.hear(format!("code={code}"));
        assert_eq!(said.text().contains("a person refused"), code == 1, "{}", said.text());
        let _ = said.finish();
    }
    assert_eq!(fs::read_to_string(home.path().join("witness")).unwrap(), "x\nx\n");
    let mut said = asked(&home, "echo x >> witness");
    said.say("\u{3}");
    said.hear("was cancelled");
    said.hear("code=1");
    let _ = said.finish();
    let mut said = asked(&home, "echo x >> witness");
    said.say("s\r");
    said.hear("code=0");
    let _ = said.finish();
    // The session is that of the task, and each call of it a program of its own.
    ran(&sh(&home, "wc -l < witness | tr -d ' '"), "3\n");
    assert!(waiting(&home).is_empty());
    let all = home.hostel(&["approvals", "list", "--all", "--json"]).expect(0).json();
    assert!(all[0]["status"] == "session" && all.as_array().unwrap().len() == 1, "{all}");
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let home = TidyHome::new();
    gate(&home, "terminal");
    // So much of `read` only looks whether there is something.
    let script = "until read -t 0; do sleep 0.05; done; \
                  HOSTEL tool terminal --json '{\"command\": \"touch witness\"}'; echo \"code=$?\"";
    let mut said = Conversation::begin(on_a_terminal(&home, script));
    said.say("y\r");
    said.hear("anything else: no) ");
    said.say("n\r");
    said.hear("a person refused");
    said.hear("code=1");
    let _ = said.finish();
    assert!(!home.path().join("witness").exists());
}

#[test]
fn a_person_who_does_not_answer_says_no() {
    let home = TidyHome::new();
    gate(&home, "terminal");
    let _ = home.hostel(&["config", "set", "approvals.timeout_s", "1"]).expect(0);
    let mut said = asked(&home, "touch witness");
    said.hear("nobody has answered");
    said.hear("code=1");
    let _ = said.finish();
    assert!(!home.path().join("witness").exists());
    // With standard input from elsewhere, nobody is at the terminal.
    let mut command =
        on_a_terminal(&home, "echo '{\"command\": \"touch witness\"}' | HOSTEL tool terminal --json -");
    command.env("TERM", "xterm");
    assert!(finish(command, b"").text().contains("pending_approval"));
}
