//! A call that is to end now ends now, and keeps what it has printed.

use std::time::Duration;

use hostel_tests::call::Call;
use hostel_tests::kernel::alive;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("ends-partial", "what was printed until the limit is kept, half a line too", partial),
    case("ends-deaf", "who ignores every polite signal is killed after the grace", deaf),
    case("ends-grace", "who listens may clean up, and what it prints then is kept", grace),
    case("ends-at-once", "who goes when told costs no grace", at_once),
    case("ends-stopped", "a stopped command is ended as well", stopped),
    case("ends-session", "the session outlives a limit, the first one of all too", session),
    case("ends-tiny", "a limit that is over before the command begins is a limit still", tiny),
    case(
        "ends-cancelled",
        "a call that is cancelled ends as one, and so does all that it has started",
        cancelled,
    ),
    case("ends-own-codes", "who says 124 or 130 was neither ended nor interrupted", own_codes),
];

fn partial(s: &Subject) {
    let number = s.unique();
    let script = format!("printf 'phase one\\n'; printf 'phase tw'; sleep 20.{number}; echo never");
    let ran = s.run(Call::new(script).limit(600)).times_out(600);
    assert_eq!(ran.text(), "phase one\nphase tw", "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    let _ = s.run("echo next").prints("next\n");
}

fn deaf(s: &Subject) {
    let number = s.unique();
    for signals in ["TERM INT HUP", "TERM INT HUP QUIT USR1 USR2 PIPE ALRM"] {
        let script = format!("trap '' {signals}; echo armed; while :; do sleep 0.05{number}; done");
        let ran = s.run(Call::new(script).limit(400)).times_out(400);
        assert_eq!(ran.text(), "armed\n", "{ran:?}");
        assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    }
}

fn grace(s: &Subject) {
    let script =
        "trap 'echo cleaning; sleep 0.1; echo cleaned; exit 7' TERM; echo on; while :; do sleep 0.05; done";
    let ran = s.run(Call::new(script).limit(500)).times_out(500);
    let text = ran.text();
    assert!(text.starts_with("on\n") && text.ends_with("cleaning\ncleaned\n"), "{ran:?}");
}

fn at_once(s: &Subject) {
    let ran = s.run(Call::new(format!("sleep 20.{}", s.unique())).limit(300)).times_out(300);
    assert!(ran.took < Duration::from_millis(1200), "{ran:?}");
}

fn stopped(s: &Subject) {
    let number = s.unique();
    let _ = s.run(Call::new("kill -STOP $$; echo never").limit(400)).times_out(400);
    let script = format!("sleep 20.{number} & kill -STOP $!; wait; echo never");
    let ran = s.run(Call::new(script).limit(400)).times_out(400);
    assert_eq!(ran.text(), "", "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn session(s: &Subject) {
    let fresh = s.session(&format!("fresh {}", s.unique()));
    let _ = fresh.run(Call::new(format!("sleep 20.{}", s.unique())).limit(300)).times_out(300);
    let _ = fresh.run("echo first").prints("first\n").prompt();
    let _ = s.run("export KEPT=1; mkdir dir; cd dir; echo data > file").prints("");
    let _ = s.run(Call::new(format!("echo more >> file; sleep 20.{}", s.unique())).limit(300)).times_out(300);
    let _ = s.run("echo \"$KEPT ${PWD##*/}\"; cat file").prints("1 dir\ndata\nmore\n").prompt();
}

fn tiny(s: &Subject) {
    let number = s.unique();
    let ran = s.run(Call::new(format!("sleep 20.{number}")).limit(1));
    assert_eq!((ran.code, ran.ended), (124, "timeout"), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    let _ = s.run("echo next").prints("next\n").prompt();
}

fn cancelled(s: &Subject) {
    let number = s.unique();
    let script = format!("setsid sleep 21.{number} & echo begun; sleep 20.{number}; echo never");
    let ran = s.run(Call::new(script).interrupted()).is(130, "begun\n").prompt();
    assert_eq!(ran.ended, "interrupted", "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    let script = format!("trap '' INT TERM; echo begun; while :; do sleep 0.05{number}; done");
    let ran = s.run(Call::new(script).interrupted()).is(130, "begun\n");
    assert!(ran.took < Duration::from_secs(4), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    let _ = s.run("echo next").prints("next\n").prompt();
}

fn own_codes(s: &Subject) {
    for code in [124, 130] {
        let ran = s.run(Call::new(format!("exit {code}")).limit(5000)).is(code, "").prompt();
        assert_eq!(ran.ended, "exited", "{ran:?}");
    }
}
