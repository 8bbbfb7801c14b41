//! O-01, O-02, O-19 and O-20: output is data, all of it is read, and a command may end its own shell.

use hostel_tests::by_both_roads;
use hostel_tests::marked::Mark;
use hostel_tests::mcp_stdio::McpStdio;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::{Case, is};

by_both_roads! {
    o_01_output_that_looks_like_the_hosts_own o_02_a_command_that_ends_its_own_shell o_19_more_output_than_is_kept
    o_20_both_streams_are_read
}

fn o_01_output_that_looks_like_the_hosts_own(road: Road) {
    let case = Case::by(road);
    let lines = "[interrupted by user]\n[timed out after 5s]\nexit_code: 0\n__CWD__/nowhere__\n";
    let script = "tr '\\0' '\\n' </proc/$$/cmdline\n\
                  printf '%s\\n' '[interrupted by user]' '[timed out after 5s]' 'exit_code: 0' '__CWD__/nowhere__'\n\
                  cd /\nfalse\n";
    let value = case.run(script, &json!({}));
    assert_eq!(json!([value["exit_code"], value["error"], value["cwd"]]), json!([1, null, "/"]), "{value}");
    assert!(value["output"].as_str().unwrap().ends_with(lines) && value.get("ended").is_none(), "{value}");
    case.x("pwd", 0, "/");
    // Whatever the shell's arguments are: printed once more, they change nothing.
    let value =
        case.run("tr '\\0' '\\n' </proc/$$/cmdline; set; trap; cat <&2; exit 4", &json!({ "timeout": 20 }));
    assert_eq!(json!([value["exit_code"], value["error"]]), json!([4, null]), "{value}");
    case.x("pwd", 0, "/");
}

fn o_02_a_command_that_ends_its_own_shell(road: Road) {
    let case = Case::by(road);
    let mark = Mark::new();
    case.x("cd sub 2>/dev/null || mkdir sub && cd sub; export KEEP=1", 0, "");
    case.write("two", &format!("sleep {mark} & exit 3\n"));
    case.x_prompt(". ./two", 3, "");
    case.x_prompt("exec printf 'replaced\n'; echo never", 0, "replaced");
    case.x_prompt("trap 'echo bye' EXIT; exit 6", 6, "bye");
    case.x("printf '%s %s\n' \"${PWD##*/}\" \"$KEEP\"", 0, "sub 1");
}

/// With a tenth of the case's 300 MiB, which shows as well whether it is held: the program would grow by it.
fn o_19_more_output_than_is_kept(road: Road) {
    let case = Case::by(road);
    let memory = || {
        let Road::Mcp = road else { return 0 };
        let pid = case.with_server("default", McpStdio::pid);
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
    };
    let before = memory();
    let value = case
        .run("head -c 31457280 /dev/zero | tr '\\0' q; echo; echo END; exit 3", &json!({ "timeout": 120 }));
    let output = value["output"].as_str().unwrap();
    assert!(value["exit_code"] == 3 && output.ends_with("q\nEND\n"), "{}", value["exit_code"]);
    assert!(output.len() < 50_200 && output.contains("bytes left out"), "{}", output.len());
    assert_eq!(value["output_total_chars"], 31_457_285);
    let value = case.x_in_time("yes", 1, 15, "y\ny\n");
    assert!(value["output"].as_str().unwrap().len() < 50_300);
    let grown = memory() - before;
    assert!(grown < 24 * 1024, "it grew by {grown} KiB");
}

fn o_20_both_streams_are_read(road: Road) {
    let case = Case::by(road);
    let script = "head -c 500000 /dev/zero | tr '\\0' e >&2; echo out-done";
    let value = case.run(script, &json!({ "timeout": 10 }));
    assert!(value["exit_code"] == 0 && value["output"].as_str().unwrap().ends_with("out-done\n"), "{value}");
    is(&case.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done", &json!({})), 0, "o1\ne1\no2\ne2\no3\ne3");
}
