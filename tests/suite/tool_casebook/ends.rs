//! O-03 to O-06: when its time is up, a command ends with everything that it has started, and with nothing else.

use hostel_tests::by_both_roads;
use hostel_tests::marked::Mark;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::Case;

by_both_roads! {
    o_03_what_was_printed_before_the_timeout o_04_a_process_that_ignores_signals o_05_the_other_end_of_a_fifo
    o_06_who_left_the_process_group
}

fn o_03_what_was_printed_before_the_timeout(road: Road) {
    let case = Case::by(road);
    let mark = Mark::new();
    let script = format!("printf 'phase-1 ok\n'; printf 'phase-2 half'; sleep {mark}; echo never");
    let value = case.x_in_time(&script, 2, 12, "phase-1 ok\nphase-2 half\n[Command timed out after 2s]");
    assert!(!value["output"].as_str().unwrap().contains("never"), "{value}");
    mark.expect_gone();
}

fn o_04_a_process_that_ignores_signals(road: Road) {
    let case = Case::by(road);
    let own = Mark::new().to_string().replace('.', "");
    let script = format!("trap '' TERM INT HUP; echo armed; while :; do sleep 0.2{own}; done");
    case.x_in_time(&script, 1, 12, "armed\n[Command timed out after 1s]");
    case.x(&format!("pgrep -fc 'sleep 0[.]2{own}' || true"), 0, "0");
}

fn o_05_the_other_end_of_a_fifo(road: Road) {
    let case = Case::by(road);
    let own = Mark::new().to_string();
    let script =
        format!("mkfifo q.{own}\n(while :; do echo tock; sleep 1; done; : {own}) > q.{own} &\ncat q.{own}\n");
    case.write(&format!("five.{own}"), &script);
    case.x_in_time(&format!("bash five.{own}"), 2, 12, "tock\n");
    case.x(&format!("pgrep -f 'cat q[.]{own}'; pgrep -f 'bash [f]ive.{own}'; echo checked"), 0, "checked");
}

fn o_06_who_left_the_process_group(road: Road) {
    let case = Case::by(road);
    let (own, others) = (Mark::new(), [(); 4].map(|()| Mark::new()));
    let p0 = case.bg(&format!("sleep {own}"), &json!({}));
    own.appear(1);
    let [one, two, three, four] = &others;
    let script = format!(
        "setsid sleep {one} &\n(setsid sh -c 'sleep {two} & exit' &)\nbash -c 'exec -a renamed sleep {three}' &\nsleep {four}\n"
    );
    case.write("six", &script);
    case.x_in_time(". ./six", 1, 12, "");
    others.iter().for_each(Mark::expect_gone);
    assert_eq!(own.pids().len(), 1);
    assert_eq!(case.act("poll", &p0)["status"], "running");
}
