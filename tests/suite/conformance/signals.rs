//! Signals mean to a command what they mean to a shell that a person has started.

use hostel::exec::Size;
use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::case::{Case, OWN_SHELL, case};

pub(super) const CASES: &[Case] = &[
    case("signals-codes", "death by a signal is 128 and its number", codes),
    case("signals-named", "death by a signal is told as one", named).needs(OWN_SHELL),
    case("signals-numbers", "exit codes are those that a shell gives", numbers),
    case("signals-child", "a child's death is the child's", child),
    case("signals-pipe", "writing into a closed pipe ends the writer, silently", pipe),
    case("signals-masks", "nothing is ignored or blocked", masks),
    case("signals-traps", "a command may catch signals", traps),
    case("signals-group", "a command has a session and a group of its own", group).needs(OWN_SHELL),
];

const SIGNALS: [(&str, i32); 9] = [
    ("HUP", 1),
    ("INT", 2),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
];

fn codes(s: &Subject) {
    for (name, number) in SIGNALS {
        let ran = s.run(format!("echo on; kill -{name} $$; echo never")).is(128 + number, "on\n").prompt();
        assert!(ran.ended == "signal" || ran.ended == "exited", "{ran:?}");
    }
    let _ = s.run("echo next").prints("next\n");
}

fn named(s: &Subject) {
    for (name, number) in SIGNALS {
        let ran = s.run(format!("kill -{name} $$")).is(128 + number, "");
        assert_eq!((ran.ended, ran.signal), ("signal", Some(number)), "{ran:?}");
        // A shell that only says so was not killed.
        let ran = s.run(format!("exit {}", 128 + number)).is(128 + number, "");
        assert_eq!((ran.ended, ran.signal), ("exited", None), "{ran:?}");
    }
}

fn numbers(s: &Subject) {
    let _ = s.run("touch plain; mkdir dir; printf '#!/no/such\\n' > script; chmod +x script").prints("");
    for (command, code) in [
        ("exit 300", 44),
        ("exit -1", 255),
        ("exit 256", 0),
        ("nosuchcommand_q", 127),
        ("./nosuch", 127),
        ("/etc/passwd", 126),
        ("./plain", 126),
        ("./dir", 126),
        ("exec nosuchcommand_q", 127),
        ("return 3 2> /dev/null; exit 4", 4),
        ("exit abc", 2),
        ("test a = b", 1),
        ("(exit 9)", 9),
        ("! true", 1),
        // Nothing can be opened any more.
        ("ulimit -n 3; (exit 7)", 7),
        ("ulimit -n 3; exit 7", 7),
        ("ulimit -f 0; (exit 7)", 7),
        // What is ours is nothing to `set -e`.
        ("set -e; ulimit -f 0; true", 0),
        ("set -e; exec 2> /dev/null; ulimit -n 3; true", 0),
        ("IFS=17; (exit 17)", 17),
    ] {
        let ran = s.run(command);
        assert_eq!((ran.code, ran.ended), (code, "exited"), "{command}: {ran:?}");
    }
    let ran = s.run("./script");
    assert!([126, 127].contains(&ran.code), "{ran:?}");
}

fn child(s: &Subject) {
    for (name, number) in SIGNALS {
        let ran = s.run(format!("sh -c 'kill -{name} $$'; echo \"rc=$?\"")).exits(0);
        assert!(ran.text().ends_with(&format!("rc={}\n", 128 + number)), "{ran:?}");
    }
    let _ = s.run("sh -c 'kill -SEGV $$'; exit $?").exits(139);
    let _ = s.run("sleep 5 & kill $!; wait $! 2> /dev/null; echo $?").exits(0);
}

fn pipe(s: &Subject) {
    let script = "yes | head -n 1; echo \"${PIPESTATUS[*]}\"";
    let _ = s.run(script).prints("y\n141 0\n").prompt();
    let size = Size { rows: 24, columns: 80 };
    let _ = s.run(Call::new(script).on_terminal(size)).prints("y\r\n141 0\r\n").prompt();
    let id = s.background(script);
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "y\n141 0\n");
    let id = s.background(Call::new(script).on_terminal(size));
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "y\r\n141 0\r\n");
}

fn masks(s: &Subject) {
    let script =
        "grep -E '^Sig(Blk|Ign)' /proc/self/status; bash -c \"grep -E '^Sig(Blk|Ign)' /proc/self/status\"";
    let check = |text: &str| {
        let masks: Vec<u64> = text
            .lines()
            .map(|line| u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap())
            .collect();
        assert!(masks.len() == 4 && masks.iter().all(|mask| mask.trailing_zeros() >= 31), "{text}");
    };
    check(&s.run(script).exits(0).text());
    check(&s.run(Call::new(script).on_terminal(Size { rows: 24, columns: 80 })).exits(0).text());
    let id = s.background(script);
    assert_eq!(s.wait(&id).exit_code, Some(0));
    check(&String::from_utf8_lossy(&s.logs(&id)));
}

fn traps(s: &Subject) {
    let _ = s.run("trap 'echo got' USR1; kill -USR1 $$; echo on").prints("got\non\n");
    let _ = s.run("trap 'echo int' INT; kill -INT $$; echo on; exit 3").is(3, "int\non\n");
    let _ = s.run("trap '' TERM; kill -TERM $$; echo deaf").prints("deaf\n");
    let _ = s.run("trap 'echo end $?' EXIT; false").is(1, "end 1\n");
    // No trap is the next command's.
    let _ = s.run("trap -p USR1 INT TERM; kill -TERM $$; echo never").is(143, "");
}

fn group(s: &Subject) {
    let script = "read -r _ _ _ _ group session _ < /proc/$$/stat; test $group = $$ && test $session = $$ && echo leader";
    let _ = s.run(script).prints("leader\n");
    let script = "trap 'echo got' TERM; sleep 9 & kill 0; wait $! 2> /dev/null; echo \"own $?\"";
    let ran = s.run(script).exits(0).prompt();
    let text = ran.text();
    assert!(text.starts_with("got\n") && text.ends_with("own 143\n"), "{ran:?}");
    let _ = s.run("kill -TERM 0; echo never").is(143, "").prompt();
    let _ = s.run("echo next").prints("next\n");
}
