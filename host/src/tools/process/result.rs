//! What the tool `process` answers.

use schemars::JsonSchema;
use serde::Serialize;

use super::seen::Seen;
use crate::processes::ProcessError;
use crate::tools::shown::Shown;
use crate::tools::told::Told;
use crate::tools::tool::Failure;

/// The result. Which members are there depends on the action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(in crate::tools) struct Reply {
    #[serde(flatten)]
    pub(super) seen: Seen,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// `list`: the processes of this task, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<Vec<Seen>>,
    /// `log`: the lines. `wait`: the end of the output, at most 2000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    /// `log`: how many lines the process has printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) total_lines: Option<u64>,
    /// `log`: how many of them these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) showing: Option<String>,
    /// `log`: what is missing of the lines that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) truncation_note: Option<String>,
    /// `log`: how many bytes at the beginning of the output are not kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dropped_bytes: Option<u64>,
    /// `wait`: why it did not wait as long as it was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_note: Option<String>,
    /// `write`, `submit`: how much the process was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes_written: Option<usize>,
    /// `signal`: how many processes it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes_signalled: Option<usize>,
    /// What has happened in the background since the last result. `list` and `poll` change nothing, and tell none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) notices: Option<Vec<Told>>,
}

impl From<Seen> for Reply {
    fn from(seen: Seen) -> Self {
        Self { seen, ..Self::default() }
    }
}

impl Reply {
    /// Makes the answer to what could not be done.
    pub(super) fn failed(failure: Failure) -> Self {
        let seen = Seen::acted("error", None);
        Self { seen, error: Some(failure.message), hint: failure.hint, ..Self::default() }
    }

    /// Makes the answer to what could not be done with the process `id`.
    pub(super) fn refused(id: Option<&str>, error: &ProcessError, shown: &Shown) -> Self {
        let status = match error {
            ProcessError::NotFound(_) => "not_found",
            ProcessError::Ended(_) => "already_exited",
            _ => "error",
        };
        Self {
            seen: Seen::acted(status, id.map(str::to_owned)),
            error: Some(shown.text(&error.to_string())),
            hint: hint(error).map(str::to_owned),
            ..Self::default()
        }
    }
}

/// Says what an agent can do about it: what is said to people are commands of theirs.
fn hint(error: &ProcessError) -> Option<&str> {
    Some(match error {
        ProcessError::NotFound(_) => "the action `list` shows the processes of this task",
        ProcessError::Ended(_) => "the action `log` shows what it printed",
        ProcessError::Silent(_) => "try again; the action `kill` ends it",
        ProcessError::Refused(refusal) => match refusal.kind.as_str() {
            "stdin_closed" => "start it by `terminal` with `background` and `stdin`, or `pty`",
            "stdin_full" => "1 MiB waits for it; look by `poll` at what it does",
            "no_terminal" => "start it by `terminal` with `background` and `pty`",
            "no_lease" => "it runs until its task ends, or the action `kill` ends it",
            "still_running" => "the action `signal` with `KILL` ends it by force",
            "unreachable" => "the action `kill` ends it wherever it runs",
            _ => return refusal.hint.as_deref(),
        },
        ProcessError::Start(_) | ProcessError::Io { .. } => return error.hint(),
    })
}
