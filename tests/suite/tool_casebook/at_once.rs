//! O-53 to O-55: calls at once, and very many of them.

use std::time::Duration;

use hostel_tests::by_both_roads;
use hostel_tests::kernel::eventually;
use hostel_tests::mcp_stdio::McpStdio;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use serde_json::{Value, json};

use super::case::{Case, is};

by_both_roads! { o_53_parallel_calls_of_one_session o_54_the_first_calls_share_one_environment }

fn o_53_parallel_calls_of_one_session(road: Road) {
    let case = Case::by(road);
    // A process for each is more than a small machine can do at once.
    let (changing, looking) = if road == Road::Mcp { (32, 64) } else { (6, 12) };
    let change = |i: u32| {
        let script = format!("export V{i}=$(head -c 3000 /dev/zero | tr '\\0' v); sleep 0.0{i}");
        json!({ "command": script })
    };
    let calls: Vec<Value> = (1..=changing).map(change).collect();
    case.tool_at_once("terminal", &calls).iter().for_each(|value| is(value, 0, ""));
    let calls = vec![json!({ "command": "ls >/dev/null && echo fine" }); looking];
    case.tool_at_once("terminal", &calls).iter().for_each(|value| is(value, 0, "fine"));
    // Each change is kept: that is the rule.
    let script = "echo \"$PATH\" | tr ':' '\\n' | grep -c declare; env | grep -c '^V'";
    case.x(script, 0, &format!("0\n{changing}"));
    case.x("kill -9 $$", 137, "");
    case.x("trap 'kill -9 $$' EXIT", 137, "");
    case.x("echo ok", 0, "ok");
}

fn o_54_the_first_calls_share_one_environment(road: Road) {
    let home = TidyHome::on("acmebox", "process").unwrap().by(road);
    let calls: Vec<Value> = (0..8).map(|i| json!({ "command": format!("echo {i} | tee f{i}") })).collect();
    for (i, value) in home.tool_at_once("terminal", &calls).iter().enumerate() {
        is(value, 0, &i.to_string());
    }
    is(&home.tool("terminal", &json!({ "command": "cat f?" })), 0, "0\n1\n2\n3\n4\n5\n6\n7");
    let list = home.hostel(&["env", "list", "--json"]).expect(0).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
}

/// With a fraction of the case's calls. What each leaves behind would still be more than what is allowed for.
#[test]
fn o_55_nothing_is_kept_of_finished_calls() {
    let case = Case::by(Road::Mcp);
    let pid = case.with_server("default", McpStdio::pid).as_raw_nonzero();
    let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
    let children = || {
        let list =
            std::process::Command::new("ps").args(["-o", "stat=", "--ppid", &pid.to_string()]).output();
        String::from_utf8(list.unwrap().stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    case.write("leaver", "setsid sleep 0.1 & exit 0\n");
    case.ends(&case.bg("true", &json!({})), 0, "");
    let (descriptors, children_before) = (count("fd"), children().len());
    for _ in 0..40 {
        case.x("true", 0, "");
    }
    for number in 0..12 {
        case.ends(&case.bg("true", &json!({ "pty": number % 2 == 0 })), 0, "");
    }
    for _ in 0..10 {
        assert_eq!(case.run("sleep 9", &json!({ "timeout": 0.1 }))["exit_code"], 124);
        case.x(". ./leaver", 0, "");
    }
    let near = || {
        let now = children();
        count("fd") <= descriptors + 5
            && now.len() <= children_before + 5
            && !now.iter().any(|state| state.starts_with('Z'))
    };
    let settled = eventually(Duration::from_secs(10), near);
    assert!(settled, "{descriptors} {children_before}: {} {:?}", count("fd"), children());
    case.x("ls /proc/self/fd", 0, "0\n1\n2\n3");
    case.x("ls -l /proc/self/fd | grep -c socket || true", 0, "0");
}
