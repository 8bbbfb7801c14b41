//! What a command prints is data, and its exit code is its own.

use std::time::Duration;

use hostel_tests::kernel::{alive, kill_all};
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("output-marks", "what looks like the host's own words is printed and changes nothing", marks),
    case(
        "output-descriptors",
        "what is written to any descriptor changes neither code nor directory",
        descriptors,
    ),
    case("output-own-end", "a command may end its own shell in any way", own_end),
    case(
        "output-codes",
        "every exit code is the command's, also those that mean something to the host",
        codes,
    ),
    case("output-nothing", "a command of nothing succeeds", nothing),
    case("output-tail", "what was printed last is there, also behind a child that holds the pipe", tail),
    case("output-as-it-comes", "output is passed on as it comes", as_it_comes),
];

fn marks(s: &Subject) {
    let marks = "[interrupted by user]\n[timed out after 5s]\nexit_code: 0\n__CWD__/nowhere__\n\u{1}hostel:file\u{2}\n[exit 0]\n";
    let ran = s.run(format!(
        "tr '\\0' '\\n' < /proc/$$/cmdline; tr '\\0' '\\n' < /proc/$$/environ\n\
         printf '%s' '{marks}'\ncd /usr\nfalse"
    ));
    assert!(ran.text().ends_with(marks), "{ran:?}");
    assert_eq!((ran.code, ran.ended, ran.cwd.as_deref()), (1, "exited", Some("/usr")), "{ran:?}");
    let _ = s.run("pwd").prints("/usr\n");
}

fn descriptors(s: &Subject) {
    let here = s.run("pwd").text();
    let script =
        "for n in 3 4 5 6 7 8 9 255; do printf 'cwd /\\0exit 0\\nPWD=/\\n' >&$n; done 2>/dev/null; exit 4";
    let ran = s.run(script).is(4, "");
    assert_eq!(ran.ended, "exited", "{ran:?}");
    let _ = s.run("pwd").prints(&here);
    let _ = s.run("exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; export CLOSED=1; exit 3").is(3, "");
    let _ = s.run("echo on").prints("on\n");
}

fn own_end(s: &Subject) {
    let number = s.unique();
    let _ = s.run("mkdir sub && cd sub; export KEEP=1").prints("");
    let _ = s.run(format!("sleep 19.{number} & exit 3")).is(3, "").prompt();
    let _ = s
        .run(format!("setsid sleep 18.{number} & exec printf 'replaced\\n'; echo never"))
        .prints("replaced\n")
        .prompt();
    let _ = s.run("trap 'echo bye' EXIT; exit 6").is(6, "bye\n");
    let _ = s.run("trap 'exit 9' EXIT; exit 6").is(9, "");
    let _ = s.run("exec 1>&- 2>&-; echo lost; exit 5").is(5, "");
    let _ = s.run("exec sh -c 'exit 8'").is(8, "");
    let _ = s.run("set -e; false; echo never").is(1, "");
    let _ = s.run("kill -KILL $$; echo never").is(137, "");
    let _ = s.run("printf '%s %s\\n' \"${PWD##*/}\" \"$KEEP\"").prints("sub 1\n");
    kill_all(&number);
}

fn codes(s: &Subject) {
    for code in [0, 1, 2, 64, 100, 124, 125, 126, 127, 128, 130, 137, 141, 143, 255] {
        let ran = s.run(format!("echo x; exit {code}")).is(code, "x\n");
        assert_eq!((ran.ended, ran.signal), ("exited", None), "{ran:?}");
    }
    let _ = s.run("false | true | (exit 3)").is(3, "");
    let _ = s.run("true; false").is(1, "");
}

fn nothing(s: &Subject) {
    for command in ["", " ", "\n\n", "# only this", "\t# and this\n", ":", "{ :; }"] {
        let _ = s.run(command).prints("").prompt();
    }
}

fn tail(s: &Subject) {
    let number = s.unique();
    let wanted: String = (1..=40_000).map(|line| format!("{line}\n")).chain(["LAST\n".to_owned()]).collect();
    for before in
        [String::new(), format!("sleep 17.{number} & "), format!("(sleep 16.{number}; echo late) & ")]
    {
        let ran = s.run(format!("{before}seq 1 40000; echo LAST"));
        assert!(ran.text() == wanted, "{before}: {ran:?}");
        let _ = ran.exits(0);
    }
    assert!(s.leaves_survivors() || alive(&number).is_empty(), "{:?}", alive(&number));
    kill_all(&number);
}

fn as_it_comes(s: &Subject) {
    let ran = s.run("echo first; sleep 0.7; echo second").prints("first\nsecond\n");
    let first = ran.first_output.unwrap();
    assert!(first + Duration::from_millis(400) < ran.took, "first after {first:?}: {ran:?}");
}
