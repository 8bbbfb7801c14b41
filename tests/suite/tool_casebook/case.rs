//! A session in an empty folder, and the tools under the names that cases give them.

use std::ops::Deref;
use std::time::{Duration, Instant};

use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use serde_json::{Value, json};

/// How long an answer may take that comes at once, on a machine that has much else to do.
const PROMPT: Duration = Duration::from_secs(10);

/// The session.
pub(super) struct Case(TidyHome);

impl Deref for Case {
    type Target = TidyHome;

    fn deref(&self) -> &TidyHome {
        &self.0
    }
}

impl Case {
    pub(super) fn by(road: Road) -> Self {
        Self::of(TidyHome::new().by(road))
    }

    /// Begins in a home that was prepared.
    pub(super) fn of(home: TidyHome) -> Self {
        let made = Self(home);
        made.x("mkdir t && cd t", 0, "");
        made
    }

    /// Runs a command, with further arguments.
    #[track_caller]
    pub(super) fn run(&self, command: &str, more: &Value) -> Value {
        let mut arguments = json!({ "command": command });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        self.tool("terminal", &arguments)
    }

    /// Runs a command whose exit code and output are these.
    #[track_caller]
    pub(super) fn x(&self, command: &str, exit_code: i32, output: &str) -> Value {
        let value = self.run(command, &json!({}));
        is(&value, exit_code, output);
        value
    }

    /// As [`x`](Self::x), for a command that leaves something behind.
    #[track_caller]
    pub(super) fn x_prompt(&self, command: &str, exit_code: i32, output: &str) {
        let begun = Instant::now();
        self.x(command, exit_code, output);
        assert!(begun.elapsed() < PROMPT, "{command} took {:?}", begun.elapsed());
    }

    /// Runs a command that nothing but its time ends, and which has printed `output` by then. It must end no later than `most`.
    #[track_caller]
    pub(super) fn x_in_time(&self, command: &str, seconds: u32, most: u64, output: &str) -> Value {
        let begun = Instant::now();
        let value = self.run(command, &json!({ "timeout": seconds }));
        assert!(begun.elapsed() < Duration::from_secs(most), "it took {:?}", begun.elapsed());
        assert!(begun.elapsed() >= Duration::from_secs(seconds.into()), "it took {:?}", begun.elapsed());
        assert_eq!(
            json!([value["exit_code"], value["error"], value["ended"]]),
            json!([124, null, "timeout"])
        );
        let told = value["output"].as_str().unwrap();
        assert!(told.starts_with(output), "{told}");
        value
    }

    /// Starts a process.
    #[track_caller]
    pub(super) fn bg(&self, command: &str, more: &Value) -> String {
        let mut more = more.clone();
        more["background"] = json!(true);
        let value = self.run(command, &more);
        value["session_id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
    }

    /// Does something with a process.
    #[track_caller]
    pub(super) fn act(&self, action: &str, id: &str) -> Value {
        self.tool("process", &json!({ "action": action, "session_id": id }))
    }

    /// Requires that a process ends so.
    #[track_caller]
    pub(super) fn ends(&self, id: &str, exit_code: i32, output: &str) {
        let value = self.act("wait", id);
        assert_eq!(json!([value["exit_code"], value["output"]]), json!([exit_code, output]), "{value}");
    }

    /// Gives a process something to read, if it still reads.
    #[track_caller]
    pub(super) fn stdin(&self, id: &str, text: &str) {
        let value = self.tool("process", &json!({ "action": "write", "session_id": id, "data": text }));
        let says_so = value["error"].as_str().is_some_and(|error| error.contains("reads no input any more"));
        let status = value["status"].as_str().unwrap_or_default();
        assert!(["ok", "already_exited"].contains(&status) || says_so, "{value}");
    }

    #[track_caller]
    pub(super) fn read(&self, path: &str) -> Value {
        self.tool("read_file", &json!({ "path": path }))
    }

    /// Writes a file, which must go well.
    #[track_caller]
    pub(super) fn write(&self, path: &str, content: &str) {
        let value = self.tool("write_file", &json!({ "path": path, "content": content }));
        assert!(value["error"].is_null(), "{value}");
    }

    #[track_caller]
    pub(super) fn patch(&self, path: &str, old: &str, new: &str) -> Value {
        self.tool("patch", &json!({ "path": path, "old_string": old, "new_string": new }))
    }

    /// Returns the exact bytes of a file, as no tool shows them.
    #[track_caller]
    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join("t").join(name)).unwrap()
    }
}

/// Requires an exit code and an output, but for the very last newline.
#[track_caller]
pub(super) fn is(value: &Value, exit_code: i32, output: &str) {
    assert!(value["error"].is_null(), "{value}");
    assert_eq!(value["exit_code"], exit_code, "{value}");
    let told = value["output"].as_str().unwrap();
    assert_eq!(
        told.strip_suffix('\n').unwrap_or(told),
        output.strip_suffix('\n').unwrap_or(output),
        "{value}"
    );
}
