//! O-09, O-10, O-19 and O-20: nothing is read that was not given, what was given arrives, and all that is printed is read.

use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, peak, reset_peak};
use hostel_tests::provider::Subject;

use super::super::case::{Case, case};

pub(in super::super) const INPUT: &[Case] = &[
    case("o-09", "a command reads nothing that it was not given", o_09_no_request_is_eaten),
    case("o-10", "more input than a pipe holds deadlocks nobody", o_10_more_input_than_a_pipe_holds),
];

pub(in super::super) const LARGE: &[Case] = &[
    case("o-19", "more output than is kept costs no memory", o_19_more_output_than_is_kept),
    case("o-20", "both streams are read, in the order written", o_20_both_streams_are_read),
];

const MEBIBYTE: u64 = 1024 * 1024;

fn o_09_no_request_is_eaten(s: &Subject) {
    std::thread::scope(|scope| {
        scope.spawn(|| s.run("cat; echo first-done").prints("first-done\n").prompt());
        scope.spawn(|| s.run("echo second").prints("second\n").prompt());
    });
    let a = s.background("cat; echo bg-done");
    let view = s.wait(&a);
    assert_eq!((view.exit_code, view.output.as_str()), (Some(0), "bg-done\n"), "{view:?}");
    let _ = s
        .run(Call::new("read -r line; echo \"got=[$line] rc=$?\"").stdin("one\ntwo\n"))
        .prints("got=[one] rc=0\n");
}

fn o_10_more_input_than_a_pipe_holds(s: &Subject) {
    let number = s.unique();
    let text = vec![b'a'; 1 << 20];
    let given = |command: &str| Call::new(command).stdin(text.clone());
    let _ = s.run(given("cat | wc -c")).prints("1048576\n");
    assert!(s.run(given("cat")).exits(0).output == text);
    let ran = s.run(given(&format!("sleep 30.{number}")).limit(1000)).times_out(1000);
    assert!(ran.output.is_empty() && alive(&number).is_empty(), "{ran:?}");
    let _ = s.run(given("true")).prints("");
    let _ = s.run(given("head -c 3; exit 4")).is(4, "aaa");
}

fn o_19_more_output_than_is_kept(s: &Subject) {
    let _ = s.run("true").prints("");
    reset_peak();
    let before = peak();
    let script = "head -c 314572800 /dev/zero | tr '\\0' q; echo; echo END; exit 3";
    let ran = s.run(Call::new(script).limit(120_000).kept_only(50_000)).exits(3);
    let text = &ran.kept.text;
    assert!(text.ends_with("q\nEND\n") && text.len() < 51_000 && text.contains("bytes left out"), "{ran:?}");
    assert_eq!(ran.kept.total, 300 * MEBIBYTE + 5, "{ran:?}");
    let whole = ran.kept.path.clone().unwrap();
    std::fs::remove_file(whole).unwrap();
    let ran = s.run(Call::new("yes").limit(3000).kept_only(50_000)).times_out(3000);
    std::fs::remove_file(ran.kept.path.unwrap()).unwrap();
    let grown = peak().saturating_sub(before);
    assert!(grown < 64 * MEBIBYTE, "the host has grown by {grown} bytes");
}

fn o_20_both_streams_are_read(s: &Subject) {
    let script = "head -c 500000 /dev/zero | tr '\\0' e >&2; echo out-done";
    let ran = s.run(Call::new(script).limit(10_000)).exits(0).prompt();
    assert!(ran.text().ends_with("eout-done\n"), "{ran:?}");
    let _ = s.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done").prints("o1\ne1\no2\ne2\no3\ne3\n");
}
