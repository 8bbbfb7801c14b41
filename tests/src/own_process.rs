//! A test that has a process to itself.
//!
//! What a host keeps (descriptors, threads, children) and what it is given (variables, a directory) belong to a whole process, and
//! the tests of one program share theirs. So such a test starts its own program once more, for itself alone, with an
//! environment in which nothing is the tester's.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::built;

/// Names the test that has this process to itself.
pub const INSIDE: &str = "HOSTEL_TEST_INSIDE";

/// Variables of the tester's that such a test gets, since they say how tests run.
const PASSED_ON: [&str; 5] =
    ["PATH", "HOSTEL_TEST_REPEAT", "HOSTEL_TEST_STRICT", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"];

/// Runs `body` in a process that runs nothing else: the test `name`, a whole name as `--exact` takes it, has called this with it.
/// Its home and its directory are fresh folders, and its variables are `PATH`, `HOME`, `LANG`, and these.
///
/// # Panics
///
/// Panics if the test fails there, with all that it said.
pub fn in_own_process(name: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some_and(|inside| inside == *name) {
        body();
        return;
    }
    built();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), env::var_os(name)?)));
    let mut test = Command::new(env::current_exe().expect("a test has a path"));
    test.args([name, "--exact", "--nocapture"]).env_clear().envs(passed_on);
    test.env("HOME", dir.path()).env("LANG", "C.UTF-8").env(INSIDE, name);
    test.envs(variables.iter().copied()).current_dir(dir.path()).stdin(Stdio::null());
    let output = test.output().expect("a test starts");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = said.join("\n");
    assert!(output.status.success(), "{name} has failed in a process of its own:\n{said}");
    assert!(said.contains("1 passed"), "there is no test {name}:\n{said}");
    eprint!("{said}");
}
