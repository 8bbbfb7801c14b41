//! Login files that take long: whoever waits for them can give up, by whatever face and on every backend.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use hostel_tests::conversation::Conversation;
use hostel_tests::kernel::eventually;
use hostel_tests::marked::{Mark, PATIENCE};
use hostel_tests::mcp_stdio::McpStdio;
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use rustix::process::Signal;
use serde_json::json;

/// Said of a call that was ended before its command began.
const READING: &str = "the command was not started: the session's login files were still being read";

/// Makes this the login file of the task `k`.
fn login(home: &TidyHome, text: &str) {
    let words =
        ["exec", "--task", "k", "--", &format!("cat > login <<'END_OF_FILE'\n{text}\nEND_OF_FILE\npwd")];
    let _ = home.hostel(&["config", "set", "terminal.auto_source_bashrc", "false"]).expect(0);
    let _ = home.hostel(&["config", "unset", "terminal.shell_init_files"]);
    let dir = home.hostel(&words).expect(0).text();
    let file = format!("[\"{}/login\"]", dir.trim_end());
    let _ = home.hostel(&["config", "set", "terminal.shell_init_files", &file]).expect(0);
}

/// Waits until somebody waits for his turn to read the login files of the task `k`.
fn waits(home: &TidyHome) {
    let file = home.path().join(format!("state/tasks/{}/k/shell/login.lock", home.backend()));
    let inode = std::fs::metadata(file).unwrap().ino();
    // `1: -> FLOCK  ADVISORY  WRITE 4321 fe:00:1234 0 EOF`
    let waits = |line: &str| line.contains("->") && line.contains(&format!(":{inode} "));
    let somebody = || std::fs::read_to_string("/proc/locks").unwrap().lines().any(waits);
    assert!(eventually(PATIENCE, somebody), "nobody waits");
}

/// A login file that never ends, nor does what it starts.
fn endless(mark: &Mark) -> String {
    format!("setsid sleep {mark} &\n(trap '' TERM INT; sleep {mark})")
}

on_every_backend! {
    fn a_signal_to_the_program_ends_them_and_the_call_has_its_result(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        for signal in [Signal::INT, Signal::TERM] {
            let words = ["exec", "--json", "--task", "k", "--", "touch ran"];
            let call = Conversation::begin(home.command("hostel", &words));
            mark.appear(2);
            call.signal(signal);
            let ran = call.finish().expect(130);
            let object = ran.json();
            assert_eq!(json!([object["exit_code"], object["ended"]]), json!([130, "interrupted"]), "{object}");
            assert!(object["warnings"][0].as_str().unwrap().starts_with(READING), "{object}");
            assert!(object["cwd"].is_string() && object.get("error").is_none(), "{object}");
            mark.expect_gone();
        }
        login(home, "export READ=1");
        let ran = home.hostel(&["exec", "--task", "k", "--", "echo $READ; ls"]).expect(0);
        let text = ran.text();
        assert!(text.starts_with("1\n") && text.contains("login\n") && ran.stderr.is_empty(), "{ran:?}");
        assert!(!text.contains("ran\n"), "{ran:?}");
    }

    fn the_limit_of_the_call_is_theirs_too(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        let ran = home.hostel(&["exec", "--json", "--task", "k", "--timeout", "0.5", "--", "touch ran"]).expect(124);
        assert!(ran.took < Duration::from_secs(20), "{ran:?}");
        let object = ran.json();
        assert_eq!(json!([object["exit_code"], object["ended"]]), json!([124, "timeout"]), "{object}");
        assert!(object["warnings"][0].as_str().unwrap().starts_with(READING), "{object}");
        mark.expect_gone();
    }

    fn a_killed_host_takes_them_along(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        let call = Conversation::begin(home.command("hostel", &["exec", "--task", "k", "--", "true"]));
        mark.appear(2);
        call.signal(Signal::KILL);
        mark.expect_gone();
        assert_eq!(call.finish().code, -1);
    }

    fn who_waits_for_a_reader_that_is_killed_reads_them_itself(home) {
        let mark = Mark::new();
        // The first that reads them never comes to the end.
        login(home, &format!(
            "if mkdir \"${{BASH_SOURCE%/*}}/first\"; then (trap '' TERM INT; sleep {mark}); fi\nsleep 0.5\nexport READ=1"
        ));
        let first = Conversation::begin(home.command("hostel", &["exec", "--task", "k", "--", "true"]));
        mark.appear(1);
        let words = ["exec", "--task", "k", "--", "echo \"[$READ]\""];
        let second = Conversation::begin(home.command("hostel", &words));
        waits(home);
        first.signal(Signal::KILL);
        let ran = second.finish().expect(0);
        assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("[1]\n", ""), "{ran:?}");
        mark.expect_gone();
        drop(first);
    }

    fn what_they_have_started_does_not_end_with_a_later_host(home) {
        let (left, mark) = (Mark::new(), Mark::new());
        login(home, &format!("setsid sleep {left} &"));
        // Each command of a sandbox takes along what it has started.
        let lasts = usize::from(home.backend() != "bubblewrap");
        // In a worker, only what was left by a host that has said good-bye lives on.
        if home.backend() != "local" {
            let _ = home.hostel(&["exec", "--task", "k", "--", "true"]).expect(0);
        }
        // The first of them reads the files, and is killed after that.
        for _ in 0..2 {
            let words = ["exec", "--task", "k", "--", &format!("echo up; sleep {mark}")];
            let mut host = Conversation::begin(home.command("hostel", &words));
            host.hear("up");
            mark.appear(1);
            host.signal(Signal::KILL);
            mark.expect_gone();
            drop(host);
            assert_eq!(left.pids().len(), lasts);
        }
        let _ = home.hostel(&["env", "cleanup", "k"]).expect(0);
        left.expect_gone();
    }

    fn a_key_ends_them_where_the_command_has_a_terminal(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        for key in ["\u{3}", "\u{1c}"] {
            let words = ["exec", "--pty", "--stdin", "--task", "k", "--", "touch ran"];
            let mut call = Conversation::begin(home.command("hostel", &words));
            mark.appear(2);
            call.say(key);
            let ran = call.finish().expect(130);
            assert!(ran.stderr.contains(READING), "{ran:?}");
            mark.expect_gone();
        }
    }

    fn a_cleanup_by_force_ends_them_and_no_command_comes_after(home) {
        let mark = Mark::new();
        login(home, &format!("{}; export READ=1", endless(&mark)));
        let ran = home.path().join("ran");
        let call = |json| {
            let words = ["exec", json, "--task", "k", "--", &format!("echo ran; touch '{}'", ran.display())];
            Conversation::begin(home.command("hostel", &words))
        };
        let reads = call("--json");
        mark.appear(2);
        let waiting = call("--json");
        waits(home);
        let _ = home.hostel(&["env", "cleanup", "k", "--force"]).expect(0);
        for call in [reads, waiting] {
            let object = call.finish().expect(130).json();
            assert_eq!(json!([object["output"], object["ended"]]), json!(["", "interrupted"]), "{object}");
            let said = object["warnings"][0].as_str().unwrap();
            assert!(said.starts_with(READING) && said.contains("cleaned up"), "{object}");
        }
        mark.expect_gone();
        assert!(!ran.exists());
    }

    fn what_is_wrong_with_them_is_told_whichever_tool_comes_first(home) {
        login(home, "if [ ( ; done");
        let told = "the shell does not understand";
        let ran = home.hostel(&["tool", "read_file", "--task", "k", "--json", r#"{"path": "login"}"#]).expect(0);
        assert!(ran.stderr.contains(told), "{ran:?}");
        let _ = home.hostel(&["env", "cleanup", "k"]).expect(0);
        login(home, "if [ ( ; done");
        let mut server = McpStdio::begin(home.command("hostel", &["mcp", "--task", "k"]));
        let value = server.call("read_file", &json!({ "path": "login" }));
        assert!(value["error"].is_null(), "{value}");
        for tells in [true, false] {
            let value = server.call("terminal", &json!({ "command": "true" }));
            assert_eq!(value["warnings"].to_string().contains(told), tells, "{value}");
        }
    }

    fn a_shell_goes_on_after_an_interruption(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        let words = ["shell", "--task", "k", "--timeout", "0.5"];
        let mut shell = Conversation::begin(home.command("hostel", &words));
        shell.say("touch ran\n");
        mark.appear(2);
        mark.expect_gone();
        shell.say("exit\n");
        let ran = shell.finish().expect(124);
        assert!(ran.stderr.contains(READING), "{ran:?}");
        let mut shell = Conversation::begin(home.command("hostel", &["shell", "--task", "k"]));
        shell.say("touch ran\n");
        mark.appear(2);
        // Whoever types nothing is told by a signal, which ends the shell as well.
        shell.signal(Signal::TERM);
        let ran = shell.finish().expect(143);
        assert!(ran.stderr.contains(READING), "{ran:?}");
        mark.expect_gone();
    }

    fn a_call_by_mcp_can_be_cancelled(home) {
        let mark = Mark::new();
        login(home, &endless(&mark));
        let mut server = McpStdio::begin(home.command("hostel", &["mcp", "--task", "k"]));
        let params = json!({ "name": "terminal", "arguments": { "command": "touch ran" } });
        server.say(&json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params }).to_string());
        mark.appear(2);
        let params = json!({ "requestId": 77, "reason": "enough" });
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string());
        mark.expect_gone();
        let value = server.call("terminal", &json!({ "command": "touch ran", "timeout": 0.5 }));
        assert_eq!(json!([value["exit_code"], value["ended"]]), json!([124, "timeout"]), "{value}");
        assert!(value["warnings"][0].as_str().unwrap().starts_with(READING), "{value}");
        mark.expect_gone();
    }

    fn a_background_process_that_is_cancelled_before_it_has_begun_never_begins(home) {
        let mark = Mark::new();
        login(home, &format!("{}\ntrue", endless(&mark)));
        let mut server = McpStdio::begin(home.command("hostel", &["mcp", "--task", "k"]));
        let params = json!({ "name": "terminal", "arguments": { "command": "touch ran", "background": true } });
        server.say(&json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params }).to_string());
        mark.appear(2);
        let params = json!({ "requestId": 77, "reason": "enough" });
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string());
        mark.expect_gone();
        login(home, "true");
        let listed = server.call("process", &json!({ "action": "list" }));
        assert_eq!(listed["processes"], json!([]), "{listed}");
        let left = server.call("terminal", &json!({ "command": "ls" }))["output"].as_str().unwrap().to_owned();
        assert!(left.contains("login\n") && !left.contains("ran\n"), "{left}");
    }

    fn a_background_process_is_there_once_they_are_read(home) {
        login(home, "sleep 1; export READ=1; cd /");
        let id = home.start(&["--task", "k"], "echo \"[$READ]\"; pwd; read -r x");
        let waited = home.process_json(&["wait", &id]);
        let seen = home.process_json(&["poll", &id]);
        let printed = waited["output"].as_str().unwrap().strip_prefix("[1]\n").unwrap().trim_end();
        assert_eq!(seen["cwd"], printed, "{seen}");
        home.process(&["start", "--task", "k", "--cwd", "/no/such", "--", "true"]).fails(126, "does not exist");
        let mark = Mark::new();
        // Of another task nothing was read yet.
        let dir = printed.to_owned();
        if home.backend() == "local" {
            std::fs::write(format!("{dir}/login"), endless(&mark)).unwrap();
            let words = ["process", "start", "--task", "other", "--", "true"];
            let start = Conversation::begin(home.command("hostel", &words));
            mark.appear(2);
            start.signal(Signal::TERM);
            mark.expect_gone();
            drop(start);
        }
    }
}
