//! One background process as an agent is shown it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::processes::{Source, Status, View};
use crate::tools::shown::Shown;
use crate::tools::told::exit_code_of;

/// A process, and what was done with it: all that a list of them and the answers of single actions have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(in crate::tools) struct Seen {
    /// Of a process, in `list`, `poll` and `log`: `running` or `exited`. `wait`: `exited`, `timeout` or `interrupted`. `kill`: `killed` or
    /// `already_exited`. `write`, `submit`, `close`, `resize`, `signal`, `renew`: `ok`. A failure: `not_found`, `already_exited` or
    /// `error`; a call that was not allowed: `blocked`, or `pending_approval` where a person must allow it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// The name of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// `list`, `poll`: its command; in a list the first 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// `list`, `poll`: the number of the process that looks after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    /// `list`, `poll`: where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backend: Option<String>,
    /// `list`, `poll`: the directory in which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// `list`, `poll`: when it was started, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<f64>,
    /// `list`, `poll`: for how many seconds it has run, or ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uptime_seconds: Option<f64>,
    /// `list`, `poll`: the end of its output: 1000 characters, in a list 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_preview: Option<String>,
    /// Its exit code, once it has ended; -15 if it was killed, -1 if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<String>,
    /// How it ended: `exited`, `signal`, `killed`, `lost` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion_reason: Option<String>,
    /// Who ended it, if it did not end by itself: `kill`, `lease`, `lifetime` or `cleanup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) termination_source: Option<&'static str>,
    /// When its time is up, in seconds since 1970; `renew` prolongs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease_until: Option<f64>,
    /// Texts in its output that are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) watch_patterns: Vec<String>,
    /// Whether its end is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) notify_on_complete: bool,
    /// Whether it outlives this task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) detached: bool,
    /// Why nobody knows how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// What else there is to know, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl Seen {
    /// Makes what is said of an action on the process `id`.
    pub(super) fn acted(status: &'static str, id: impl Into<Option<String>>) -> Self {
        Self { status: Some(status), session_id: id.into(), ..Self::default() }
    }

    /// Shows a process.
    pub(super) fn of(view: View, shown: &Shown) -> Self {
        Self {
            session_id: Some(view.session_id.to_string()),
            command: Some(shown.text(&view.command)),
            status: Some(status(view.status)),
            pid: Some(view.pid),
            backend: Some(view.backend),
            cwd: view.cwd,
            started_at: Some(view.started_at),
            uptime_seconds: Some((view.uptime_seconds * 1000.0).round() / 1000.0),
            output_preview: Some(shown.output(&view.output_preview)),
            exit_code: exit_code_of(view.status, view.exit_code),
            signal: view.signal,
            completion_reason: view.completion_reason,
            termination_source: view.termination_source.map(source),
            lease_until: view.lease_until,
            watch_patterns: view.watch_patterns,
            notify_on_complete: view.notify_on_complete,
            detached: view.detached,
            reason: view.error.map(|error| shown.text(&error.message)),
            warnings: shown.texts(&view.warnings),
        }
    }
}

/// Returns whether it runs. How it ended is said elsewhere: whoever waits for `exited` must not wait for ever.
pub(super) fn status(status: Status) -> &'static str {
    if status == Status::Running { "running" } else { "exited" }
}

/// Returns the name of who ended a process.
pub(super) fn source(source: Source) -> &'static str {
    match source {
        Source::Kill => "kill",
        Source::Lifetime => "lifetime",
        Source::Lease => "lease",
        Source::Cleanup => "cleanup",
    }
}
