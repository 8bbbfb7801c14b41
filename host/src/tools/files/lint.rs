//! Whether a program that was written can be read by its language, and whether that is new.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::access::Files;
use super::answer::Fields;
use crate::tools::script::Script;

const PYTHON: &str = concat!(include_str!("begin.sh"), include_str!("python.sh"));

/// How long it may take. It is a courtesy, so not long.
const LIMIT: Duration = Duration::from_secs(10);

/// What is thought of the contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::tools) struct Lint {
    /// `ok`: the contents can be read by what the file is for, or could not be before either. `error`: they cannot. `skipped`: nobody
    /// has looked.
    pub(super) status: &'static str,
    /// What is wrong and where, or why nobody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
}

impl Lint {
    /// All is well.
    pub(super) fn ok() -> Self {
        Self { status: "ok", output: None }
    }

    /// This is wrong.
    pub(super) fn error(output: impl Into<String>) -> Self {
        Self { status: "error", output: Some(output.into()) }
    }

    /// Nobody has looked.
    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self { status: "skipped", output: Some(why.into()) }
    }
}

/// Returns whether a file is a program in Python.
pub(super) fn is_python(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".py", ".pyi", ".pyw"].iter().any(|end| path.ends_with(end))
}

/// Lets Python in the sandbox read a program, and the one that was there before. Nothing of either is run.
pub(super) fn python(files: &Files<'_>, new: &[u8], old: &[u8]) -> Lint {
    let script = Script::new(PYTHON)
        .var("HOSTEL_PATH", "")
        .var("HOSTEL_SIZE", new.len().to_string())
        .stdin([new, old].concat())
        .limit(LIMIT);
    match script.run(files.session, files.call) {
        Ok(ran) => told(&ran.output),
        Err(error) => Lint::skipped(format!("python3 could not be asked: {}", error.message())),
    }
}

fn told(printed: &[u8]) -> Lint {
    let mut fields = Fields::new(printed);
    match (fields.take(), fields.text()) {
        (Some(b"ok"), _) => Lint::ok(),
        (Some(b"old"), Some(error)) => {
            Lint { status: "ok", output: Some(format!("not by this change: {error}")) }
        }
        (Some(b"new"), Some(error)) => Lint::error(error),
        (Some(b"no"), _) => Lint::skipped("python3 is missing in the environment"),
        _ => Lint::skipped("python3 gave no answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        for (printed, status, output) in [
            (&b"ok\0"[..], "ok", None),
            (b"new\0line 1: bad\0", "error", Some("line 1: bad")),
            (b"old\0line 1: bad\0", "ok", Some("not by this change: line 1: bad")),
            (b"no\0program\0python3\0\0\0", "skipped", Some("python3 is missing in the environment")),
            (b"new\0half", "skipped", Some("python3 gave no answer")),
            (b"", "skipped", Some("python3 gave no answer")),
        ] {
            let expected = Lint { status, output: output.map(str::to_owned) };
            assert_eq!(told(printed), expected);
        }
    }

    #[test]
    fn programs_are_known_by_their_names() {
        assert!(is_python("/w/a.py") && is_python("A.PYI") && !is_python("a.pyc") && !is_python("py"));
    }
}
