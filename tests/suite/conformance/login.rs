//! Login files are read once, may do anything, and hold up nobody for longer than it has said.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel::exec::Cancel;
use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, eventually};
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("login-once", "they are read once, however many calls come first", once),
    case("login-interrupted", "an interruption ends them, and the call", interrupted),
    case("login-limit", "the time limit of a call is theirs too", limit),
    case("login-odd", "whatever they do, the session works and stands where it should", odd),
    case("login-bytes", "what they print is nobody's output, whatever it is", bytes),
    case("login-background", "a background process has what they have made", background),
];

/// Said of a call that was ended before its command began.
const READING: &str = "login files were still being read";

fn once(s: &Subject) {
    let own = s.unique();
    let s = &s.logging_in(&format!("sleep 0.2; echo x >> DIR/count{own}; export READ=1; f() {{ echo f; }}"));
    std::thread::scope(|scope| {
        for number in 0..6 {
            scope.spawn(move || {
                let ran = s.run(format!("echo $READ; f; exit {number}")).is(number, "1\nf\n");
                assert!(ran.warnings.is_empty(), "{ran:?}");
            });
        }
    });
    let _ = s.run(format!("cat count{own}; export READ=2")).prints("x\n");
    let _ = s.again().run("echo $READ").prints("2\n");
}

fn interrupted(plain: &Subject) {
    let s = plain;
    let number = s.unique();
    let s = &s.logging_in(&format!("setsid sleep 31.{number} & (trap '' INT TERM; sleep 32.{number})"));
    let cancel = Arc::new(Cancel::new().unwrap());
    let ran = std::thread::scope(|scope| {
        let call = scope.spawn(|| s.run(Call::new("touch ran").cancelled_by(Arc::clone(&cancel))));
        assert!(eventually(Duration::from_secs(20), || !alive(&number).is_empty()), "they are not read");
        cancel.cancel();
        call.join().unwrap()
    });
    assert_eq!((ran.code, ran.ended), (130, "interrupted"), "{ran:?}");
    assert!(ran.warnings.iter().any(|line| line.contains(READING)), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    let ran =
        plain.logging_in("export READ=1").run("echo $READ; test -e ran || echo none").prints("1\nnone\n");
    assert!(ran.warnings.is_empty(), "{ran:?}");
}

fn limit(s: &Subject) {
    let number = s.unique();
    let s = &s.logging_in(&format!("setsid sleep 31.{number} & (trap '' INT TERM; sleep 32.{number})"));
    let ran = s.run(Call::new("touch ran").limit(400)).times_out(400);
    assert!(ran.warnings.iter().any(|line| line.contains(READING)) && ran.output.is_empty(), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    // A wrong argument is told at once.
    let start = Instant::now();
    let _ = s.refuses(Call::new("true").within("/no/such"));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

fn odd(plain: &Subject) {
    for (file, read, told) in [
        ("cd /usr; export READ=1", "1", ""),
        ("read -r line; cat; export READ=1$line", "1", ""),
        ("export READ=1; exec bash", "", "login files"),
        ("export READ=1; exec sh -c 'exit 3'", "", "login files"),
        ("export READ=1\nif [ ( ; done\nexport READ=2", "1", "does not understand"),
        ("export READ=1; exit 5", "1", "exit code 5"),
        ("export READ=1; trap 'echo bye' EXIT; set -eu; false", "1", ""),
        ("export READ=1; kill -9 $$", "", "login files"),
    ] {
        let s = &plain.logging_in(file);
        let ran = s.run("echo \"[$READ]\"; ls login").prints(&format!("[{read}]\nlogin\n"));
        let wanted = usize::from(!told.is_empty());
        assert!(
            ran.warnings.len() == wanted && ran.warnings.iter().all(|line| line.contains(told)),
            "{ran:?}"
        );
        let ran = s.run("echo on; false").is(1, "on\n");
        assert!(ran.warnings.is_empty(), "{file}: {ran:?}");
    }
}

fn bytes(s: &Subject) {
    let s = &s.logging_in(
        "printf 'caf\\351 \\377\\376 \\0 \\033[2J'; yes é | head -c 1000000 >&2; export READ=1; (sleep 0.3; echo late) &",
    );
    let ran = s.run("sleep 0.5; echo $READ").prints("1\n");
    assert!(ran.warnings.is_empty(), "{ran:?}");
}

fn background(s: &Subject) {
    let s = &s.logging_in("sleep 0.5; export READ=1; f() { echo f; }; cd /usr");
    let id = s.background("echo $READ; f; pwd");
    assert_eq!(s.wait(&id).exit_code, Some(0));
    let view = s.poll(&id);
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), format!("1\nf\n{}\n", view.cwd.as_deref().unwrap()));
    let _ = s.run(format!("test \"$PWD\" = '{}'; ls login", view.cwd.unwrap())).prints("login\n");
}
