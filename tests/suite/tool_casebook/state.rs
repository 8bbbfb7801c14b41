//! O-13 to O-16: what a session keeps, and that keeping it does no harm.
//!
//! `terminal` takes no variables for one call, so those of the cases stand in front of the command that is to see them.

use hostel_tests::by_both_roads;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::Case;

by_both_roads! {
    o_13_a_directory_that_is_gone o_14_a_value_with_line_breaks o_15_an_awkward_environment o_16_what_is_unset_stays_unset
}

// upstream #17558: once its directory was gone, a session could run nothing any more
fn o_13_a_directory_that_is_gone(road: Road) {
    let case = Case::by(road);
    case.x("mkdir w && cd w", 0, "");
    case.x("rmdir ../w; echo gone", 0, "gone");
    let value = case.x("echo hi", 0, "hi");
    assert!(value["warnings"].to_string().contains("/w` is gone"), "{value}");
    case.x("cd / && pwd", 0, "/");
    let value = case.run("echo there", &json!({ "workdir": "no/such/dir" }));
    assert_eq!(json!([value["exit_code"], value["output"]]), json!([126, ""]), "{value}");
    assert!(value["error"].as_str().unwrap().contains("no/such/dir"), "{value}");
}

fn o_14_a_value_with_line_breaks(road: Road) {
    let case = Case::by(road);
    case.x("export NOTE=$'one\ntouch pwned.flag\n$(touch pwned2.flag)'", 0, "");
    case.x("[ \"$NOTE\" = $'one\ntouch pwned.flag\n$(touch pwned2.flag)' ] && echo same", 0, "same");
    case.x("export ROOM=$'a\\'; touch pwned3.flag; \\'\n`touch pwned4.flag`'", 0, "");
    case.x("export ROOM2=\"$NOTE\"'\"\\'; ls -A", 0, "");
    case.x("ls -A", 0, "");
    // Nor do tools that run programs of their own mind it.
    case.write("f", "x\n");
    assert_eq!(case.read("f")["content"], "1|x");
    case.x("ls -A", 0, "f");
}

fn o_15_an_awkward_environment(road: Road) {
    let case = Case::by(road);
    let script = "export PATH=/nowhere CDPATH=/; readonly LOCKED=1; export LOCKED; greet() { echo \"hi $1\"; }; export -f greet";
    case.x(script, 0, "");
    case.x("echo ok", 0, "ok");
    case.ends(&case.bg("echo ok", &json!({})), 0, "ok\n");
    case.x("greet you; echo \"$PATH\"", 0, "hi you\n/nowhere");
    // Nor do the tools mind it, which run programs of their own.
    case.write("awkward", "x\n");
    assert_eq!(case.read("awkward")["content"], "1|x");
    case.x("export PATH=/usr/bin:/bin", 0, "");
    case.x("env 'X.Y=1' DOTTED=d sh -c 'echo \"[$DOTTED]\"'", 0, "[d]");
    case.x("env | grep -c '^X.Y=' ; ls >/dev/null && echo fine", 0, "0\nfine");
    case.write("f", "x\n");
    assert_eq!(case.read("f")["content"], "1|x");
}

fn o_16_what_is_unset_stays_unset(road: Road) {
    let case = Case::of(TidyHome::new().by(road).with("HOSTVAR", "h"));
    case.x("echo \"[$HOSTVAR]\"; ONLY_ONCE=1 sh -c 'echo \"[$ONLY_ONCE]\"'", 0, "[h]\n[1]");
    case.x("echo \"[${ONLY_ONCE-unset}]\"", 0, "[unset]");
    case.x("export A1=x B1=y; unset HOSTVAR", 0, "");
    case.x("unset A1", 0, "");
    case.x("echo \"[${A1-unset}] [$B1] [${HOSTVAR-unset}]\"", 0, "[unset] [y] [unset]");
    case.ends(
        &case.bg("echo \"[${A1-unset}] [$B1] [${HOSTVAR-unset}]\"", &json!({})),
        0,
        "[unset] [y] [unset]\n",
    );
    let level = || case.run("echo $SHLVL", &json!({}))["output"].clone();
    assert_eq!(level(), level());
}
