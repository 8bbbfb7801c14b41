//! Calls at once are calls of their own, and lose nothing of each other's.

use std::sync::Barrier;
use std::thread;

use hostel_tests::call::at_once;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("concurrency-state", "what calls at once change is all there, and whole", state),
    case("concurrency-same", "of what calls at once make of one variable, one whole value lasts", same),
    case("concurrency-first", "the first calls of a session may come together", first),
    case("concurrency-sessions", "sessions at once do not mix", sessions),
    case("concurrency-hosts", "two processes of the host may share a session", hosts),
    case("concurrency-killed", "calls that are killed at their end harm no other", killed),
    case("concurrency-slow", "a slow call holds up no quick one", slow),
];

fn state(s: &Subject) {
    at_once(24, |number| {
        let script = format!("export V{number}=$(head -c 3000 /dev/zero | tr '\\0' v); sleep 0.0{number}");
        let _ = s.run(script).prints("");
    });
    at_once(32, |_| {
        let _ = s.run("ls > /dev/null && echo fine").prints("fine\n");
    });
    let script = "echo \"$PATH\" | tr ':' '\\n' | grep -vc ^/; env | grep -c '^V[0-9]*=v*$'; \
                  for i in $(seq 0 23); do v=V$i; echo ${#v} ${!v} | wc -c; done | sort -u";
    let text = s.run(script).exits(0).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["0", "24"], "{text}");
    assert_eq!(lines[2..], ["3003"], "{text}");
}

fn same(s: &Subject) {
    at_once(12, |number| {
        let letter = char::from(b'a' + u8::try_from(number).unwrap());
        let script = format!(
            "export SAME=$(head -c 5000 /dev/zero | tr '\\0' {letter}); f() {{ echo {letter}; }}; cd /usr"
        );
        let _ = s.run(script).prints("");
    });
    let ran = s.run("echo $SAME; pwd").exits(0);
    let text = ran.text();
    let value = text.lines().next().unwrap();
    assert!(value.len() == 5000 && value.chars().all(|letter| value.starts_with(letter)), "{ran:?}");
    assert!(text.ends_with("\n/usr\n"), "{ran:?}");
}

fn first(s: &Subject) {
    for _ in 0..3 {
        let fresh = s.session(&format!("first {}", s.unique()));
        at_once(8, |number| {
            let _ = fresh
                .run(format!("export F{number}=1; echo {number}; exit {number}"))
                .is(i32::try_from(number).unwrap(), &format!("{number}\n"));
        });
        let _ = fresh.run("env | grep -c '^F[0-7]=1'").prints("8\n");
    }
}

fn sessions(s: &Subject) {
    let own = s.unique();
    at_once(8, |number| {
        let session = s.session(&format!("{number} {own}"));
        for round in 0..3 {
            let _ = session.run(format!("export WHO={number}; export R{round}=1; sleep 0.02")).prints("");
            let _ = session
                .run("echo $WHO; env | grep -c '^R[0-9]=1'")
                .prints(&format!("{number}\n{}\n", round + 1));
        }
    });
    let _ = s.run("echo \"${WHO-none}\"").prints("none\n");
}

fn hosts(s: &Subject) {
    let other = s.again();
    at_once(12, |number| {
        let host = if number % 2 == 0 { s } else { &other };
        let _ = host.run(format!("export H{number}=1; echo {number}")).prints(&format!("{number}\n"));
    });
    for host in [s, &other] {
        let _ = host.run("env | grep -c '^H[0-9]*=1'").prints("12\n");
    }
    other.close();
    let _ = s.run("env | grep -c '^H[0-9]*=1'").prints("12\n");
}

fn killed(s: &Subject) {
    let _ = s.run("export KEPT=1").prints("");
    at_once(16, |number| {
        if number % 2 == 0 {
            // In the middle of what is done at the end, as near as a command can come to that.
            let _ = s.run("(sleep 0.01; kill -KILL $$) & export LOST=1; exit 5");
            let _ = s.run("trap 'kill -KILL $$' EXIT; export LOST=1").is(137, "");
        } else {
            let _ = s.run("echo \"ok $KEPT\"").prints("ok 1\n");
        }
    });
    let _ = s.run("echo \"ok $KEPT\"").prints("ok 1\n").prompt();
}

fn slow(s: &Subject) {
    let own = s.unique();
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            begin.wait();
            s.run(format!("until test -e quick{own}; do sleep 0.05; done; echo slow")).prints("slow\n")
        });
        begin.wait();
        for _ in 0..5 {
            let _ = s.run("echo quick").prints("quick\n");
        }
        assert!(!slow.is_finished(), "the slow one has seen what is not there yet");
        let _ = s.run(format!("touch quick{own}")).prints("");
        assert!(slow.join().is_ok());
    });
}
