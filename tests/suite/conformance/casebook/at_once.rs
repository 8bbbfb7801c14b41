//! O-53 to O-55: calls at once, and very many of them.

use std::time::Duration;

use hostel::exec::Size;
use hostel_tests::call::{Call, at_once};
use hostel_tests::kernel::{Held, eventually};
use hostel_tests::provider::Subject;

use super::super::case::{Case, case};

pub(in super::super) const CONCURRENCY: &[Case] = &[
    case("o-53", "parallel calls of one session tear nothing", o_53_parallel_calls_of_one_session),
    case("o-54", "the first calls share one environment", o_54_the_first_calls_share_one_environment),
];

pub(in super::super) const LEAKS: &[Case] =
    &[case("o-55", "nothing is kept of finished calls", o_55_nothing_is_kept_of_finished_calls)];

fn o_53_parallel_calls_of_one_session(s: &Subject) {
    at_once(32, |i| {
        let i = i + 1;
        let script = format!("export V{i}=$(head -c 3000 /dev/zero | tr '\\0' v); sleep 0.0{i}");
        let _ = s.run(script).prints("");
    });
    at_once(64, |_| {
        let _ = s.run("ls >/dev/null && echo fine").prints("fine\n");
    });
    // Each change is kept: that is the rule.
    let script = "echo \"$PATH\" | tr ':' '\\n' | grep -c declare; env | grep -c '^V[0-9]'";
    let _ = s.run(script).prints("0\n32\n");
    let _ = s.run("trap 'kill -9 $$' EXIT").is(137, "");
    let _ = s.run("echo ok").prints("ok\n");
}

fn o_54_the_first_calls_share_one_environment(s: &Subject) {
    let fresh = s.session(&format!("fresh {}", s.unique()));
    let other = fresh.again();
    at_once(16, |number| {
        let host = if number % 2 == 0 { &fresh } else { &other };
        let _ = host
            .run(format!("export F{number}=1; echo {number} > f{number}; echo {number}"))
            .prints(&format!("{number}\n"));
    });
    let _ = fresh
        .run("cat f? f1? | sort -n | tr '\\n' ' '; env | grep -c '^F[0-9]*=1'; rm f? f1?")
        .prints("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    other.close();
    let _ = fresh.run("echo $F15").prints("1\n");
}

fn o_55_nothing_is_kept_of_finished_calls(s: &Subject) {
    let size = Size { rows: 30, columns: 120 };
    let round = |times: usize| {
        for _ in 0..times * 20 {
            let _ = s.run("true").prints("");
        }
        for number in 0..times * 2 {
            let call = Call::new("true");
            let id = s.background(if number % 2 == 0 { call } else { call.on_terminal(size) });
            assert_eq!(s.wait(&id).exit_code, Some(0));
        }
        for _ in 0..times * 4 {
            let _ = s.run(Call::new("sleep 9").limit(100)).exits(124);
            let _ = s.run("setsid sleep 0.1 & exit 0").prints("");
        }
    };
    round(1);
    let before = Held::now();
    round(3);
    let back = eventually(Duration::from_secs(6), || Held::now().is_near(before, 5));
    assert!(back, "before {before:?}, after {:?}", Held::now());
    let _ = s.run("ls /proc/self/fd").prints("0\n1\n2\n3\n");
    let _ = s.run("ls -l /proc/self/fd | grep -c socket || true").prints("0\n");
}
