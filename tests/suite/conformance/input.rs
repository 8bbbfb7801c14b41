//! A command reads what it is given, and nothing if nothing is.

use std::time::Duration;

use hostel::exec::Size;
use hostel_tests::call::Call;
use hostel_tests::kernel::alive;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("input-none", "without input there is an end of input at once", none),
    case("input-lines", "input is read line by line and to its end", lines),
    case("input-bytes", "every byte arrives", bytes),
    case("input-large", "a large input and a large output do not wait for each other", large),
    case("input-unread", "an input that nobody reads is no failure, and stops no clock", unread),
    case("input-own", "input belongs to one call", own),
    case("input-no-terminal", "without a terminal there is none to be found", no_terminal),
    case("input-terminal", "with a terminal all three are one, of the right size", terminal),
    case("input-typed", "what is typed is read", typed),
    case("input-ctrl-c", "Ctrl-C interrupts what runs on the terminal", ctrl_c),
    case("input-terminal-limit", "a limit holds on a terminal too", terminal_limit),
];

/// A size that no terminal has by itself.
const SIZE: Size = Size { rows: 33, columns: 101 };

fn none(s: &Subject) {
    let _ = s.run("cat; echo done").prints("done\n").prompt();
    let _ = s.run("read -r line; echo \"rc=$? [$line]\"").prints("rc=1 []\n").prompt();
    let _ = s.run("wc -c; bash; sh -s; sort").prints("0\n").prompt();
    let _ = s.run("cat & wait; echo done").prints("done\n").prompt();
    let _ = s.run(Call::new("cat; echo done").stdin("")).prints("done\n").prompt();
}

fn lines(s: &Subject) {
    let script = "read -r line; echo \"got=[$line] rc=$?\"; read -r line; echo \"got=[$line] rc=$?\"; cat";
    let _ = s
        .run(Call::new(script).stdin("  one \\n\ntwo\nthree"))
        .prints("got=[one \\n] rc=0\ngot=[two] rc=0\nthree");
    let _ = s.run(Call::new("bash").stdin("echo a\ncat <<E\nb\nE\nexit 6")).is(6, "a\nb\n");
    let _ =
        s.run(Call::new("while read -r n; do echo $((n * 2)); done").stdin("1\n2\n3\n")).prints("2\n4\n6\n");
}

fn bytes(s: &Subject) {
    let all: Vec<u8> = (0..=255).cycle().take(256 * 300 + 7).collect();
    let ran = s.run(Call::new("cat").stdin(all.clone())).exits(0);
    assert!(ran.output == all, "{} bytes became {}", all.len(), ran.output.len());
}

fn large(s: &Subject) {
    let much: Vec<u8> = (0..2_500_000_u32).map(|at| b'a' + u8::try_from(at % 23).unwrap()).collect();
    let _ = s.run(Call::new("wc -c").stdin(much.clone())).prints("2500000\n");
    let ran = s.run(Call::new("cat").stdin(much.clone())).exits(0);
    assert!(ran.output == much, "{ran:?}");
    let ran = s.run(Call::new("cat >&2; cat; exit 3").stdin(much.clone())).exits(3);
    assert!(ran.output == much, "{ran:?}");
}

fn unread(s: &Subject) {
    let number = s.unique();
    let much = vec![b'a'; 1 << 20];
    let _ = s.run(Call::new(format!("sleep 20.{number}")).stdin(much.clone()).limit(400)).times_out(400);
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    for (command, code, output) in [
        ("true", 0, ""),
        ("head -c 3; exit 4", 4, "aaa"),
        ("exec 0<&-; sleep 0.2; echo shut", 0, "shut\n"),
        ("exec true", 0, ""),
    ] {
        let _ = s.run(Call::new(command).stdin(much.clone())).is(code, output).prompt();
    }
}

fn own(s: &Subject) {
    let _ = s.run(Call::new("true").stdin("left over\n")).prints("");
    let _ = s.run("cat; echo end").prints("end\n");
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let text = format!("{number}\n").repeat(20_000);
                let ran = s.run(Call::new("cat").stdin(text.clone())).exits(0);
                assert!(ran.text() == text, "{number}: {ran:?}");
            });
        }
    });
}

fn no_terminal(s: &Subject) {
    let script = "for n in 0 1 2; do test -t $n && echo \"terminal $n\"; done; tty; \
                  (exec < /dev/tty) 2> /dev/null && echo 'a terminal'; true";
    let _ = s.run(script).prints("not a tty\n").prompt();
}

fn terminal(s: &Subject) {
    let script = "for n in 0 1 2; do test -t $n && echo $n; done; stty size; echo $TERM; (: < /dev/tty) && echo own; exit 5";
    let ran = s.run(Call::new(script).on_terminal(SIZE)).exits(5).prompt();
    let text = ran.text();
    assert!(text.starts_with("0\r\n1\r\n2\r\n33 101\r\n"), "{ran:?}");
    assert!(text.ends_with("xterm-256color\r\nown\r\n"), "{ran:?}");
    let _ = s.run(Call::new("echo \"$TERM\"").on_terminal(SIZE).env("TERM", "vt100")).prints("vt100\r\n");
    let _ = s.run(Call::new("cd /usr; export ON=1").on_terminal(SIZE)).prints("");
    let _ = s.run("echo \"$ON $PWD\"; test -t 0 || echo off").prints("1 /usr\noff\n");
}

fn typed(s: &Subject) {
    let script = "echo ready; read -r line; echo \"got [$line]\"";
    let ran = s.run(Call::new(script).on_terminal(SIZE).typed(b"hi there\n")).exits(0).prompt();
    assert!(ran.text().ends_with("got [hi there]\r\n"), "{ran:?}");
    let script = "echo ready; cat; echo end";
    let ran = s.run(Call::new(script).on_terminal(SIZE).typed(b"x\n\x04")).exits(0).prompt();
    assert!(ran.text().ends_with("x\r\nend\r\n"), "{ran:?}");
}

fn ctrl_c(s: &Subject) {
    let number = s.unique();
    // The child says that it is ready: a shell that is about to start one may lose a signal, whoever has started it.
    let script = format!("sh -c 'echo ready; exec sleep 20.{number}'; echo never");
    let ran = s.run(Call::new(script).on_terminal(SIZE).typed(b"\x03")).exits(130);
    assert!(ran.took < Duration::from_secs(3) && !ran.text().contains("never"), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn terminal_limit(s: &Subject) {
    let number = s.unique();
    let script = format!("echo ready; setsid sleep 21.{number} & sleep 20.{number}");
    let ran = s.run(Call::new(script).on_terminal(SIZE).limit(500)).times_out(500);
    assert_eq!(ran.text(), "ready\r\n", "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}
