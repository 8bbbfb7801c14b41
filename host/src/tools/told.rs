//! What happened in the background, told with the results of other calls.
//!
//! An agent hears only what a result tells it. So the results of `terminal` and `process` carry what there is to tell of the task's
//! background processes, each thing once.

use schemars::JsonSchema;
use serde::Serialize;

use super::session::Session;
use super::shown::Shown;
use crate::processes::{Event, Notice, Status};

/// The most characters of a command.
const COMMAND: usize = 200;

/// What happened to a background process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct Told {
    /// The process.
    pub(super) session_id: String,
    /// `completed`: it has ended. `matched`: lines of its output have a text that is watched for. `disabled`: too many matched, it
    /// is no longer watched and its end will be told. `silenced`: so much matched in all processes that nothing is told for a while.
    pub(super) kind: &'static str,
    /// Its command, at most 200 characters of it.
    pub(super) command: String,
    /// How it ended: `exited`, `killed`, `lost` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion_reason: Option<&'static str>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// The end of its output, or the lines that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    /// The texts that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) patterns: Vec<String>,
    /// How many more lines matched than are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<u64>,
}

/// Returns what there is to tell to the agent of `session`. It is told once.
pub(super) fn news(session: &Session, shown: &Shown) -> Vec<Told> {
    match session.processes().notices(Some(session.task()), true) {
        Ok(notices) => notices.into_iter().map(|notice| told(notice, shown)).collect(),
        Err(error) => {
            tracing::warn!(task = session.task(), %error, "what happened in the background cannot be told");
            Vec::new()
        }
    }
}

fn told(notice: Notice, shown: &Shown) -> Told {
    let told = Told {
        session_id: notice.session_id.to_string(),
        command: shown.text(&beginning(&notice.command, COMMAND)),
        ..Told::default()
    };
    match notice.event {
        Event::Completed { status, exit_code, output } => Told {
            kind: "completed",
            completion_reason: Some(status.as_str()),
            exit_code: exit_code_of(status, exit_code),
            output: Some(shown.output(&output)),
            ..told
        },
        Event::Matched { patterns, text, omitted, suppressed } => Told {
            kind: "matched",
            output: Some(shown.output(&text)),
            patterns,
            omitted: Some(omitted.saturating_add(suppressed)).filter(|more| *more > 0),
            ..told
        },
        Event::Disabled { suppressed } => {
            Told { kind: "disabled", omitted: Some(suppressed).filter(|more| *more > 0), ..told }
        }
        Event::Silenced => Told { kind: "silenced", ..told },
    }
}

/// Returns the exit code of a process as agents are told it: -N if one of ours ended it by signal N, -1 if it is unknown.
pub(super) fn exit_code_of(status: Status, exit_code: Option<i32>) -> Option<i32> {
    match (status, exit_code) {
        (Status::Running, _) => None,
        (Status::Killed, Some(code @ 129..=159)) => Some(128 - code),
        (Status::Killed, None) => Some(-15),
        (_, code) => Some(code.unwrap_or(-1)),
    }
}

/// Returns the first `most` characters.
pub(super) fn beginning(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_say_who_ended_it() {
        for (status, code, told) in [
            (Status::Running, None, None),
            (Status::Exited, Some(143), Some(143)),
            (Status::Killed, Some(143), Some(-15)),
            (Status::Killed, Some(137), Some(-9)),
            (Status::Killed, Some(7), Some(7)),
            (Status::Killed, None, Some(-15)),
            (Status::Lost, None, Some(-1)),
        ] {
            assert_eq!(exit_code_of(status, code), told, "{status:?} {code:?}");
        }
    }
}
