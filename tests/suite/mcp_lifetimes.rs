//! What comes and goes with a server of MCP, and what does not: its port, its files, environments and background processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::mcp_http::McpHttp;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{Home, finish, library, put};
use rustix::process::Signal;
use serde_json::{Value, json};

fn listens(home: &TidyHome, at: &str) -> McpHttp {
    McpHttp::begin(home.command("hostel", &["mcp", "--http", at]))
}

#[track_caller]
fn says(server: &mut McpHttp, word: &str) {
    let value = server.call("terminal", &json!({ "command": format!("echo {word}") }));
    assert_eq!(value["output"], format!("{word}\n"), "{value}");
}

/// Writes another number wherever a file below `folder` holds this one. Returns how many files do.
fn renumber(folder: &Path, from: &str, to: &str) -> usize {
    let mut changed = 0;
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            changed += renumber(&entry.path(), from, to);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            let words: Vec<&str> = text.split_inclusive(|letter: char| !letter.is_ascii_digit()).collect();
            let new: String = words
                .iter()
                .map(|word| {
                    let number = word.trim_end_matches(|letter: char| !letter.is_ascii_digit());
                    if number == from { word.replacen(from, to, 1) } else { (*word).to_owned() }
                })
                .collect();
            if new != text {
                fs::write(entry.path(), new).unwrap();
                changed += 1;
            }
        }
    }
    changed
}

// O-57
#[test]
fn a_server_comes_up_whatever_a_killed_one_has_left() {
    let home = TidyHome::new();
    let mut server = listens(&home, "127.0.0.1:0");
    says(&mut server, "first");
    let (address, number) = (server.address().to_owned(), server.pid().as_raw_nonzero().to_string());
    let _ = server.end(Signal::KILL);
    // Its number is somebody else's by now, and so is every other that it may have written down.
    let mark = Mark::new();
    let mut stranger = Command::new("sleep").arg(mark.to_string()).spawn().unwrap();
    renumber(home.path(), &number, &stranger.id().to_string());
    for left in ["state/mcp/pid", "state/mcp/lock"] {
        fs::create_dir_all(home.path().join("state/mcp")).unwrap();
        fs::write(home.path().join(left), stranger.id().to_string()).unwrap();
    }
    let mut again = listens(&home, &address);
    assert_eq!(again.address(), address);
    says(&mut again, "again");
    assert!(stranger.try_wait().unwrap().is_none(), "it was ended");
    assert_eq!(again.end(Signal::TERM).code, 0);
    assert!(stranger.try_wait().unwrap().is_none(), "it was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

// O-57
#[test]
fn a_server_that_ends_takes_nothing_from_another() {
    let home = TidyHome::new();
    let mut first = listens(&home, "127.0.0.1:0");
    says(&mut first, "a");
    let taken = home.hostel(&["mcp", "--http", first.address()]);
    taken.fails(1, &format!("failed to listen at `{}`", first.address()));
    says(&mut first, "b");
    let mut other = listens(&home, "127.0.0.1:0");
    says(&mut other, "c");
    assert_eq!(first.end(Signal::TERM).code, 0);
    says(&mut other, "d");
    let value = other.call("terminal", &json!({ "command": "pwd", "background": true }));
    assert!(value["error"].is_null(), "{value}");
    assert_eq!(other.end(Signal::TERM).code, 0);
}

// O-57
#[test]
fn of_two_that_start_at_once_exactly_one_serves() {
    let home = Home::new();
    for round in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let start = || {
            let mut command = home.command("hostel", &["mcp", "--http", &port]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut both = [start(), start()];
        let mut serve = [false; 2];
        for (child, serves) in both.iter_mut().zip(&mut serve) {
            // It says where it is, or ends.
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            *serves = line.contains(&format!("http://127.0.0.1:{port}/mcp"));
            if *serves {
                assert!(child.try_wait().unwrap().is_none(), "it said that it serves, and has ended");
            }
        }
        for (mut child, serves) in both.into_iter().zip(serve) {
            if serves {
                let _ = child.kill();
            }
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(
                serves || (ended.status.code() == Some(1) && said.contains("failed to listen at")),
                "{said}"
            );
        }
        assert_eq!(serve.iter().filter(|serves| **serves).count(), 1, "round {round}");
    }
}

#[test]
fn a_token_that_can_be_guessed_is_refused() {
    let home = Home::new();
    for (token, reason) in [
        ("", "holds no token"),
        ("  ", "holds no token"),
        ("short", "holds a token of fewer than 16 characters"),
    ] {
        let mut command = home.command("hostel", &["mcp", "--http", "127.0.0.1:0"]);
        command.env("HOSTEL_MCP_TOKEN", token);
        let ran = finish(command, b"");
        assert!(ran.stderr.contains("`openssl rand -hex 32`"), "{ran:?}");
        ran.fails(1, &format!("`HOSTEL_MCP_TOKEN` {reason}"));
    }
}

/// What is written to a server over standard input that starts one command in the background and one in the foreground.
fn lines(kept: &Mark, ended: &Mark) -> String {
    let client = json!({ "name": "hostel-tests", "version": "1" });
    let first = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let call = |id: u64, arguments: Value| {
        let params = json!({ "name": "terminal", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        call(2, json!({ "command": format!("exec sleep {kept}"), "background": true })),
        call(3, json!({ "command": format!("sleep {ended}; echo never") })),
    ];
    messages.map(|message| message.to_string() + "\n").concat()
}

// O-58: the rule that `docs/mcp.md` names. What was started in the background is its task's, and not the server's.
// upstream #20561, #75467: what an agent had left running was nobody's, and piled up
#[test]
fn background_processes_are_their_tasks_however_a_server_ends() {
    for end in [&[][..], &[Signal::TERM], &[Signal::INT, Signal::INT], &[Signal::KILL]] {
        let home = TidyHome::new().by(Road::Mcp);
        let (kept, ended, beside) = (Mark::new(), Mark::new(), Mark::new());
        // One that is nobody's, and one of another task.
        let mut stranger = Command::new("sleep").arg(kept.to_string()).spawn().unwrap();
        let other = home.start(&["--task", "other"], &format!("exec sleep {beside}"));
        let mut server = Conversation::begin(home.command("hostel", &["mcp"]));
        server.say(&lines(&kept, &ended));
        kept.appear(2);
        ended.appear(1);
        for signal in end {
            server.signal(*signal);
        }
        let begun = Instant::now();
        let _ = server.finish();
        assert!(begun.elapsed() < Duration::from_secs(10), "{end:?}: {:?}", begun.elapsed());
        ended.expect_gone();
        assert_eq!(kept.pids().len(), 2, "{end:?}");
        // The next one has it, and it alone.
        let list = home.tool("process", &json!({ "action": "list" }))["processes"].clone();
        assert_eq!(list.as_array().unwrap().len(), 1, "{end:?}: {list}");
        assert_eq!(list[0]["status"], "running", "{end:?}: {list}");
        home.hang_up();
        let done = home.hostel(&["env", "cleanup", "default", "--json"]).expect(0).json();
        assert_eq!(done[0]["ended"], json!([list[0]["session_id"]]), "{end:?}: {done}");
        kept.appear(1);
        assert!(stranger.try_wait().unwrap().is_none(), "{end:?}");
        assert_eq!(home.process_json(&["poll", &other])["status"], "running", "{end:?}");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

#[test]
fn a_new_environment_in_the_place_of_a_lost_one_is_told_once() {
    let home = TidyHome::new().by(Road::Mcp);
    let folder = home.add_manifest("hostile", hostel_tests::manifest("hostile"));
    put(&library("hostile"), &folder.join("libhostile.so"));
    let _ = home.hostel(&["plugins", "enable", "hostile", "--yes"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "hostile"]).expect(0);
    let sh = |command: &str| home.tool("terminal", &json!({ "command": command }));
    let first = sh("echo one");
    assert!(first["output"] == "one\n" && first.get("environment_recreated").is_none(), "{first}");
    // The process in which the environment lives goes down, and this call with it.
    let lost = sh("segv");
    assert!(lost["error"].is_string() && lost.get("environment_recreated").is_none(), "{lost}");
    let next = sh("echo two");
    assert_eq!(json!([next["output"], next["environment_recreated"]]), json!(["two\n", true]), "{next}");
    let again = sh("echo three");
    assert!(again["output"] == "three\n" && again.get("environment_recreated").is_none(), "{again}");
}

#[test]
fn very_many_calls_that_wait_hold_up_no_others() {
    // More than may wait for one process.
    const MANY: usize = 600;
    const MOST: usize = 512;
    let home = TidyHome::new().by(Road::Mcp);
    let mark = Mark::new();
    let id = home.start(&[], &format!("sleep {mark}"));
    home.with_server("default", |server| {
        let wait = json!({ "name": "process", "arguments": { "action": "wait", "session_id": id } });
        let begun = Instant::now();
        for number in 0..MANY {
            let call =
                json!({ "jsonrpc": "2.0", "id": 10_000 + number, "method": "tools/call", "params": wait });
            server.say(&call.to_string());
        }
        let listed = server.ask("resources/list", &json!({}));
        assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(server.call("terminal", &json!({ "command": "echo on" }))["output"], "on\n");
        let ended = server.call("process", &json!({ "action": "kill", "session_id": id }));
        assert_eq!(ended["status"], "killed", "{ended}");
        let mut refused = 0;
        for number in 0..MANY {
            let value = server.answer(10_000 + number as u64)["result"]["structuredContent"].clone();
            let is_refused =
                value["error"].as_str().is_some_and(|error| error.contains("others wait for the end"));
            assert!(is_refused || value["status"] == "exited", "{value}");
            refused += usize::from(is_refused);
        }
        assert!(refused <= MANY - MOST, "{refused} were refused");
        // As long as each of them may wait.
        assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    });
}
