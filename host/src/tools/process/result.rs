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
    /// `poll`, `log`: `running` or `exited`. `wait`: `exited`, `timeout` or `interrupted`. `kill`: `killed` or `already_exited`.
    /// `write`, `submit`, `close`, `resize`, `signal`, `renew`: `ok`. A failure: `not_found`, `already_exited` or `error`; a call that
    /// was not allowed: `blocked`, or `pending_approval` where a person must allow it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// `list`: the processes of this task, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<Vec<Seen>>,
    /// `poll`: the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// `poll`: the number of the process that looks after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    /// `poll`: where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backend: Option<String>,
    /// `poll`: the directory in which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// `poll`: when it was started, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<f64>,
    /// `poll`: for how many seconds it has run, or ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uptime_seconds: Option<f64>,
    /// `poll`: the end of the output, at most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_preview: Option<String>,
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
    /// The exit code, once the process has ended; -15 if it was killed, -1 if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<String>,
    /// `poll`, `wait`: how it ended: `exited`, `signal`, `killed`, `lost` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion_reason: Option<String>,
    /// `poll`, `wait`: who ended it, if it did not end by itself: `kill`, `lease`, `lifetime` or `cleanup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) termination_source: Option<&'static str>,
    /// `wait`: why it did not wait as long as it was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_note: Option<String>,
    /// `write`, `submit`: how much the process was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes_written: Option<usize>,
    /// `signal`: how many processes it reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes_signalled: Option<usize>,
    /// `poll`, `renew`: when its time is up, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease_until: Option<f64>,
    /// `poll`: texts in the output that are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) watch_patterns: Vec<String>,
    /// `poll`: whether its end is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) notify_on_complete: bool,
    /// `poll`: whether it outlives this task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) detached: bool,
    /// `poll`, `wait`: why nobody knows how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// What else there is to know, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// What has happened in the background since the last result. `list` and `poll` change nothing, and tell none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) notices: Option<Vec<Told>>,
}

impl Reply {
    /// Makes the answer to `poll`.
    pub(super) fn seen(seen: Seen) -> Self {
        Self {
            status: Some(seen.status),
            session_id: Some(seen.session_id),
            command: Some(seen.command),
            pid: Some(seen.pid),
            backend: Some(seen.backend),
            cwd: seen.cwd,
            started_at: Some(seen.started_at),
            uptime_seconds: Some(seen.uptime_seconds),
            output_preview: Some(seen.output_preview),
            exit_code: seen.exit_code,
            signal: seen.signal,
            completion_reason: seen.completion_reason,
            termination_source: seen.termination_source,
            lease_until: seen.lease_until,
            watch_patterns: seen.watch_patterns,
            notify_on_complete: seen.notify_on_complete,
            detached: seen.detached,
            reason: seen.reason,
            warnings: seen.warnings,
            ..Self::default()
        }
    }

    /// Makes the answer to what was done.
    pub(super) fn ok() -> Self {
        Self { status: Some("ok"), ..Self::default() }
    }

    /// Makes the answer to what could not be done.
    pub(super) fn failed(failure: Failure) -> Self {
        Self { status: Some("error"), error: Some(failure.message), hint: failure.hint, ..Self::default() }
    }

    /// Makes the answer to what could not be done with the process `id`.
    pub(super) fn refused(id: Option<&str>, error: &ProcessError, shown: &Shown) -> Self {
        let status = match error {
            ProcessError::NotFound(_) => "not_found",
            ProcessError::Ended(_) => "already_exited",
            _ => "error",
        };
        Self {
            status: Some(status),
            session_id: id.map(str::to_owned),
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
