//! What the tool `terminal` answers.

use schemars::JsonSchema;
use serde::Serialize;

use crate::tools::shown::Shown;
use crate::tools::told::Told;
use crate::tools::tool::Failure;

/// The exit code of what has none: it was refused, or failed on our side.
pub(super) const NONE: i32 = -1;

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools, reason = "each is a member of the tool's contract")]
pub(in crate::tools) struct Outcome {
    /// What the command printed, both streams in the order in which it was written.
    pub(super) output: String,
    /// The command's exit code; 124: its time was up, 126: `workdir` is no directory, or it cannot be executed, 130: interrupted,
    /// 128+N: ended by signal N, -1: it was not run, or nobody knows how it ended.
    pub(super) exit_code: i32,
    /// Why there is no exit code; null where there is one.
    pub(super) error: Option<String>,
    /// `blocked`: refused by a rule. `error`: the call failed. `degraded`: the backend does not answer now; try again later.
    /// `yielded_to_background`: it was asked to run longer than a command in the foreground may. `pending_approval`: a person must
    /// allow it first, and `error` says how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// The background process, for the tool `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// The number of the process that looks after the background process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    /// The end of the background process will be told in `notices`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) notify_on_complete: bool,
    /// Lines of its output with one of these texts will be told in `notices`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) watch_patterns: Vec<String>,
    /// Where the session stands now, if it has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// What an exit code means that looks like a failure and need not be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exit_code_meaning: Option<String>,
    /// `timeout`, `interrupted` or `signal`, if the command did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<&'static str>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// How long the command took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) duration_seconds: Option<f64>,
    /// How many characters the whole output has, of which `output` shows the beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_total_chars: Option<u64>,
    /// The file on Hostel's machine that holds the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) full_output_path: Option<String>,
    /// What is missing from `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) truncation_note: Option<String>,
    /// The session's environment was lost, and made anew: what was only there is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) environment_recreated: bool,
    /// `sudo` refused the password.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) sudo_auth_failed: bool,
    /// The password for `sudo` was forgotten; it will be asked for again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) sudo_cache_cleared: bool,
    /// What else there is to know, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// What has happened in the background since the last result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notices: Vec<Told>,
}

impl Outcome {
    /// Makes the result of a call that has none.
    pub(super) fn failed(status: &'static str, failure: Failure) -> Self {
        Self {
            exit_code: NONE,
            error: Some(failure.message),
            hint: failure.hint,
            status: Some(status),
            ..Self::default()
        }
    }

    /// Puts a note of ours behind the output, on a line of its own.
    pub(super) fn note(&mut self, note: &str) {
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output.push_str(note);
    }

    /// Takes secrets out of what is ours; what the command printed has none any more.
    pub(super) fn redact(&mut self, shown: &Shown) {
        for text in [&mut self.error, &mut self.hint, &mut self.cwd].into_iter().flatten() {
            *text = shown.text(text);
        }
        self.warnings = shown.texts(&self.warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_a_line_of_its_own() {
        for (output, expected) in [("", "[n]"), ("half", "half\n[n]"), ("whole\n", "whole\n[n]")] {
            let mut made = Outcome { output: output.into(), ..Outcome::default() };
            made.note("[n]");
            assert_eq!(made.output, expected);
        }
    }

    #[test]
    fn three_members_are_always_there_and_others_only_with_something_to_say() {
        let value = serde_json::to_value(Outcome::default()).unwrap();
        let keys: Vec<_> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["output", "exit_code", "error"]);
        assert!(value["error"].is_null());
    }
}
