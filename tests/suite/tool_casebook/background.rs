//! O-07, O-08 and O-56: what runs on behind a call.

use std::time::Duration;

use hostel_tests::by_both_roads;
use hostel_tests::kernel::files;
use hostel_tests::marked::Mark;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::Case;

by_both_roads! {
    o_07_what_is_left_running_runs_on o_08_a_process_that_closes_its_output o_56_a_log_that_never_ends
}

fn o_07_what_is_left_running_runs_on(road: Road) {
    let case = Case::by(road);
    let (one, two) = (Mark::new(), Mark::new());
    // By the means that shells have for it, where the tool cannot see that,
    case.write(
        "seven",
        &format!("(sleep 0.5; echo late; exec sleep {one}) & echo $! > bg.pid; echo started\n"),
    );
    case.x_prompt(". ./seven", 0, "started");
    case.write("too", &format!("setsid sleep {two} >/dev/null 2>&1 </dev/null & disown; echo started-too\n"));
    case.x_prompt(". ./too", 0, "started-too");
    case.x("sleep 1; kill -0 \"$(cat bg.pid)\" && echo alive", 0, "alive");
    one.appear(1);
    two.appear(1);
    // and where it does: nothing is run, and the answer says how it is done.
    for command in ["sleep 8 & echo $! > bg2.pid; echo started", "setsid sleep 8 & disown; echo started-too"]
    {
        let value = case.run(command, &json!({ "timeout": 20 }));
        assert_eq!(json!([value["exit_code"], value["output"]]), json!([-1, ""]), "{value}");
        assert!(value["hint"].as_str().unwrap().contains("`background: true`"), "{value}");
    }
    case.x("ls bg2.pid 2>/dev/null; echo none", 0, "none");
}

fn o_08_a_process_that_closes_its_output(road: Road) {
    let case = Case::by(road);
    let (one, two) = (Mark::new(), Mark::new());
    let script = format!("exec >/dev/null 2>&1; sleep 2; : {one}; exit 9");
    let a = case.bg(&script, &json!({}));
    let b = case.bg(&format!("exec >&- 2>&-; sleep {two}"), &json!({}));
    two.appear(1);
    for id in [&a, &b] {
        let value = case.act("poll", id);
        assert!(value["status"] == "running" && value.get("exit_code").is_none(), "{value}");
    }
    assert_eq!(case.act("kill", &b)["status"], "killed");
    two.expect_gone();
    let value = case.act("poll", &b);
    assert_eq!(json!([value["status"], value["completion_reason"]]), json!(["exited", "killed"]), "{value}");
    case.ends(&a, 9, "");
}

fn o_56_a_log_that_never_ends(road: Road) {
    let case = Case::by(road);
    let a = case.bg("yes", &json!({}));
    std::thread::sleep(Duration::from_secs(2));
    let value = case.act("poll", &a);
    assert_eq!(value["status"], "running", "{value}");
    let held = files(case.path()).1;
    assert!(held < 64 * 1024 * 1024, "{held} bytes are held");
    assert_eq!(case.act("kill", &a)["status"], "killed");
    let value = case.act("log", &a);
    assert!(value["dropped_bytes"].as_u64().unwrap() > 0, "nothing was dropped: {}", value["total_lines"]);
    assert!(value["output"].as_str().unwrap().ends_with("y\ny\n"));
}
