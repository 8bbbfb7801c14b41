//! What the tool `execute_code` answers.

use schemars::JsonSchema;
use serde::Serialize;

use crate::tools::shown::Shown;
use crate::tools::tool::Failure;

/// The exit code of a script that has none: it was not run, or nobody knows how it ended.
pub(super) const NONE: i32 = -1;

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(in crate::tools) struct Outcome {
    /// `success`: it ended with exit code 0. `error`: with another, or it could not be run. `timeout`: its time was up. `interrupted`: the
    /// call was cancelled.
    pub(super) status: &'static str,
    /// What the script printed on standard output; if that is longer than 50,000 bytes, its beginning and its end.
    pub(super) output: String,
    /// Its exit code; 124: its time was up, 130: interrupted, 128+N: ended by signal N, -1: it was not run, or nobody knows how
    /// it ended.
    pub(super) exit_code: i32,
    /// Why it did not succeed; null where it did.
    pub(super) error: Option<String>,
    /// What it printed on standard error, at most 10,000 bytes of it.
    pub(super) stderr: String,
    /// How many tools it has called.
    pub(super) tool_calls_made: u32,
    /// How long it ran.
    pub(super) duration_seconds: f64,
    /// Whether something is missing from `output`.
    pub(super) stdout_truncated: bool,
    /// How many bytes of the standard output are in `output`.
    pub(super) stdout_bytes_captured: u64,
    /// How many bytes the standard output has.
    pub(super) stdout_bytes_total: u64,
    /// How many bytes of it are not in `output`.
    pub(super) stdout_bytes_omitted: u64,
    /// The file on Hostel's machine that holds the whole standard output, if something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) full_output_path: Option<String>,
    /// What else there is to know, a line each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl Outcome {
    /// Makes the result of a script that was not run.
    pub(super) fn failed(failure: Failure) -> Self {
        Self {
            status: "error",
            exit_code: NONE,
            error: Some(failure.message),
            hint: failure.hint,
            ..Self::default()
        }
    }

    /// Adds a line of what there is to know.
    pub(super) fn warn(&mut self, line: &str) {
        let warning = self.warning.get_or_insert_default();
        if !warning.is_empty() {
            warning.push('\n');
        }
        warning.push_str(line);
    }

    /// Takes secrets out of what is ours; what the script printed has none any more.
    pub(super) fn redact(&mut self, shown: &Shown) {
        for text in [&mut self.error, &mut self.hint, &mut self.warning].into_iter().flatten() {
            *text = shown.text(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_members_are_always_there() {
        let value = serde_json::to_value(Outcome::default()).unwrap();
        let keys: Vec<_> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys[..6], ["status", "output", "exit_code", "error", "stderr", "tool_calls_made"]);
        assert!(value["error"].is_null() && !keys.contains(&&"warning".to_owned()));
    }

    #[test]
    fn each_warning_has_a_line() {
        let mut outcome = Outcome::default();
        outcome.warn("one");
        outcome.warn("two");
        assert_eq!(outcome.warning.as_deref(), Some("one\ntwo"));
    }
}
