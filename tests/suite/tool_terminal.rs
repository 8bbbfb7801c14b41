//! The tool `terminal`, as an agent calls it.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hostel::tools::{Call, Listener, call};
use hostel::{Host, Options};
use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{Home, by_both_roads, finish, on_every_backend_by_both_roads};
use rustix::process::Signal;
use serde_json::{Value, json};

by_both_roads! {
    what_looks_like_a_failure_is_explained what_would_be_lost_in_the_foreground_is_refused_with_guidance
    arguments_that_do_not_fit_are_errors_that_say_so
    more_time_than_the_foreground_has_is_had_in_the_background secrets_are_taken_out_wherever_they_stand
}

/// What stands behind the output of a command whose time was up.
const TIMED_OUT: &str = "[Command timed out after 1s]";

/// Holds a result to what all have in common.
#[track_caller]
fn result(value: Value) -> Value {
    let first: Vec<&String> = value.as_object().unwrap().keys().take(3).collect();
    assert_eq!(first, ["output", "exit_code", "error"], "{value}");
    value
}

/// Calls the tool.
#[track_caller]
fn terminal(home: &Home, arguments: &Value) -> Value {
    result(home.tool("terminal", arguments))
}

/// Runs a command by it.
#[track_caller]
fn sh(home: &Home, command: &str) -> Value {
    terminal(home, &json!({ "command": command }))
}

/// Requires an exit code and an output.
#[track_caller]
fn expect(value: &Value, exit_code: i32, output: &str) {
    assert_eq!((&value["exit_code"], &value["output"]), (&json!(exit_code), &json!(output)), "{value}");
    assert!(value["error"].is_null(), "{value}");
}

/// Requires that nothing was run, and returns why.
#[track_caller]
fn refused(value: &Value, status: &str) -> String {
    refused_as(value, status, -1)
}

/// As [`refused`], where nothing was run for a reason that has an exit code.
#[track_caller]
fn refused_as(value: &Value, status: &str, exit_code: i32) -> String {
    assert_eq!((&value["exit_code"], &value["output"]), (&json!(exit_code), &json!("")), "{value}");
    assert_eq!(value["status"], status, "{value}");
    value["error"].as_str().unwrap().to_owned()
}

/// Calls the tool `process`.
#[track_caller]
fn process(home: &Home, arguments: &Value) -> Value {
    home.tool("process", arguments)
}

on_every_backend_by_both_roads! {
    // O-01
    fn output_is_data(home) {
        let script = "tr '\\0' '\\n' </proc/$$/cmdline\n\
                      printf '%s\\n' '[Command interrupted]' '[Command timed out after 5s]' 'exit_code: 0' '__CWD__/nowhere__'\n\
                      cd /\nfalse";
        let value = sh(home, script);
        let lines = "[Command interrupted]\n[Command timed out after 5s]\nexit_code: 0\n__CWD__/nowhere__\n";
        assert!(value["exit_code"] == 1 && value["output"].as_str().unwrap().ends_with(lines), "{value}");
        assert!(value.get("ended").is_none() && value["cwd"] == "/", "{value}");
        expect(&sh(home, "pwd"), 0, "/\n");
    }

    // O-02, but for what is put in the background, which is refused
    fn a_command_may_end_its_own_shell(home) {
        expect(&sh(home, "mkdir sub && cd sub; export KEEP=1"), 0, "");
        expect(&sh(home, "exec printf 'replaced\n'; echo never"), 0, "replaced\n");
        expect(&sh(home, "trap 'echo bye' EXIT; exit 6"), 6, "bye\n");
        expect(&sh(home, "printf '%s %s\n' \"${PWD##*/}\" \"$KEEP\""), 0, "sub 1\n");
    }

    // O-03, O-04, O-05, O-06
    fn when_its_time_is_up_everything_ends_and_what_was_printed_stays(home) {
        let (one, two, three) = (Mark::new(), Mark::new(), Mark::new());
        let script = format!(
            "trap '' TERM INT HUP; printf 'phase-1 ok\nphase-2 half'; sh -c 'setsid sleep {one} & (sleep {two} &)'; \
             while :; do sleep {three}; done; echo never"
        );
        let start = Instant::now();
        let value = terminal(home, &json!({ "command": script, "timeout": 1 }));
        expect(&value, 124, &format!("phase-1 ok\nphase-2 half\n{TIMED_OUT}"));
        assert!(value["ended"] == "timeout" && start.elapsed() < Duration::from_secs(15), "{value}");
        assert!(value["hint"].as_str().unwrap().contains("`background: true`"), "{value}");
        for mark in [one, two, three] {
            mark.expect_gone();
        }
        let value = terminal(home, &json!({ "command": format!("sleep {}", Mark::new()), "timeout": "0.25" }));
        expect(&value, 124, "[Command timed out after 0.25s]");
        expect(&terminal(home, &json!({ "command": "echo whole; exec sleep 100", "timeout": 1.0 })), 124, &format!("whole\n{TIMED_OUT}"));
    }

    // O-07: started by the means that there are for it
    fn what_is_started_in_the_background_outlives_the_call(home) {
        let mark = Mark::new();
        let value = terminal(home, &json!({
            "command": format!("echo up; sleep {mark}"), "background": true, "check_interval": 5
        }));
        let id = value["session_id"].as_str().unwrap();
        assert!(value["exit_code"] == 0 && value["output"].as_str().unwrap().contains(id), "{value}");
        assert!(value["pid"].as_u64().is_some() && value["error"].is_null(), "{value}");
        assert!(value["warnings"].to_string().contains("`check_interval`"), "{value}");
        home.hear(id, "up\n");
        expect(&sh(home, "echo next"), 0, "next\n");
        mark.appear(1);
        assert_eq!(process(home, &json!({ "action": "kill", "session_id": id }))["status"], "killed");
        mark.expect_gone();
    }

    // O-09
    fn it_reads_nothing(home) {
        expect(&sh(home, "cat; echo first-done"), 0, "first-done\n");
        let words = ["tool", "terminal", "--json", "{\"command\": \"cat; echo first-done\"}"];
        expect(&finish(home.command("hostel", &words), b"not for it\n").json(), 0, "first-done\n");
    }

    // O-11, O-12
    fn output_becomes_text(home) {
        expect(&sh(home, "printf 'caf\\351 \\377\\376 end\\n'; echo tail; exit 2"), 2, "caf\u{fffd} \u{fffd}\u{fffd} end\ntail\n");
        expect(&sh(home, "printf 'price \\342\\202'; sleep 0.3; printf '\\254 5\\n'"), 0, "price € 5\n");
        let value = sh(home, "head -c 65535 /dev/zero | tr '\\0' x; printf '\\342\\202\\254\\n'");
        let output = value["output"].as_str().unwrap();
        assert!(output.ends_with("x€\n") && !output.contains('\u{fffd}'), "{value}");
        expect(&sh(home, "printf '\\033[1;31mred\\033[0m\\a 10 %%\\r\\033[K100 %%\\r\\n\\033]0;title\\007end\\n'"), 0, "100 %\nend\n");
    }

    // O-13, O-59
    // upstream #73683: a directory that was named for one call stayed the session's
    fn a_directory_is_for_one_call_and_must_be_there(home) {
        let here = sh(home, "pwd")["output"].as_str().unwrap().trim_end().to_owned();
        let value = terminal(home, &json!({ "command": "pwd; cd /usr", "workdir": "/" }));
        expect(&value, 0, "/\n");
        assert!(value.get("cwd").is_none(), "{value}");
        expect(&sh(home, "mkdir -p inner; pwd"), 0, &format!("{here}\n"));
        expect(&terminal(home, &json!({ "command": "pwd", "workdir": "inner" })), 0, &format!("{here}/inner\n"));
        expect(&terminal(home, &json!({ "command": "pwd", "workdir": "" })), 0, &format!("{here}\n"));
        for wrong in ["no/such/dir", "-", "--help"] {
            let value = terminal(home, &json!({ "command": "echo ran", "workdir": wrong }));
            let why = refused_as(&value, "error", 126);
            assert!(why.contains("directory"), "{why}");
        }
        for (wrong, named) in [
            ("nodir; touch pwned", "`;`"),
            ("$(touch pwned)", "`$`"),
            ("`touch pwned`", "```"),
            ("a\ntouch pwned", "`\\n`"),
            ("~/;touch pwned", "`;`"),
            ("x' 'y", "`\\'`"),
        ] {
            let why = refused(&terminal(home, &json!({ "command": "echo ran", "workdir": wrong })), "blocked");
            assert!(why.contains(named), "{why}");
        }
        expect(&sh(home, "ls -d pwned* 2>/dev/null; ls ~/pwned* 2>/dev/null; echo none"), 0, "none\n");
        expect(&sh(home, "mkdir w && cd w"), 0, "");
        expect(&sh(home, "rmdir ../w; echo gone"), 0, "gone\n");
        let value = sh(home, "echo hi");
        assert!(value["output"] == "hi\n" && value["exit_code"] == 0, "{value}");
        assert!(value["warnings"].to_string().contains("is gone"), "{value}");
    }

    // O-17, O-18
    fn the_text_reaches_the_shell_as_it_is(home) {
        expect(&sh(home, "cat <<'END'\nalpha\n  $HOME & x\nEND"), 0, "alpha\n  $HOME & x\n");
        expect(&sh(home, "cat > f.txt <<X\nbody\nX"), 0, "");
        expect(&sh(home, "wc -c < f.txt; echo hi # tail & note"), 0, "5\nhi\n");
        expect(&sh(home, "echo hi \\"), 0, "hi \\\n");
        let script = "printf '%s|' \"a != b\" '!x' \"wow!\" $'tab\\there' 'it'\\''s' \"\\$HOME\" '`date`' 'a\\nb' \"%d\"";
        expect(&sh(home, script), 0, "a != b|!x|wow!|tab\there|it's|$HOME|`date`|a\\nb|%d|");
    }

    // O-19, O-20
    fn of_a_large_output_the_middle_is_left_out(home) {
        let value = sh(home, "head -c 20000000 /dev/zero | tr '\\0' q; echo; echo END; exit 3");
        let output = value["output"].as_str().unwrap();
        assert!(value["exit_code"] == 3 && output.starts_with("qqq") && output.ends_with("q\nEND\n"), "{}", value["exit_code"]);
        assert!(output.len() < 50_200 && output.contains("bytes left out"), "{}", output.len());
        assert_eq!(value["output_total_chars"], 20_000_005);
        let path = value["full_output_path"].as_str().unwrap();
        assert_eq!(fs::metadata(path).unwrap().len(), 20_000_005);
        assert!(value["truncation_note"].as_str().unwrap().contains(path), "{}", value["truncation_note"]);
        let value = terminal(home, &json!({ "command": "yes", "timeout": 1 }));
        assert!(value["exit_code"] == 124 && value["output"].as_str().unwrap().ends_with(&format!("y\n{TIMED_OUT}")));
        let value = terminal(home, &json!({ "command": "head -c 500000 /dev/zero | tr '\\0' e >&2; echo out-done", "timeout": 20 }));
        assert!(value["exit_code"] == 0 && value["output"].as_str().unwrap().ends_with("out-done\n"));
        expect(&sh(home, "for i in 1 2 3; do echo o$i; echo e$i >&2; done"), 0, "o1\ne1\no2\ne2\no3\ne3\n");
    }

    // O-21, O-22
    fn exit_codes_are_the_shells(home) {
        for (command, code) in [("kill -9 $$", 137), ("kill -TERM $$; echo alive", 143), ("sh -c 'kill -SEGV $$'; exit $?", 139)] {
            let value = sh(home, command);
            assert_eq!(value["exit_code"], code, "{value}");
            assert!(value["exit_code_meaning"].as_str().unwrap().contains("SIG"), "{value}");
            assert!(!value["output"].as_str().unwrap().contains("alive"), "{value}");
        }
        for (command, code) in [("exit 300", 44), ("exit -1", 255), ("nosuchcommand_q", 127), ("/etc/passwd", 126), ("exit 124", 124)] {
            let value = sh(home, command);
            assert_eq!(value["exit_code"], code, "{value}");
            assert!(value.get("exit_code_meaning").is_none() && value.get("ended").is_none(), "{value}");
        }
        expect(&sh(home, "yes | head -n 1; echo \"${PIPESTATUS[*]}\""), 0, "y\n141 0\n");
    }
}

fn what_looks_like_a_failure_is_explained(road: Road) {
    let home = TidyHome::new().by(road);
    for (command, code, part) in [
        ("grep needle /dev/null", 1, "no match"),
        ("cat /dev/null | grep -c needle >/dev/null", 1, "no match"),
        ("echo a > a; diff a /dev/null >/dev/null", 1, "differ"),
        ("[ -e nothing ]", 1, "false"),
        ("find nothing 2>/dev/null", 1, "could not be looked at"),
    ] {
        let value = sh(&home, command);
        assert_eq!(value["exit_code"], code, "{value}");
        assert!(value["exit_code_meaning"].as_str().unwrap_or_default().contains(part), "{value}");
    }
    for command in ["false", "grep needle /dev/null | cat; false", "true"] {
        assert!(sh(&home, command).get("exit_code_meaning").is_none(), "{command}");
    }
}

fn what_would_be_lost_in_the_foreground_is_refused_with_guidance(road: Road) {
    let home = TidyHome::new().by(road);
    for command in [
        "touch ran; sleep 5 &",
        "touch ran & echo x",
        "touch ran; nohup sleep 5",
        "touch ran; setsid sleep 5",
        "touch ran; disown",
        "touch ran; npm run dev",
        "touch ran; docker compose up",
        "touch ran; python3 -m http.server",
        "touch ran && env A=1 uvicorn app:app",
    ] {
        let value = sh(&home, command);
        refused(&value, "error");
        assert!(value["hint"].as_str().unwrap().contains("`background: true`"), "{value}");
        assert!(!home.path().join("ran").exists(), "{command}");
    }
    // O-27
    for (command, output) in [
        ("echo \"a & b\" 'nohup x &'", "a & b nohup x &\n"),
        ("cat <<'EOF'\nsetsid a &\nEOF", "setsid a &\n"),
        ("true && echo x 2>&1 # &", "x\n"),
        ("echo $((6 & 3))", "2\n"),
    ] {
        expect(&sh(&home, command), 0, output);
    }
    // In the background nothing of that is refused, but it is told.
    let value = terminal(&home, &json!({ "command": "true &", "background": true }));
    assert!(value["warnings"][0].as_str().unwrap().contains("`&`"), "{value}");
}

fn arguments_that_do_not_fit_are_errors_that_say_so(road: Road) {
    let home = TidyHome::new().by(road);
    for (arguments, part) in [
        (json!({}), "`command`"),
        (json!({ "command": 5 }), "a string"),
        (json!({ "command": "  " }), "empty"),
        (json!({ "command": "touch ran", "cwd": "/" }), "`workdir`"),
        (json!({ "command": "touch ran", "timeout": -1 }), "`timeout`"),
        (json!({ "command": "touch ran", "timeout": "soon" }), "a number"),
        (json!({ "command": "touch ran", "pty": true }), "`background: true`"),
        (json!({ "command": "touch ran", "notify": 5 }), "list of texts"),
        (json!({ "command": "touch ran\0" }), "NUL"),
    ] {
        let why = refused(&terminal(&home, &arguments), "error");
        assert!(why.contains(part), "{why}");
        assert!(!home.path().join("ran").exists(), "{arguments}");
    }
    let nothing = json!({ "command": "echo x", "timeout": null, "workdir": null, "background": null, "pty": "false", "notify": null });
    expect(&terminal(&home, &nothing), 0, "x\n");
}

fn more_time_than_the_foreground_has_is_had_in_the_background(road: Road) {
    let home = TidyHome::new().by(road).with("TERMINAL_MAX_FOREGROUND_TIMEOUT", "1");
    let most = |arguments: &Value| terminal(&home, arguments);
    expect(&most(&json!({ "command": "echo x", "timeout": 1 })), 0, "x\n");
    let value = most(&json!({ "command": "echo x; exit 3", "timeout": 60 }));
    assert_eq!(
        (&value["status"], &value["notify_on_complete"]),
        (&json!("yielded_to_background"), &json!(true)),
        "{value}"
    );
    assert!(value["hint"].as_str().unwrap().contains("60 s are more than the 1 s"), "{value}");
    let waited = process(&home, &json!({ "action": "wait", "session_id": value["session_id"] }));
    assert_eq!((&waited["exit_code"], &waited["output"]), (&json!(3), &json!("x\n")), "{waited}");
    let mark = Mark::new();
    let value = most(&json!({ "command": format!("sleep {mark}"), "timeout": 2 }));
    let waited = process(&home, &json!({ "action": "wait", "session_id": value["session_id"] }));
    assert_eq!(
        (&waited["completion_reason"], &waited["termination_source"]),
        (&json!("killed"), &json!("lease")),
        "{waited}"
    );
    mark.expect_gone();
}

// O-23: what the host must not tell, an agent is not told either
fn secrets_are_taken_out_wherever_they_stand(road: Road) {
    let home = Home::new().by(road).with("SUDO_PASSWORD", "long-secret-77").with("MODAL_TOKEN_ID", "short");
    let value =
        sh(&home, "printf 'a long-%s b\\n' secret-77; printf 'long-se'; sleep 0.2; echo cret-77; echo short");
    expect(&value, 0, "a [redacted SUDO_PASSWORD] b\n[redacted SUDO_PASSWORD]\nshort\n");
    let token = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let key = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
    let script = format!(
        "echo {token}; printf '%s\\n' '-----BEGIN OPENSSH PRIVATE KEY-----' {key} {key} '-----END OPENSSH PRIVATE KEY-----' after"
    );
    expect(&sh(&home, &script), 0, "[redacted GitHub token]\n[redacted private key]\nafter\n");
    let value = sh(&home, "for i in $(seq 6000); do echo long-${i:+secret}-77; done");
    let whole = fs::read_to_string(value["full_output_path"].as_str().unwrap()).unwrap();
    assert!(!whole.contains("secret-77") && whole.lines().count() == 6000);
    assert!(!value["output"].as_str().unwrap().contains("secret-77"));
}

#[test]
fn a_call_that_is_interrupted_ends_its_command() {
    let home = TidyHome::new();
    let mark = Mark::new();
    let arguments = json!({ "command": format!("printf half; sleep {mark}; echo never") }).to_string();
    let call = Conversation::begin(home.command("hostel", &["tool", "terminal", "--json", &arguments]));
    mark.appear(1);
    call.signal(Signal::INT);
    let value = result(call.finish().expect(0).json());
    expect(&value, 130, "half\n[Command interrupted]");
    assert_eq!(value["ended"], "interrupted");
    mark.expect_gone();
}

#[test]
fn a_session_tells_what_is_news_and_hears_what_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let home = hostel::home::Home::at(dir.path().join("home")).unwrap();
    let host = Host::open(Options { home: Some(home), backend: Some("local".into()) }).unwrap();
    let session = host.session("here").unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&heard);
    let listener: Listener = Arc::new(move |bytes: &[u8]| theirs.lock().unwrap().extend_from_slice(bytes));
    let run = |command: &str| {
        let with = Call::new().unwrap().with_listener(Arc::clone(&listener));
        call(&session, "terminal", json!({ "command": command }), &with).value
    };
    assert_eq!(run("cd /; printf '\\033[32m1 %%\\r2 %%\\033[0m\\n'")["cwd"], "/");
    assert_eq!(String::from_utf8_lossy(&heard.lock().unwrap()), "1 %\r2 %\n");
    assert!(run("true").get("cwd").is_none());
    assert_eq!(run("cd /usr")["cwd"], "/usr");
    // Calls at once are apart.
    std::thread::scope(|scope| {
        for number in 0..16 {
            let run = &run;
            scope.spawn(move || {
                let value = run(&format!("sleep 0.1; echo {number}"));
                assert_eq!(value["output"], format!("{number}\n"), "{value}");
            });
        }
    });
    // A caller who gives up is waited for no longer than the command takes to die.
    let mark = Mark::new();
    let given_up = Call::new().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            call(&session, "terminal", json!({ "command": format!("sleep {mark}") }), &given_up).value
        });
        mark.appear(1);
        given_up.cancel().cancel();
        expect(&waiting.join().unwrap(), 130, "[Command interrupted]");
    });
    mark.expect_gone();
    assert!(host.close().is_empty());
}
