//! A host that runs for months keeps nothing of the calls that it has made.

use std::time::Duration;

use hostel::exec::Size;
use hostel_tests::call::Call;
use hostel_tests::kernel::{Held, alive, eventually, files, interrupting};
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("leaks-calls", "finished calls leave no descriptors, threads, zombies or processes", calls),
    case("leaks-background", "ended background processes leave none either", background),
    case("leaks-sessions", "sessions that were let go leave none either", sessions),
    case("leaks-interrupted", "signals that are caught make nobody lose track of a process", interrupted),
    case("leaks-many", "many sessions at once hold no more than some", many),
    case("leaks-files", "finished calls leave no files", kept_files),
    case("leaks-descriptors", "a command has its own descriptors and no others", descriptors),
    case("leaks-environment", "a command's environment holds nothing of the host's secrets", environment),
];

/// More than so much of anything is a leak.
const SLACK: usize = 3;

/// Waits until no more is held than before.
#[track_caller]
fn comes_back_to(before: Held) {
    let back = eventually(Duration::from_secs(6), || Held::now().is_near(before, SLACK));
    assert!(back, "before {before:?}, after {:?}", Held::now());
}

fn calls(s: &Subject) {
    let number = s.unique();
    let size = Size { rows: 24, columns: 80 };
    let round = |count: usize| {
        for _ in 0..count * 4 {
            let _ = s.run("true").prints("");
        }
        for _ in 0..count {
            let _ = s.run(Call::new("exit 3").on_terminal(size)).is(3, "");
            let _ = s.run(Call::new(format!("sleep 20.{number}")).limit(30)).exits(124);
            let _ = s.run("setsid sleep 0.1 & exit 0").prints("");
            let _ = s.run(Call::new("head -c 1").stdin(vec![b'x'; 300_000])).prints("x");
            let _ = s.refuses(Call::new("true").within("/no/such"));
            let _ = s.run(Call::new("echo on; sleep 20").interrupted()).exits(130);
        }
    };
    round(2);
    let before = Held::now();
    round(2 * SLACK);
    comes_back_to(before);
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn background(s: &Subject) {
    let size = Size { rows: 24, columns: 80 };
    let round = |count: usize| {
        for _ in 0..count {
            let ids = [
                s.background("true"),
                s.background(Call::new("true").on_terminal(size)),
                s.background("sleep 20"),
            ];
            assert_eq!(s.wait(&ids[0]).exit_code, Some(0));
            assert_eq!(s.wait(&ids[1]).exit_code, Some(0));
            s.processes().kill(&ids[2]).unwrap();
        }
    };
    round(1);
    let before = Held::now();
    round(SLACK + 1);
    comes_back_to(before);
}

fn sessions(s: &Subject) {
    let round = |count: usize| {
        for _ in 0..count {
            for name in ["first", "second"] {
                let session = s.session(&format!("{name} {}", s.unique()));
                let _ = session.run("true").prints("");
                let _ = session.run("echo on").prints("on\n");
            }
            s.close();
        }
    };
    round(1);
    let before = Held::now();
    round(SLACK + 2);
    comes_back_to(before);
}

fn interrupted(s: &Subject) {
    let busy = || {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..15 {
                        let _ = s.run("true").prints("");
                    }
                });
            }
        });
    };
    s.warm_up();
    busy();
    let before = Held::now();
    interrupting(busy);
    comes_back_to(before);
    interrupting(|| s.close());
    comes_back_to(before);
}

fn many(s: &Subject) {
    let own = s.unique();
    let before = Held::now();
    for number in 0..90 {
        let session = s.session(&format!("{number} {own}"));
        let _ = session.run("export KEPT=1").prints("");
        let _ = session.run("echo $KEPT").prints("1\n");
    }
    // Shells that stand by make up the most of it: two processes each.
    let held = Held::now();
    assert!(held.processes <= before.processes + 2 * 64 + SLACK, "before {before:?}, now {held:?}");
    let _ = s.session(&format!("0 {own}")).run("echo $KEPT").prints("1\n");
    s.close();
    comes_back_to(before);
}

fn kept_files(s: &Subject) {
    let round = || {
        for _ in 0..20 {
            let _ = s.run("export A=$RANDOM; f() { :; }").prints("");
            let _ = s.run("kill -9 $$").exits(137);
        }
        let _ = s.run(Call::new("sleep 20").limit(30)).exits(124);
    };
    round();
    let state = s.home().path().join("state");
    let (before, _) = files(&state);
    round();
    let back = eventually(Duration::from_secs(5), || files(&state).0 <= before + 1);
    assert!(back, "before {before}, after {} files", files(&state).0);
}

fn descriptors(s: &Subject) {
    let look = "ls /proc/self/fd | tr '\\n' ' '; ls -l /proc/self/fd /proc/$$/fd 2>/dev/null | grep -c socket; f=$(mktemp ./fds-XXXXXX); ls /proc/$$/fd > $f; grep -c '^[0-9]$' $f";
    for _ in 0..2 {
        let _ = s.run(look).prints("0 1 2 3 0\n3\n");
    }
    let id = s.background(look);
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "0 1 2 3 0\n3\n");
    let size = Size { rows: 24, columns: 80 };
    let _ = s.run(Call::new(look).on_terminal(size)).prints("0 1 2 3 0\r\n3\r\n");
    // Of two calls at once neither has anything of the other's.
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| s.run(Call::new(look).stdin("x".repeat(100))).prints("0 1 2 3 0\n3\n"));
        }
    });
}

fn environment(s: &Subject) {
    let look = "env | grep -c -e '^ACMEBOX_TOKEN=' -e demo; true";
    let secret = if s.backend() == "acmebox" { "0\n" } else { "" };
    let text = s.run(look).exits(0).text();
    assert!(text.ends_with(secret), "{text}");
    let call = Call::new("echo \"${ACMEBOX_TOKEN-none}\"").env("ACMEBOX_TOKEN", "given");
    let ran = s.run(call).exits(0);
    assert!(s.backend() != "acmebox" || ran.text() == "none\n" && !ran.warnings.is_empty(), "{ran:?}");
}
