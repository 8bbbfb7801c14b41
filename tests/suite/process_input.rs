//! What is given to a background process: input, its end, a terminal's size, and signals.

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use hostel_tests::{finish, on_every_backend};
use serde_json::{Value, json};

/// Runs `hostel process` with `--json`, requires that it fails, and returns what sort of failure that is.
#[track_caller]
fn refused(home: &TidyHome, words: &[&str]) -> String {
    let (verb, rest) = words.split_at(1);
    let told = home.process(&[verb, &["--json"], rest].concat()).expect(1).json();
    assert_eq!(told["status"], "error", "{told}");
    told["kind"].as_str().unwrap().to_owned()
}

on_every_backend! {
    fn what_is_written_arrives_as_it_is(home) {
        let id = home.start(&["--stdin"], "while IFS= read -r line; do echo \"[$line]\"; done; echo over; exit 5");
        assert_eq!(home.process(&["write", &id, "a  b", "--newline"]).expect(0).text(), "5 bytes written\n");
        let written = home.process_json(&["write", &id, "--", "-n $HOME\n'\\\n"]);
        assert_eq!(written, json!({"status": "ok", "bytes_written": 12}));
        home.hear(&id, "[a  b]\n[-n $HOME]\n['\\]\n");
        let ran = finish(home.command("hostel", &["process", "write", &id, "--close"]), "café\nhalf".as_bytes());
        assert_eq!(ran.expect(0).text(), "10 bytes written\n");
        let _ = home.process(&["wait", &id]).expect(5);
        let ran = home.process(&["logs", &id]).expect(0);
        assert_eq!(ran.text(), "[a  b]\n[-n $HOME]\n['\\]\n[café]\nover\n", "{ran:?}");
        assert_eq!(refused(home, &["write", &id, "x"]), "already_exited");
        assert_eq!(refused(home, &["signal", &id, "INT"]), "already_exited");
        assert_eq!(refused(home, &["resize", &id, "9x9"]), "already_exited");
        let id = home.start(&["--stdin"], "cat");
        let bytes = b"\xff\xfe\0\x1b[31m\r\n caf\xe9";
        let ran = finish(home.command("hostel", &["process", "write", &id, "--close"]), bytes);
        let _ = (ran.expect(0), home.process(&["wait", &id]).expect(0));
        assert_eq!(home.process(&["logs", &id, "--bytes-from", "0"]).expect(0).stdout, bytes);
    }

    fn a_terminal_has_a_size_that_changes(home) {
        let script = "trap 'stty size' WINCH; test -t 0 && test -t 1 && test -t 2 && stty size; echo up; \
                      until read -r line; do :; done; echo \"got $line\"; exit 3";
        let id = home.start(&["--pty", "--size", "24x80"], script);
        home.hear(&id, "24 80\r\nup\r\n");
        let resized = home.process_json(&["resize", &id, "33x99"]);
        assert_eq!(resized, json!({"status": "ok", "rows": 33, "columns": 99}));
        // A shell runs its trap once what it waits for is over.
        let _ = home.process(&["write", &id, "typed", "--newline"]).expect(0);
        let ran = home.process(&["wait", &id]).expect(3);
        assert!(ran.text().contains("33 99\r\n") && ran.text().ends_with("got typed\r\n"), "{ran:?}");
        let id = home.start(&["--pty"], "stty size");
        assert_eq!(home.process(&["wait", &id]).expect(0).text(), "30 120\r\n");
    }

    fn a_signal_reaches_what_it_has_started(home) {
        let script = "trap 'echo usr1' USR1; trap 'echo usr2; exit 4' USR2; echo up; while :; do sleep 0.05; done";
        let id = home.start(&[], script);
        home.hear(&id, "up\n");
        // Also the `sleep`, which dies of it: the shell may say so.
        let sent = home.process_json(&["signal", &id, "USR1"]);
        assert!(sent["status"] == "ok" && sent["processes"].as_u64().unwrap() >= 1, "{sent}");
        home.hear(&id, "usr1\n");
        let _ = home.process(&["signal", &id, "sigusr2"]).expect(0);
        assert!(home.process(&["wait", &id]).expect(4).text().ends_with("usr2\n"));
        assert_eq!(home.process_json(&["poll", &id])["status"], "exited");
    }
}

#[test]
fn what_a_process_cannot_take_is_refused() {
    let home = TidyHome::new();
    let id = home.start(&[], "sleep 100");
    assert_eq!(refused(&home, &["write", &id, "x"]), "stdin_closed");
    assert_eq!(refused(&home, &["resize", &id, "20x20"]), "no_terminal");
    assert_eq!(refused(&home, &["renew", &id]), "no_lease");
    home.process(&["write", &id, "x"]).fails(1, "reads no input");
    home.process(&["resize", &id, "20x20"]).fails(1, "runs on no terminal");
    let reader = home.start(&["--stdin"], "head -c 1; exec sleep 100");
    let _ = home.process(&["write", &reader, "x", "--close"]).expect(0);
    assert_eq!(refused(&home, &["write", &reader, "x"]), "stdin_closed");
    assert_eq!(home.process_json(&["poll", &reader])["status"], "running");
}

#[test]
fn what_is_not_read_waits_and_a_mebibyte_of_it_is_enough() {
    let home = TidyHome::new();
    let write = |id: &str, bytes: usize| {
        finish(home.command("hostel", &["process", "write", "--json", id]), &vec![b'x'; bytes])
    };
    let id = home.start(&["--stdin"], "read -r -t 60 -u 9 9<&0; exec sleep 100");
    let idle = home.start(&["--stdin"], "exec sleep 100");
    let ran = write(&idle, 1 << 20).expect(0);
    assert_eq!(ran.json()["bytes_written"], 1 << 20);
    let told = write(&idle, 1 << 20).expect(1).json();
    assert_eq!((&told["status"], &told["kind"]), (&json!("error"), &json!("stdin_full")), "{told}");
    // A process that does not read can be ended all the same, and holds up no other.
    assert_eq!(home.process_json(&["kill", &idle])["status"], "killed");
    assert_eq!(home.process_json(&["kill", &id])["status"], "killed");
    let id = home.start(&["--stdin"], "wc -c");
    let _ = write(&id, 5_000_000).expect(0);
    let _ = home.process(&["write", &id, "", "--close"]).expect(0);
    assert_eq!(home.process(&["wait", &id]).expect(0).text(), "5000000\n");
}

#[test]
fn two_processes_at_once_are_apart() {
    let home = TidyHome::new();
    let ids: Vec<(usize, String)> = std::thread::scope(|scope| {
        let home = &home;
        let start = move |number: usize| {
            let command = format!("read -r line; echo \"{number}: $line\"; exit {number}");
            (number, home.start(&["--stdin"], &command))
        };
        let started: Vec<_> = (1..=8).map(|number| scope.spawn(move || start(number))).collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (number, id) in ids.iter().rev() {
        let _ = home.process(&["write", id, &format!("for {number}"), "--newline"]).expect(0);
    }
    for (number, id) in &ids {
        let code = i32::try_from(*number).unwrap();
        let ran = home.process(&["wait", id]).expect(code);
        assert_eq!(ran.text(), format!("{number}: for {number}\n"));
    }
    let listed: Vec<Value> = home.processes().iter().map(|row| row["exit_code"].clone()).collect();
    assert_eq!(listed.len(), 8, "{listed:?}");
}

#[test]
fn two_who_write_at_once_do_not_tear_each_others_lines() {
    let home = TidyHome::new();
    let id = home.start(&["--stdin"], "sort | uniq -c | tr -s ' '");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let (home, id) = (&home, &id);
            let line = letter.repeat(3000);
            scope.spawn(move || {
                for _ in 0..5 {
                    let _ = home.process(&["write", id, &format!("{line}\n")]).expect(0);
                }
            });
        }
    });
    let _ = home.process(&["write", &id, "", "--close"]).expect(0);
    let _ = home.process(&["wait", &id]).expect(0);
    let lines = ["a", "b", "c", "d"].map(|letter| format!(" 5 {}\n", letter.repeat(3000)));
    assert_eq!(home.process(&["logs", &id]).expect(0).text(), lines.concat());
}

#[test]
fn ctrl_d_and_ctrl_c_are_typed_on_a_terminal() {
    let home = TidyHome::new();
    let id = home.start(&["--pty"], "cat; echo \"cat: $?\"; exit 6");
    let _ = home.process(&["write", &id, "one", "--newline", "--close"]).expect(0);
    let ran = home.process(&["wait", &id]).expect(6);
    assert!(ran.text().ends_with("one\r\ncat: 0\r\n"), "{ran:?}");
    let mark = Mark::new();
    let script = format!("trap 'echo caught' INT; echo up; sleep {mark}; echo \"sleep: $?\"; exit 8");
    let id = home.start(&["--pty"], &script);
    mark.appear(1);
    let mut said: Conversation = home.follow(&id);
    said.hear("up\r\n");
    let _ = home.process(&["write", &id, "\u{3}"]).expect(0);
    said.hear("caught\r\n");
    let ran = home.process(&["wait", &id]).expect(8);
    assert!(ran.text().ends_with("sleep: 130\r\n"), "{ran:?}");
}
