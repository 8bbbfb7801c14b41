//! `hostel exec --pty`: a command on a terminal of its own, where Hostel has one and where it has none.

use std::fs;
use std::process::Command;
use std::time::Duration;

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use hostel_tests::{finish, on_every_backend};
use rustix::process::Signal;

/// Returns the program that runs this shell text on a terminal of its own, in which `HOSTEL` stands for Hostel.
pub(crate) fn on_a_terminal(home: &TidyHome, script: &str) -> Command {
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let file = home.path().join("on-a-terminal.sh");
    fs::write(&file, script.replace("HOSTEL", &format!("'{program}'"))).unwrap();
    let mut command = home.command("/usr/bin/env", &["script", "-qec", "bash on-a-terminal.sh", "/dev/null"]);
    command.env("SHELL", "/bin/sh").env("TERM", "xterm");
    command
}

on_every_backend! {
    fn without_a_terminal_of_ours_it_has_one_of_the_usual_size(home) {
        let script = "tty; test -t 0 && test -t 1 && test -t 2 && stty size; cat; echo over >&2; exit 3";
        let ran = home.hostel(&["exec", "--pty", "--", script]).expect(3);
        let text = ran.text();
        assert!(text.starts_with("/dev/") && text.ends_with("\r\n30 120\r\nover\r\n"), "{ran:?}");
        assert_eq!(ran.stderr, "");
    }

    fn codes_are_the_commands_own(home) {
        for (command, code) in [("exit 7", 7), ("kill -9 $$", 137), ("no_such_command_here", 127), ("true", 0)] {
            let ran = home.hostel(&["exec", "--pty", "--", command]);
            assert_eq!(ran.code, code, "{command}: {ran:?}");
        }
        home.hostel(&["exec", "--pty", "--cwd", "/no/such", "--", "true"]).fails(126, "does not exist");
    }

    fn the_object_holds_what_the_terminal_showed(home) {
        let object = home.exec_json(&["--pty"], "printf '\\033[31mred\\033[0m\\n'; echo err >&2; exit 4");
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 12, "{object}");
        assert_eq!(
            (&object["output"], &object["exit_code"], &object["ended"]),
            (&"\u{1b}[31mred\u{1b}[0m\r\nerr\r\n".into(), &4.into(), &"exited".into()),
            "{object}"
        );
        let object = home.exec_json(&["--pty", "--timeout", "1"], "echo half; sleep 100");
        assert_eq!(
            (&object["output"], &object["exit_code"], &object["ended"]),
            (&"half\r\n".into(), &124.into(), &"timeout".into()),
            "{object}"
        );
        let object = home.exec_json(&["--pty", "--max-output", "1000"], "seq 1 100000; exit 5");
        assert_eq!((&object["exit_code"], &object["output_bytes"]), (&5.into(), &688_895.into()), "{object}");
    }

    fn the_kind_of_terminal_is_ours_or_one_with_colours(home) {
        let kind = |ours: Option<&str>, options: &[&str]| {
            let words = [&["exec", "--pty"], options, &["--", "echo \"$TERM\""]].concat();
            let mut command = home.command("hostel", &words);
            match ours {
                Some(ours) => command.env("TERM", ours),
                None => command.env_remove("TERM"),
            };
            finish(command, b"").expect(0).text()
        };
        assert_eq!(kind(Some("screen-256color"), &[]), "screen-256color\r\n");
        for poor in [None, Some(""), Some("dumb")] {
            assert_eq!(kind(poor, &[]), "xterm-256color\r\n", "{poor:?}");
        }
        assert_eq!(kind(Some("dumb"), &["--env", "TERM=vt100"]), "vt100\r\n");
        let tput = home.hostel(&["exec", "--pty", "--env", "TERM=xterm-256color", "--", "tput colors || echo none"]);
        assert!(["256\r\n", "none\r\n"].iter().any(|end| tput.text().ends_with(end)), "{tput:?}");
    }

    fn state_lasts_over_a_call_on_a_terminal(home) {
        let _ = home.hostel(&["exec", "--pty", "--", "export A=1; mkdir -p sub; cd sub"]).expect(0);
        assert_eq!(home.exec("echo \"$A ${PWD##*/} ${TERM-none}\" | cut -d ' ' -f 1-2").expect(0).text(), "1 sub\n");
        let ran = home.hostel(&["exec", "--pty", "--", "echo \"$A ${PWD##*/}\"; unset A"]).expect(0);
        assert_eq!(ran.text(), "1 sub\r\n");
        assert_eq!(home.exec("echo \"[$A]\"; test -t 1 || echo none").expect(0).text(), "[]\nnone\n");
    }

    fn what_is_typed_arrives_and_its_size_is_ours(home) {
        let script = "stty rows 41 cols 97; exec HOSTEL exec --pty -- \
                      'stty size; read -r line; echo \"got=[$line]\"; exit 5'";
        let mut said = Conversation::begin(on_a_terminal(home, script));
        said.hear("41 97\r\n");
        said.say("a  b\r");
        said.hear("got=[a  b]\r\n");
        let _ = said.finish().expect(5);
        // From a pipe only on request, as without a terminal.
        let words = ["exec", "--pty", "--stdin", "--", "read -r line; echo \"got=[$line]\"; read -r line || echo end"];
        let ran = finish(home.command("hostel", &words), b"typed\n").expect(0);
        assert!(ran.text().ends_with("got=[typed]\r\nend\r\n"), "{ran:?}");
    }

    fn ctrl_c_is_the_commands(home) {
        let mark = Mark::new();
        let script = format!("HOSTEL exec --pty -- 'echo up; sleep {mark}; echo never'; echo \"code=$?\"");
        let mut said = Conversation::begin(on_a_terminal(home, &script));
        said.hear("up\r\n");
        // A shell with an `EXIT` trap loses one that comes while it starts a program.
        mark.appear(1);
        said.say("\u{3}");
        said.hear("code=130\r\n");
        assert!(!said.finish().expect(0).text().contains("never"));
    }

    fn ctrl_c_does_not_end_a_command_that_handles_it(home) {
        let mark = Mark::new();
        let script = format!(
            "HOSTEL exec --pty -- 'trap \"echo caught\" INT; echo up; sleep {mark}; echo over; exit 6'; echo \"code=$?\""
        );
        let mut said = Conversation::begin(on_a_terminal(home, &script));
        said.hear("up\r\n");
        mark.appear(1);
        said.say("\u{3}");
        said.hear("caught\r\n");
        said.hear("over\r\n");
        said.hear("code=6\r\n");
    }

    fn a_timeout_ends_everything_on_it(home) {
        let mark = Mark::new();
        let command = format!("trap '' HUP; echo a; setsid sleep {mark} & sleep {mark} & sleep {mark}");
        let ran = home.hostel(&["exec", "--pty", "--timeout", "1", "--", &command]).expect(124);
        assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("a\r\n", "note: the command was ended at its limit of 1 s\n"));
        assert!((1.0..6.0).contains(&ran.took.as_secs_f64()), "{ran:?}");
        mark.expect_gone();
        let stubborn = format!("trap '' HUP TERM INT; echo a; while :; do sleep {mark}; done");
        let ran = home.hostel(&["exec", "--pty", "--timeout", "1", "--", &stubborn]).expect(124);
        assert!(ran.took < Duration::from_secs(6), "{ran:?}");
        mark.expect_gone();
    }

    fn a_signal_to_hostel_ends_everything_on_it(home) {
        let mark = Mark::new();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let command = format!("echo up; setsid sleep {mark} & sleep {mark}");
            let mut call = Conversation::begin(home.command("hostel", &["exec", "--pty", "--", &command]));
            call.hear("up\r\n");
            mark.appear(2);
            call.signal(signal);
            let _ = call.finish().expect(130);
            mark.expect_gone();
        }
    }
}

#[test]
fn its_size_follows_ours() {
    let home = TidyHome::new();
    let script = "stty rows 41 cols 97; mkfifo go; (read -r _ < go; stty rows 20 cols 55 < /dev/tty) & \
                  exec HOSTEL exec --pty -- \
                  'trap \"stty size; exit 4\" WINCH; stty size; while :; do sleep 0.05; done'";
    let mut said = Conversation::begin(on_a_terminal(&home, script));
    said.hear("41 97\r\n");
    fs::write(home.path().join("go"), "\n").unwrap();
    said.hear("20 55\r\n");
    let _ = said.finish().expect(4);
}

#[test]
fn ours_is_as_before_however_it_ends() {
    let home = TidyHome::new();
    let script = "before=$(stty -g)\n\
                  same() { [ \"$(stty -g)\" = \"$before\" ] && echo \"$1=same\"; }\n\
                  HOSTEL exec --pty -- 'stty raw -echo'; same end\n\
                  HOSTEL exec --pty --timeout 0.5 -- 'stty raw -echo; sleep 100'; same timeout\n\
                  HOSTEL exec --pty -- 'kill -9 $$'; same killed\n\
                  HOSTEL exec --pty --cwd /no/such -- true; same failed\n\
                  HOSTEL exec --pty -- 'kill -TERM \"$PPID\"; sleep 100'; same signal\n";
    let ran = finish(on_a_terminal(&home, script), b"");
    for how in ["end", "timeout", "killed", "failed", "signal"] {
        assert!(ran.text().contains(&format!("{how}=same\r\n")), "{how}: {}", ran.text());
    }
}

#[test]
fn an_interrupt_behind_a_reader_that_has_left_ends_it() {
    let home = TidyHome::new();
    let mark = Mark::new();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let script = format!(
        "'{program}' exec --pty -- 'while :; do echo y; done; sleep {mark}' | head -n 1; echo ${{PIPESTATUS[0]}}"
    );
    let ran = finish(home.command("/usr/bin/env", &["bash", "-c", &script]), b"");
    assert_eq!(ran.text(), "y\r\n141\n", "{ran:?}");
}
