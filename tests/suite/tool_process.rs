//! The tool `process`, as an agent calls it.

use std::time::{Duration, Instant};

use hostel::tools::{Call, call};
use hostel::{Host, Options};
use hostel_tests::marked::{Mark, PATIENCE};
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{by_both_roads, on_every_backend_by_both_roads};
use serde_json::{Value, json};

by_both_roads! {
    results_have_the_keys_of_the_contract only_processes_of_the_own_task_are_there
    what_cannot_be_done_says_why_and_what_to_do
    a_log_shows_the_last_lines_or_those_from_an_offset_and_never_too_much
    waiting_is_bounded_and_can_be_given_up to_look_changes_nothing_and_to_wait_settles_it
    a_signal_reaches_it_and_a_lease_can_be_prolonged
    what_happens_in_the_background_is_told_once_and_to_its_own_task
}

/// Calls a tool of `task`.
#[track_caller]
fn tool(home: &TidyHome, task: &str, name: &str, arguments: &Value) -> Value {
    home.tool_of(task, name, arguments)
}

/// Calls the tool.
#[track_caller]
fn process(home: &TidyHome, arguments: &Value) -> Value {
    tool(home, "default", "process", arguments)
}

/// Does something with one process.
#[track_caller]
fn act(home: &TidyHome, action: &str, id: &str) -> Value {
    process(home, &json!({ "action": action, "session_id": id }))
}

/// Starts a process with further arguments, and returns its name.
#[track_caller]
fn start(home: &TidyHome, command: &str, more: &Value) -> String {
    let mut arguments = json!({ "command": command, "background": true });
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    let value = tool(home, "default", "terminal", &arguments);
    value["session_id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// Requires a failure of this sort, and returns why and what to do.
#[track_caller]
fn refused(value: &Value, status: &str) -> String {
    assert_eq!(value["status"], status, "{value}");
    format!("{}; {}", value["error"].as_str().unwrap(), value["hint"].as_str().unwrap_or_default())
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

on_every_backend_by_both_roads! {
    fn it_is_seen_and_ended(home) {
        let mark = Mark::new();
        let id = start(home, &format!("printf '\\033[31mup\\033[0m\\n'; setsid sleep {mark} & sleep {mark}"), &json!({}));
        home.hear(&id, "up");
        mark.appear(2);
        let seen = act(home, "poll", &id);
        assert_eq!(json!([seen["session_id"], seen["status"], seen["output_preview"]]), json!([id, "running", "up\n"]), "{seen}");
        assert!(seen.get("exit_code").is_none() && seen["uptime_seconds"].as_f64().unwrap() > 0.0, "{seen}");
        let list = process(home, &json!({ "action": "list" }));
        assert_eq!(list["processes"][0]["session_id"], id.as_str(), "{list}");
        let waited = process(home, &json!({ "action": "wait", "session_id": id, "timeout": 0.1 }));
        assert!(waited["status"] == "timeout" && waited["output"] == "up\n" && waited.get("exit_code").is_none(), "{waited}");
        let killed = act(home, "kill", &id);
        assert_eq!(json!([killed["status"], killed["exit_code"]]), json!(["killed", -15]), "{killed}");
        mark.expect_gone();
        let seen = act(home, "poll", &id);
        let told = json!([seen["status"], seen["exit_code"], seen["completion_reason"], seen["termination_source"]]);
        assert_eq!(told, json!(["exited", -15, "killed", "kill"]), "{seen}");
        let again = act(home, "kill", &id);
        assert_eq!(json!([again["status"], again["exit_code"]]), json!(["already_exited", -15]), "{again}");
        assert_eq!(act(home, "log", &id)["output"], "up\n");
    }

    // O-08
    fn the_end_of_its_output_is_not_its_own(home) {
        let mark = Mark::new();
        let one = start(home, "exec >/dev/null 2>&1; sleep 1; exit 9", &json!({}));
        let other = start(home, &format!("exec >&- 2>&-; sleep {mark}"), &json!({}));
        mark.appear(1);
        let seen = act(home, "poll", &other);
        assert!(seen["status"] == "running" && seen.get("exit_code").is_none(), "{seen}");
        assert_eq!(act(home, "kill", &other)["status"], "killed");
        mark.expect_gone();
        assert_eq!(act(home, "poll", &other)["completion_reason"], "killed");
        let waited = act(home, "wait", &one);
        assert_eq!(json!([waited["status"], waited["exit_code"]]), json!(["exited", 9]), "{waited}");
    }

    // O-09, O-17
    fn it_reads_nothing_unless_it_may(home) {
        let id = start(home, "cat; echo bg-done", &json!({}));
        let waited = act(home, "wait", &id);
        assert_eq!(json!([waited["exit_code"], waited["output"]]), json!([0, "bg-done\n"]), "{waited}");
        let id = start(home, "cat <<'END'\nbg\nEND", &json!({}));
        assert_eq!(act(home, "wait", &id)["output"], "bg\n");
    }

    // O-12
    fn a_character_is_never_torn(home) {
        let id = start(home, "printf '\\360\\237'; read -r line; printf '\\230\\200 caf\\351\\n'", &json!({ "stdin": true }));
        home.hear(&id, b"\xf0\x9f");
        assert_eq!(act(home, "poll", &id)["output_preview"], "");
        assert_eq!(act(home, "log", &id)["output"], "");
        assert_eq!(act(home, "submit", &id)["bytes_written"], 1);
        assert_eq!(act(home, "wait", &id)["output"], "\u{1f600} caf\u{fffd}\n");
        assert_eq!(act(home, "poll", &id)["output_preview"], "\u{1f600} caf\u{fffd}\n");
    }

    // O-22
    fn a_terminal_is_had_for_the_asking(home) {
        let id = start(home, "yes | head -n 1; echo \"${PIPESTATUS[*]}\"; test -t 0 && stty size", &json!({ "pty": true }));
        assert_eq!(act(home, "wait", &id)["output"], "y\n141 0\n30 120\n");
        let id = start(home, "read -r line; echo \"got=$line\"; stty size; read -r line || echo over", &json!({ "pty": true }));
        let resized = process(home, &json!({ "action": "resize", "session_id": id, "rows": 33, "columns": "99" }));
        assert_eq!(resized["status"], "ok", "{resized}");
        let written = process(home, &json!({ "action": "submit", "session_id": id, "data": "a b" }));
        assert_eq!(json!([written["status"], written["bytes_written"]]), json!(["ok", 4]), "{written}");
        home.hear(&id, "33 99");
        assert_eq!(act(home, "close", &id)["status"], "ok");
        let waited = act(home, "wait", &id);
        assert!(waited["output"].as_str().unwrap().ends_with("got=a b\n33 99\nover\n"), "{waited}");
    }

    fn what_is_written_arrives_as_it_is(home) {
        let id = start(home, "while IFS= read -r line; do echo \"[$line]\"; done; echo over; exit 5", &json!({ "stdin": true }));
        let write = |action: &str, data: &str| {
            let value = process(home, &json!({ "action": action, "session_id": id, "data": data }));
            assert_eq!(value["status"], "ok", "{value}");
            value["bytes_written"].as_u64().unwrap()
        };
        assert_eq!((write("submit", "-n $HOME & 'x'"), write("write", "half "), write("submit", "café\nnext")), (15, 5, 11));
        home.hear(&id, "[next]\n");
        assert_eq!(act(home, "close", &id)["status"], "ok");
        let waited = act(home, "wait", &id);
        assert_eq!(json!([waited["exit_code"], waited["output"]]), json!([5, "[-n $HOME & 'x']\n[half café]\n[next]\nover\n"]));
        let why = refused(&process(home, &json!({ "action": "write", "session_id": id, "data": "x" })), "already_exited");
        assert!(why.contains("`log`"), "{why}");
    }
}

fn results_have_the_keys_of_the_contract(road: Road) {
    let home = TidyHome::new().by(road);
    let id = start(&home, "echo hi; exit 3", &json!({ "workdir": "/" }));
    let waited = act(&home, "wait", &id);
    assert_eq!(keys(&waited), ["status", "session_id", "exit_code", "completion_reason", "output"]);
    let seen = act(&home, "poll", &id);
    assert_eq!(
        keys(&seen),
        [
            "status",
            "session_id",
            "command",
            "pid",
            "backend",
            "cwd",
            "started_at",
            "uptime_seconds",
            "output_preview",
            "exit_code",
            "completion_reason"
        ]
    );
    let log = act(&home, "log", &id);
    assert_eq!(keys(&log), ["status", "session_id", "output", "total_lines", "showing"]);
    let list = process(&home, &json!({ "action": "list" }));
    assert_eq!(keys(&list), ["processes"]);
    let row = &list["processes"][0];
    for key in [
        "session_id",
        "command",
        "cwd",
        "pid",
        "started_at",
        "uptime_seconds",
        "status",
        "output_preview",
        "exit_code",
    ] {
        assert!(!row[key].is_null(), "{key}: {row}");
    }
    assert_eq!(keys(&act(&home, "kill", &id)), ["status", "session_id", "exit_code"]);
}

fn only_processes_of_the_own_task_are_there(road: Road) {
    let home = TidyHome::new().by(road);
    let id = start(&home, "sleep 100", &json!({}));
    for id in ["proc_0123456789ab", "x", "../processes", "proc_0123456789AB"] {
        for action in ["poll", "log", "wait", "kill", "write", "submit", "close", "resize", "signal", "renew"]
        {
            let value = process(
                &home,
                &json!({ "action": action, "session_id": id, "data": "x", "rows": 9, "columns": 9, "signal": "INT" }),
            );
            let why = refused(&value, "not_found");
            assert!(why.contains(id) && why.contains("`list`"), "{why}");
        }
    }
    let other = |arguments: &Value| tool(&home, "other", "process", arguments);
    for action in ["poll", "log", "wait", "kill", "write", "close"] {
        refused(&other(&json!({ "action": action, "session_id": id, "data": "x" })), "not_found");
    }
    assert_eq!(other(&json!({ "action": "list" }))["processes"], json!([]));
    assert_eq!(act(&home, "poll", &id)["status"], "running");
}

fn what_cannot_be_done_says_why_and_what_to_do(road: Road) {
    let home = TidyHome::new().by(road);
    let id = start(&home, "sleep 100", &json!({}));
    for (arguments, part) in [
        (json!({ "action": "write", "session_id": id, "data": "x" }), "`stdin`"),
        (json!({ "action": "write", "session_id": id }), "`data` is missing"),
        (json!({ "action": "close", "session_id": id }), "`stdin`"),
        (json!({ "action": "resize", "session_id": id, "rows": 9, "columns": 9 }), "`pty`"),
        (json!({ "action": "resize", "session_id": id, "rows": 0, "columns": 9 }), "1 to 65535"),
        (json!({ "action": "signal", "session_id": id, "signal": "NOPE" }), "`INT`"),
        (json!({ "action": "renew", "session_id": id }), "no lease"),
        (json!({ "action": "wait", "session_id": id, "timeout": -1 }), "negative"),
        (json!({ "action": "poll" }), "`session_id` is missing"),
        (json!({ "action": "stop" }), "`kill`"),
        (json!({ "session_id": id }), "`action`"),
        (json!({ "action": "poll", "id": id }), "`session_id`"),
        (json!({ "action": "log", "session_id": id, "offset": -1 }), "not negative"),
    ] {
        let why = refused(&process(&home, &arguments), "error");
        assert!(why.contains(part), "{arguments}: {why}");
    }
    assert_eq!(act(&home, "poll", &id)["status"], "running");
}

fn a_log_shows_the_last_lines_or_those_from_an_offset_and_never_too_much(road: Road) {
    let home = TidyHome::new().by(road);
    let id = start(&home, "seq 1 1000 | sed 's/$/ \\x1b[32mgreen\\x1b[0m/'", &json!({}));
    let _ = act(&home, "wait", &id);
    let log = |more: Value| {
        let mut arguments = json!({ "action": "log", "session_id": id });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        process(&home, &arguments)
    };
    let lines =
        |value: &Value| value["output"].as_str().unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let value = log(json!({}));
    assert_eq!((lines(&value).len(), value["total_lines"].as_u64()), (200, Some(1000)));
    assert_eq!((lines(&value)[0].as_str(), &value["showing"]), ("801 green", &json!("200 lines")));
    assert_eq!(lines(&log(json!({ "offset": 10, "limit": "2" }))), ["11 green", "12 green"]);
    assert_eq!(lines(&log(json!({ "offset": 0, "limit": 1 }))), ["1000 green"]);
    assert_eq!(lines(&log(json!({ "offset": 5000 }))), [] as [&str; 0]);
    let _ = home.hostel(&["config", "set", "tool_output.max_bytes", "100"]).expect(0);
    home.hang_up();
    let value = log(json!({}));
    assert!(
        value["output"].as_str().unwrap().len() <= 100 && lines(&value).last().unwrap() == "1000 green",
        "{value}"
    );
    assert!(value["truncation_note"].as_str().unwrap().contains("the last"), "{value}");
    let value = log(json!({ "offset": 1 }));
    assert!(value["output"].as_str().unwrap().len() <= 100 && lines(&value)[0] == "2 green", "{value}");
}

fn waiting_is_bounded_and_can_be_given_up(road: Road) {
    let home = TidyHome::new().by(road);
    let _ = home.hostel(&["config", "set", "terminal.timeout", "0.3"]).expect(0);
    let mark = Mark::new();
    let id = start(&home, &format!("sleep {mark}"), &json!({}));
    let begun = Instant::now();
    let value = process(&home, &json!({ "action": "wait", "session_id": id, "timeout": 600 }));
    assert!(value["status"] == "timeout" && begun.elapsed() < Duration::from_secs(10), "{value}");
    assert!(value["timeout_note"].as_str().unwrap().contains("0.3 s"), "{value}");
    assert!(act(&home, "wait", &id).get("timeout_note").is_none());
    let _ = home.hostel(&["config", "set", "terminal.timeout", "180"]).expect(0);
    home.hang_up();
    mark.appear(1);
    let own = hostel::home::Home::at(home.path().to_owned()).unwrap();
    let host = Host::open(Options { home: Some(own), backend: None }).unwrap();
    let session = host.session("default").unwrap();
    let given_up = Call::new().unwrap();
    given_up.cancel().cancel();
    let value = call(&session, "process", json!({ "action": "wait", "session_id": id }), &given_up).value;
    assert_eq!(value["status"], "interrupted", "{value}");
    assert_eq!(mark.pids().len(), 1, "only the waiting has ended");
}

// upstream #10156: to poll took away the notice that a process had ended
fn to_look_changes_nothing_and_to_wait_settles_it(road: Road) {
    let home = TidyHome::new().by(road);
    let notices = || home.process_json(&["notices", "--keep"])["notices"].as_array().unwrap().len();
    let ended = || {
        // A little later, since the answer that starts it would tell of it as well.
        let id = start(&home, "sleep 0.5; exit 4", &json!({ "notify": true }));
        let until = Instant::now() + PATIENCE;
        while notices() == 0 {
            assert!(Instant::now() < until, "no notice came");
            std::thread::sleep(Duration::from_millis(20));
        }
        id
    };
    let id = ended();
    for action in ["poll", "list"] {
        assert!(act(&home, action, &id).get("notices").is_none());
        assert_eq!(notices(), 1, "{action}");
    }
    for action in ["wait", "log", "kill"] {
        let value = act(&home, action, &id);
        assert!(value.get("notices").is_none() && notices() == 0, "{action}: {value}");
        let _ = ended();
        // Of another process it is told along with this one's.
        let value = act(&home, action, &id);
        assert_eq!(value["notices"][0]["exit_code"], 4, "{action}: {value}");
        let again = process(&home, &json!({ "action": "notices" }));
        assert_eq!(again["notices"], json!([]));
    }
}

fn a_signal_reaches_it_and_a_lease_can_be_prolonged(road: Road) {
    let home = TidyHome::new().by(road);
    let script = "trap 'echo usr1; exit 4' USR1; echo up; while :; do sleep 0.05; done";
    let id = start(&home, script, &json!({}));
    home.hear(&id, "up\n");
    let value = process(&home, &json!({ "action": "signal", "session_id": id, "signal": 28 }));
    assert_eq!(value["status"], "ok", "{value}");
    let value = process(&home, &json!({ "action": "signal", "session_id": id, "signal": "usr1" }));
    assert!(value["status"] == "ok" && value["processes_signalled"].as_u64().unwrap() >= 1, "{value}");
    let value = act(&home, "wait", &id);
    assert!(value["exit_code"] == 4 && value["output"].as_str().unwrap().ends_with("usr1\n"), "{value}");
    let leased = home.start(&["--lifetime", "lease", "--lease", "600"], "sleep 100");
    let until = act(&home, "poll", &leased)["lease_until"].as_f64().unwrap();
    let value = process(&home, &json!({ "action": "renew", "session_id": leased, "lease": 6000 }));
    assert!(value["status"] == "ok" && value["lease_until"].as_f64().unwrap() > until + 1000.0, "{value}");
}

fn what_happens_in_the_background_is_told_once_and_to_its_own_task(road: Road) {
    let home = TidyHome::new().by(road);
    let heard = |task: &str| tool(&home, task, "terminal", &json!({ "command": "true" }))["notices"].clone();
    let told = || {
        let until = Instant::now() + PATIENCE;
        loop {
            let notices = heard("default");
            if !notices.is_null() {
                return notices;
            }
            assert!(Instant::now() < until, "nothing was told");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // A little later, since the answer that starts it would tell of it as well.
    let id = start(&home, "sleep 0.5; printf '\\033[1mdone\\033[0m\\n'; exit 4", &json!({ "notify": true }));
    let notices = told();
    let notice = &notices[0];
    assert_eq!(
        json!([notice["session_id"], notice["kind"], notice["exit_code"], notice["output"]]),
        json!([id, "completed", 4, "done\n"]),
        "{notices}"
    );
    assert!(notices.as_array().unwrap().len() == 1 && heard("default").is_null());
    let watched = start(
        &home,
        "sleep 0.5; echo now listening on 80; cat",
        &json!({ "pty": true, "notify": ["listening"] }),
    );
    let notices = told();
    assert_eq!(
        json!([notices[0]["session_id"], notices[0]["kind"], notices[0]["output"]]),
        json!([watched, "matched", "now listening on 80"])
    );
    start(&home, "sleep 0.5; exit 5", &json!({ "notify_on_complete": true }));
    assert!(heard("other").is_null());
    assert_eq!(told()[0]["exit_code"], 5);
}
