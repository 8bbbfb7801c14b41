//! O-09, O-10 and the second half of O-18: nothing is read that was not given, and what was given arrives.
//!
//! A command in the foreground is given nothing; a process is written to.

use std::time::{Duration, Instant};

use hostel_tests::by_both_roads;
use hostel_tests::marked::Mark;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::{Case, is};

by_both_roads! { o_09_no_request_is_eaten o_10_more_input_than_a_pipe_holds o_18_input_is_not_rewritten }

fn o_09_no_request_is_eaten(road: Road) {
    let case = Case::by(road);
    let calls = ["cat; echo first-done", "echo second", "read -r x; cat; cat /dev/stdin; echo \"rc=$?\""];
    let calls = calls.map(|command| json!({ "command": command }));
    let values = case.tool_at_once("terminal", &calls);
    is(&values[0], 0, "first-done");
    is(&values[1], 0, "second");
    is(&values[2], 0, "rc=0");
    case.ends(&case.bg("cat; echo bg-done", &json!({})), 0, "bg-done\n");
    let id = case.bg("read -r line; echo \"got=[$line] rc=$?\"", &json!({ "stdin": true }));
    case.stdin(&id, "one\ntwo\n");
    case.ends(&id, 0, "got=[one] rc=0\n");
}

fn o_10_more_input_than_a_pipe_holds(road: Road) {
    let case = Case::by(road);
    let text = "a".repeat(1 << 20);
    let given = |command: &str| {
        let id = case.bg(command, &json!({ "stdin": true }));
        case.stdin(&id, &text);
        case.act("close", &id);
        id
    };
    case.ends(&given("cat | wc -c"), 0, "1048576\n");
    case.ends(&given("cat > copy; cat copy | tr -d a; wc -c < copy"), 0, "1048576\n");
    let whole = case.act("wait", &given("cat"));
    assert!(whole["exit_code"] == 0 && whole["output"].as_str().unwrap().ends_with("aaa"), "{whole}");
    let mark = Mark::new();
    let begun = Instant::now();
    let id = given(&format!("sleep {mark}"));
    assert_eq!(case.act("kill", &id)["status"], "killed");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    mark.expect_gone();
    case.ends(&given("true"), 0, "");
    case.ends(&given("head -c 3; exit 4"), 4, "aaa");
    case.x("echo on", 0, "on");
}

fn o_18_input_is_not_rewritten(road: Road) {
    let case = Case::by(road);
    let id = case.bg("cat", &json!({ "stdin": true }));
    let text = "!x \\! $HOME `date` \\n %s ' \"\n";
    case.stdin(&id, text);
    assert_eq!(case.act("close", &id)["status"], "ok");
    case.ends(&id, 0, text);
}
