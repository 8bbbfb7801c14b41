//! O-21 and O-22: an end by a signal is told as shells tell it, and signals are as a program may expect them.

use hostel_tests::by_both_roads;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::Case;

by_both_roads! { o_21_exit_codes_are_those_of_the_shell o_22_no_signal_is_ignored }

fn o_21_exit_codes_are_those_of_the_shell(road: Road) {
    let case = Case::by(road);
    case.x("kill -9 $$", 137, "");
    case.x("kill -TERM $$; echo alive", 143, "");
    for (command, code) in [
        ("sh -c 'kill -SEGV $$'; exit $?", 139),
        ("exit 300", 44),
        ("exit -1", 255),
        ("nosuchcommand_q", 127),
        ("/etc/passwd", 126),
    ] {
        let value = case.run(command, &json!({}));
        assert_eq!(json!([value["exit_code"], value["error"]]), json!([code, null]), "{command}: {value}");
        let waited = case.act("wait", &case.bg(command, &json!({})));
        assert_eq!(waited["exit_code"], code, "{command}: {waited}");
    }
}

fn o_22_no_signal_is_ignored(road: Road) {
    let case = Case::by(road);
    let script = "yes | head -n 1; echo \"${PIPESTATUS[*]}\"";
    case.x(script, 0, "y\n141 0");
    for pty in [false, true] {
        case.ends(&case.bg(script, &json!({ "pty": pty })), 0, "y\n141 0\n");
    }
    let look = "grep -E 'SigIgn|SigBlk' /proc/self/status";
    let waited = case.act("wait", &case.bg(look, &json!({})));
    for value in [case.run(look, &json!({})), waited] {
        let told = value["output"].as_str().unwrap();
        let mask = |name: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        assert_eq!((mask("SigBlk:"), mask("SigIgn:") & 0x7fff_ffff), (0, 0), "{told}");
    }
}
