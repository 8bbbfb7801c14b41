//! Whether a program that was written can be read by its language, and whether that is new.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::access::Files;
use super::answer::Fields;
use super::syntax::Syntax;
use super::text::Text;
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

    /// This is wrong, and something was before.
    pub(super) fn broken_before(error: &str) -> Self {
        Self::error(format!("{error}; what was there before was not valid either"))
    }

    /// Nobody has looked.
    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self { status: "skipped", output: Some(why.into()) }
    }
}

/// Judges what a file holds by now, and held before. What is wrong is told and no more: it is written already.
pub(in crate::tools) fn linted(files: &Files<'_>, path: &str, new: &[u8], old: &[u8]) -> Lint {
    if is_python(path) {
        return python(files, new, old);
    }
    judged(path, new, old)
}

fn judged(path: &str, new: &[u8], old: &[u8]) -> Lint {
    let syntax = |bytes: &[u8]| Text::decode(bytes).map(|text| Syntax::of(path, &text.text));
    match syntax(new) {
        None => Lint::skipped("it is binary"),
        Some(Syntax::Good) => Lint::ok(),
        Some(Syntax::Unknown(why)) => Lint::skipped(why),
        Some(Syntax::Broken(error)) => {
            let was_broken = !old.trim_ascii().is_empty() && matches!(syntax(old), Some(Syntax::Broken(_)));
            if was_broken { Lint::broken_before(&error) } else { Lint::error(error) }
        }
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
    fn what_is_written_already_is_told_of_and_never_refused() {
        for (path, new, old, status, output) in [
            ("a.json", "{}", "", "ok", None),
            (
                "a.json",
                "{",
                "{}",
                "error",
                Some("no valid JSON: EOF while parsing an object at line 1 column 1"),
            ),
            ("a.toml", "a = 1\r\n", "x", "ok", None),
            ("a.yaml", "a: [", "a: [1", "error", None),
            ("a.txt", "{", "", "skipped", Some("there is no check for such files")),
        ] {
            let lint = judged(path, new.as_bytes(), old.as_bytes());
            assert_eq!(lint.status, status, "{path} {lint:?}");
            assert!(output.is_none() || lint.output.as_deref() == output, "{lint:?}");
        }
        let before = judged("a.json", b"// x\n{", b"// y\n{}").output.unwrap();
        assert!(before.ends_with("; what was there before was not valid either"), "{before}");
        assert_eq!(judged("a.json", b"{\0", b"").status, "skipped");
    }

    #[test]
    fn programs_are_known_by_their_names() {
        assert!(is_python("/w/a.py") && is_python("A.PYI") && !is_python("a.pyc") && !is_python("py"));
    }
}
