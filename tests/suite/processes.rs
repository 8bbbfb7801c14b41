//! `hostel process`: a command is started by one program, and seen, waited for and ended by others.

use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use rustix::process::{Signal, kill_process_group};
use serde_json::{Value, json};

/// A name that no process has.
const NOBODY: &str = "proc_0123456789ab";

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

on_every_backend! {
    fn it_is_started_seen_and_ended(home) {
        let mark = Mark::new();
        let begun = home.process_json(&["start", "--", &format!("echo up; setsid sleep {mark} & sleep {mark}")]);
        let id = begun["session_id"].as_str().unwrap();
        assert_eq!(
            (&begun["status"], &begun["backend"], &begun["task"], &begun["lifetime"]),
            (&json!("running"), &json!(home.backend()), &json!("default"), &json!("task"))
        );
        home.hear(id, "up\n");
        mark.appear(2);
        let seen = home.process_json(&["poll", id]);
        assert_eq!((&seen["status"], &seen["output_preview"]), (&json!("running"), &json!("up\n")), "{seen}");
        assert!(seen.get("exit_code").is_none() && seen["uptime_seconds"].as_f64().unwrap() > 0.0, "{seen}");
        let states = home.hostel(&["env", "list", "--json"]).json();
        assert_eq!(states[0]["state"], "background", "{states}");
        let _ = home.process(&["wait", id, "--timeout", "0.1"]).expect(124);
        let killed = home.process_json(&["kill", id]);
        assert_eq!(killed["status"], "killed", "{killed}");
        mark.expect_gone();
        let seen = home.process_json(&["poll", id]);
        let told = [&seen["status"], &seen["completion_reason"], &seen["termination_source"]];
        assert_eq!(told, [&json!("killed"), &json!("killed"), &json!("kill")], "{seen}");
        assert_eq!(home.process_json(&["kill", id])["status"], "already_exited");
        assert_eq!(home.process(&["logs", id]).expect(0).text(), "up\n");
    }

    fn its_own_end_is_told_with_its_own_code(home) {
        let id = home.start(&[], "printf 'half'; exit 9");
        assert_eq!(home.process(&["wait", &id]).expect(9).text(), "half");
        let seen = home.process_json(&["poll", &id]);
        let told = [&seen["status"], &seen["exit_code"], &seen["completion_reason"]];
        assert_eq!(told, [&json!("exited"), &json!(9), &json!("exited")], "{seen}");
        let id = home.start(&[], "kill -ABRT $$");
        let waited = home.process_json(&["wait", &id]);
        assert_eq!((&waited["status"], &waited["exit_code"]), (&json!("exited"), &json!(134)), "{waited}");
        // `bwrap` makes an exit code of its command's signal.
        let how = if home.backend() == "bubblewrap" { json!([null, "exited"]) } else { json!(["SIGABRT", "signal"]) };
        assert_eq!(json!([waited["signal"], waited["completion_reason"]]), how, "{waited}");
        let id = home.start(&[], "no_such_command_here");
        assert!(home.process(&["wait", &id]).expect(127).text().contains("command not found"));
    }

    fn the_end_of_its_output_is_not_its_own(home) {
        let (quiet, closed) = (Mark::new(), Mark::new());
        let id = home.start(&[], "exec >/dev/null 2>&1; sleep 1; exit 9");
        let other = home.start(&[], &format!("exec >&- 2>&-; sleep {closed}"));
        let hidden = home.start(&[], &format!("exec >/dev/null 2>&1; sleep {quiet}; exit 1"));
        closed.appear(1);
        quiet.appear(1);
        for id in [&other, &hidden] {
            let seen = home.process_json(&["poll", id]);
            assert!(seen["status"] == "running" && seen.get("exit_code").is_none(), "{seen}");
            assert_eq!(home.process_json(&["kill", id])["status"], "killed");
            let seen = home.process_json(&["poll", id]);
            assert_eq!((&seen["status"], &seen["exit_code"]), (&json!("killed"), &json!(143)), "{seen}");
        }
        closed.expect_gone();
        quiet.expect_gone();
        let _ = home.process(&["wait", &id]).expect(9);
    }

    fn it_reads_nothing_unless_it_may(home) {
        let id = home.start(&[], "cat; echo over");
        assert_eq!(home.process(&["wait", &id, "--timeout", "20"]).expect(0).text(), "over\n");
    }

    fn it_sees_the_session_and_does_not_move_it(home) {
        let _ = home.exec("export SEEN=yes; mkdir -p sub; cd sub").expect(0);
        let id = home.start(
            &["--env", "ONE=1 2"],
            "echo \"$SEEN [$ONE] ${PWD##*/}\"; cd /; export SEEN=no MORE=1; echo \"$PYTHONUNBUFFERED\"",
        );
        assert_eq!(home.process(&["wait", &id]).expect(0).text(), "yes [1 2] sub\n1\n");
        let after = home.exec("echo \"$SEEN [$ONE] [$MORE] ${PWD##*/}\"");
        assert_eq!(after.expect(0).text(), "yes [] [] sub\n");
        let id = home.start(&["--cwd", "/"], "pwd");
        assert_eq!(home.process(&["wait", &id]).expect(0).text(), "/\n");
    }

    fn what_it_leaves_in_the_background_ends_with_its_task(home) {
        let mark = Mark::new();
        let id = home.start(&[], &format!("setsid sleep {mark} & sleep 0.1; echo over"));
        assert_eq!(home.process(&["wait", &id]).expect(0).text(), "over\n");
        // Each command of a sandbox takes along what it has started.
        assert_eq!(mark.pids().len(), usize::from(home.backend() != "bubblewrap"));
        let _ = home.hostel(&["env", "cleanup", "default"]).expect(0);
        mark.expect_gone();
        assert_eq!(home.processes(), [] as [Value; 0]);
    }

    fn what_it_leaves_in_the_background_ends_with_a_kill_too(home) {
        let mark = Mark::new();
        let id = home.start(&[], &format!("setsid sleep {mark} & sleep 0.1; echo over"));
        assert_eq!(home.process(&["wait", &id]).expect(0).text(), "over\n");
        assert_eq!(home.process_json(&["kill", &id])["status"], "already_exited");
        mark.expect_gone();
    }
}

#[test]
fn the_objects_have_the_keys_that_are_documented() {
    let home = TidyHome::new();
    let begun = home.process_json(&["start", "--task", "t 1", "--cwd", "/", "--", "echo hi; exit 3"]);
    assert_eq!(
        keys(&begun),
        [
            "session_id",
            "pid",
            "status",
            "command",
            "backend",
            "task",
            "started_at",
            "lifetime",
            "lease_until",
            "warnings"
        ]
    );
    let id = begun["session_id"].as_str().unwrap();
    let digits = id.strip_prefix("proc_").unwrap_or_default();
    assert!(digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let waited = home.process_json(&["wait", id]);
    assert_eq!(keys(&waited), ["status", "session_id", "output", "exit_code", "completion_reason"]);
    assert_eq!((&waited["status"], &waited["output"]), (&json!("exited"), &json!("hi\n")));
    let seen = home.process_json(&["poll", id]);
    assert_eq!(
        keys(&seen),
        [
            "session_id",
            "command",
            "status",
            "pid",
            "backend",
            "task",
            "cwd",
            "started_at",
            "ended_at",
            "uptime_seconds",
            "lifetime",
            "output_preview",
            "exit_code",
            "completion_reason"
        ]
    );
    assert_eq!(
        (&seen["command"], &seen["task"], &seen["cwd"]),
        (&json!("echo hi; exit 3"), &json!("t 1"), &json!("/"))
    );
    assert_eq!(home.processes(), [seen], "a short command is listed whole");
    let log = home.process_json(&["logs", id]);
    assert_eq!(
        keys(&log),
        ["session_id", "status", "output", "total_lines", "showing", "next_offset_bytes", "dropped_bytes"]
    );
    let bytes = home.process_json(&["logs", id, "--bytes-from", "1"]);
    assert_eq!(
        keys(&bytes),
        ["session_id", "status", "output", "offset_bytes", "next_offset_bytes", "dropped_bytes"]
    );
    assert_eq!((&bytes["output"], &bytes["next_offset_bytes"]), (&json!("i\n"), &json!(3)));
    assert_eq!(keys(&home.process_json(&["kill", id])), ["status", "session_id", "exit_code"]);
    let detached = home.start(&["--lifetime", "detached", "--notify", "--watch", "x"], "sleep 100");
    let seen = home.process_json(&["poll", &detached]);
    assert_eq!(
        (&seen["detached"], &seen["notify_on_complete"], &seen["watch_patterns"]),
        (&json!(true), &json!(true), &json!(["x"]))
    );
}

#[test]
fn lists_are_by_age_and_task_and_show_the_beginning_of_a_command() {
    let home = TidyHome::new();
    let long = format!("true {}", "x".repeat(500));
    let first = home.start(&["--task", "a"], &long);
    let second = home.start(&["--task", "b"], "exit 3");
    for id in [&first, &second] {
        let _ = home.process(&["wait", id]);
    }
    let ids = |list: &[Value]| list.iter().map(|row| row["session_id"].clone()).collect::<Vec<_>>();
    let all = home.processes();
    assert_eq!(ids(&all), [json!(first), json!(second)]);
    assert_eq!(all[0]["command"], long[..200]);
    let of_task = home.process_json(&["list", "--task", "b"]);
    assert_eq!(ids(of_task["processes"].as_array().unwrap()), [json!(second)]);
    let table = home.process(&["list", "--task", "b"]).expect(0).text();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "STATUS", "SECONDS", "BACKEND", "TASK", "COMMAND"]);
    assert_eq!(lines[1], [&second, "exited", "(3)", "0", "local", "b", "exit", "3"]);
}

#[test]
fn a_name_that_nobody_has_is_an_error_of_its_own() {
    let home = TidyHome::new();
    for id in [NOBODY, "x", "", "../processes", "proc_0123456789AB"] {
        for words in [
            &["poll", id][..],
            &["logs", id],
            &["logs", id, "--bytes-from", "0"],
            &["wait", id],
            &["kill", id],
            &["write", id, "x"],
            &["resize", id, "20x20"],
            &["signal", id, "INT"],
            &["renew", id],
        ] {
            home.process(words).fails(1, &format!("there is no process `{id}`"));
            let (verb, rest) = words.split_at(1);
            let ran = home.process(&[verb, &["--json"], rest].concat()).expect(1);
            let told = ran.json();
            assert_eq!(keys(&told), ["status", "error", "kind", "hint"], "{words:?}");
            assert_eq!(
                (&told["status"], &told["kind"]),
                (&json!("not_found"), &json!("not_found")),
                "{told}"
            );
        }
    }
    let _ = home.process(&["logs", "--follow", NOBODY]).expect(1);
}

#[test]
fn wrong_usage_starts_nothing() {
    let home = TidyHome::new();
    let id = home.start(&[], "true");
    for words in [
        &["start"][..],
        &["start", "touch ran"],
        &["start", "--lifetime", "lease", "--", "touch ran"],
        &["start", "--lease", "5", "--", "touch ran"],
        &["start", "--lifetime", "lease", "--lease", "0", "--", "touch ran"],
        &["start", "--lifetime", "host", "--", "touch ran"],
        &["start", "--size", "24x80", "--", "touch ran"],
        &["start", "--pty", "--size", "0x80", "--", "touch ran"],
        &["start", "--env", "NOT_THERE_AT_ALL", "--", "touch ran"],
        &["resize", &id, "80"],
        &["signal", &id, "NOSUCH"],
        &["signal", &id, "0"],
        &["wait", &id, "--timeout", "0"],
        &["logs", &id, "--follow", "--json"],
        &["logs", &id, "--limit", "1", "--bytes-from", "1"],
        &["nosuch"],
    ] {
        let _ = home.process(words).expect(2);
    }
    assert_eq!(home.processes().len(), 1);
    assert!(!home.path().join("ran").exists());
}

#[test]
fn what_cannot_start_is_no_process() {
    let home = TidyHome::new();
    let failed = |code: i32, options: &[&str]| {
        let ran = home.process(&[&["start", "--json"], options, &["--", "touch ran"]].concat()).expect(code);
        let told = ran.json();
        assert_eq!(keys(&told), ["status", "error", "kind", "hint"]);
        told["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(failed(1, &["--backend", "nosuch"]), "not_configured");
    assert_eq!(failed(126, &["--cwd", "/no/such"]), "bad_cwd");
    assert_eq!(failed(1, &["--env", "A;B=1"]), "invalid_request");
    home.process(&["start", "--cwd", "/no/such", "--", "touch ran"]).fails(126, "`/no/such` does not exist");
    assert_eq!(home.processes(), [] as [Value; 0]);
    assert!(!home.path().join("ran").exists());
}

#[test]
fn waiting_ends_with_the_time_a_signal_or_the_process() {
    let home = TidyHome::new();
    let id = home.start(&["--stdin"], "echo up; read -r line; echo \"over $line\"; exit 7");
    home.hear(&id, "up\n");
    let begun = Instant::now();
    let waited = home.process(&["wait", "--json", "--timeout", "0.3", &id]).expect(124).json();
    assert_eq!((&waited["status"], &waited["output"]), (&json!("timeout"), &json!("up\n")), "{waited}");
    assert!((0.3..5.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    for signal in [Signal::INT, Signal::TERM] {
        // It waits once it has loaded all of itself, of which nothing tells: it must end by then or later.
        let waiting = Conversation::begin(home.command("hostel", &["process", "wait", "--json", &id]));
        std::thread::sleep(Duration::from_millis(300));
        waiting.signal(signal);
        let ran = waiting.finish().expect(130);
        assert_eq!(ran.json()["status"], "interrupted", "{ran:?}");
    }
    assert_eq!(home.process_json(&["poll", &id])["status"], "running");
    let waiting = [(); 3].map(|()| Conversation::begin(home.command("hostel", &["process", "wait", &id])));
    let _ = home.process(&["write", &id, "now", "--newline"]).expect(0);
    for waiting in waiting {
        assert_eq!(waiting.finish().expect(7).text(), "up\nover now\n");
    }
    // There is nothing to wait for any more.
    assert_eq!(home.process(&["wait", &id, "--timeout", "0.001"]).expect(7).text(), "up\nover now\n");
}

#[test]
fn it_outlives_the_program_that_started_it_and_that_ones_group() {
    let home = TidyHome::new();
    let mark = Mark::new();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let script = format!("'{program}' process start -- 'echo up; sleep {mark}'; exec sleep 100");
    let mut command = home.command("/usr/bin/env", &["bash", "-c", &script]);
    command.process_group(0);
    let mut shell = Conversation::begin(command);
    shell.hear("\n");
    let id = shell.text().trim_end().to_owned();
    kill_process_group(shell.pid(), Signal::KILL).unwrap();
    // Its keeper holds nothing of the shell's open, or this would not end.
    assert_eq!(shell.finish().code, -1);
    home.hear(&id, "up\n");
    assert_eq!(home.process_json(&["poll", &id])["status"], "running");
    mark.appear(1);
    assert_eq!(home.process_json(&["kill", &id])["status"], "killed");
    mark.expect_gone();
}

#[test]
fn one_that_a_command_starts_does_not_end_with_it() {
    let home = TidyHome::new();
    let (started, own) = (Mark::new(), Mark::new());
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let command = format!(
        "'{program}' process start -- 'sleep {started}' && (setsid sleep {own} &); '{program}' exec -- 'sleep {own}'"
    );
    let _ = home.hostel(&["exec", "--timeout", "3", "--", &command]).expect(124);
    own.expect_gone();
    assert_eq!(started.pids().len(), 1);
    let processes = home.processes();
    assert_eq!(processes[0]["status"], "running", "{processes:?}");
    let _ = home.process_json(&["kill", processes[0]["session_id"].as_str().unwrap()]);
    started.expect_gone();
}

#[test]
fn what_does_not_end_when_it_is_asked_to_is_killed() {
    let home = TidyHome::new();
    let mark = Mark::new();
    let command = format!("trap '' TERM; sleep {mark} & echo up; while :; do wait; done");
    let id = home.start(&[], &command);
    home.hear(&id, "up\n");
    let begun = Instant::now();
    assert_eq!(home.process_json(&["kill", &id])["status"], "killed");
    assert!((2.0..8.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    mark.expect_gone();
    let _ = home.hostel(&["config", "set", "terminal.daemon_term_grace_seconds", "0"]).expect(0);
    let id = home.start(&[], &command);
    home.hear(&id, "up\n");
    let told = home.process(&["kill", "--json", &id]).expect(1).json();
    assert_eq!((&told["status"], &told["kind"]), (&json!("error"), &json!("still_running")), "{told}");
    assert_eq!(home.process_json(&["poll", &id])["status"], "running");
    let _ = home.process(&["signal", &id, "KILL"]).expect(0);
    let waited = home.process_json(&["wait", &id]);
    assert_eq!((&waited["exit_code"], &waited["signal"]), (&json!(137), &json!("SIGKILL")), "{waited}");
    mark.expect_gone();
}
