//! O-13 to O-16: what a session keeps, and that keeping it does no harm.

use hostel_plugin_api::ErrorKind;
use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::super::case::{Case, case};

pub(in super::super) const CASES: &[Case] = &[
    case("o-13", "a directory that is gone ends no session", o_13_a_directory_that_is_gone),
    case("o-14", "a value with line breaks is no code", o_14_a_value_with_line_breaks),
    case("o-15", "an awkward environment makes nothing fail", o_15_an_awkward_environment),
    case(
        "o-16",
        "what is for one call is for that, and what is unset stays unset",
        o_16_what_is_unset_stays_unset,
    ),
];

fn o_13_a_directory_that_is_gone(s: &Subject) {
    let here = s.run("pwd").exits(0).text();
    let _ = s.run("mkdir w && cd w").prints("");
    let _ = s.run("rmdir ../w; echo gone").prints("gone\n");
    let ran = s.run("echo hi").prints("hi\n");
    let told = |line: &String| line.contains("/w` is gone") && line.contains(here.trim_end());
    assert!(ran.warnings.iter().any(told), "{ran:?}");
    let _ = s.run("cd / && pwd").prints("/\n");
    let error = s.refuses(Call::new("echo there").within("no/such/dir"));
    assert!(error.kind() == ErrorKind::BAD_CWD && error.message().contains("no/such/dir"), "{error}");
}

fn o_14_a_value_with_line_breaks(s: &Subject) {
    let _ = s.run("export NOTE=$'one\\ntouch pwned.flag\\n$(touch pwned2.flag)'").prints("");
    let _ = s
        .run("[ \"$NOTE\" = $'one\\ntouch pwned.flag\\n$(touch pwned2.flag)' ] && echo same")
        .prints("same\n");
    let room = "a'; touch pwned3.flag; '\n`touch pwned4.flag`";
    let _ = s.run(Call::new("echo x").env("ROOM", room)).prints("x\n");
    let _ = s.run("export ROOM2=\"$NOTE\"'\"\\'; ls -A").prints("");
    let _ = s.run("ls -A").prints("");
}

fn o_15_an_awkward_environment(s: &Subject) {
    let script = "export PATH=/nowhere CDPATH=/; readonly LOCKED=1; export LOCKED; greet() { echo \"hi $1\"; }; export -f greet";
    let _ = s.run(script).prints("");
    let _ = s.run("echo ok").prints("ok\n");
    let _ = s.run("greet you; echo \"$PATH\"").prints("hi you\n/nowhere\n");
    let call = Call::new("echo \"[$DOTTED]\"; export PATH=/usr/bin:/bin").env("X.Y", "1").env("DOTTED", "d");
    let _ = s.run(call).prints("[d]\n");
    let _ = s.run("env | grep -c '^X.Y=' ; ls >/dev/null && echo fine").prints("0\nfine\n");
}

fn o_16_what_is_unset_stays_unset(s: &Subject) {
    let _ = s.run(Call::new("echo \"[$ONLY_ONCE]\"").env("ONLY_ONCE", "1")).prints("[1]\n");
    let _ = s.run("echo \"[${ONLY_ONCE-unset}]\"").prints("[unset]\n");
    let _ = s.run("export A1=x B1=y; unset HOSTVAR").prints("");
    let _ = s.run("unset A1").prints("");
    let _ = s.run("echo \"[${A1-unset}] [$B1] [${HOSTVAR-unset}]\"").prints("[unset] [y] [unset]\n");
    let _ = s.run(Call::new("echo \"[$B1]\"").env("B1", "temp")).prints("[temp]\n");
    let _ = s.run("echo \"[$B1]\"").prints("[y]\n");
    let level = s.run("echo $SHLVL").exits(0).text();
    let _ = s.run("echo $SHLVL").prints(&level);
}
