//! Why something could not be done with a background process.

use std::io;

use hostel_plugin_api::Error;
use serde::{Deserialize, Serialize};

use super::id::ProcessId;

/// Why something could not be done with a background process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Nobody knows the name.
    #[error("there is no process `{0}`")]
    NotFound(String),
    /// It has ended.
    #[error("process `{0}` has ended")]
    Ended(ProcessId),
    /// Its keeper lives and does not answer.
    #[error("the keeper of process `{0}` does not answer")]
    Silent(ProcessId),
    /// Its keeper says no.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// It could not be started.
    #[error("{}", .0.message())]
    Start(Error),
    /// The operating system says no.
    #[error("{doing}: {error}")]
    Io {
        /// What failed, on what.
        doing: String,
        /// What the operating system said.
        error: io::Error,
    },
}

/// Why a keeper does not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The sort of reason, for programs.
    pub kind: String,
    /// One line.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), hint: None }
    }

    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }
}

impl ProcessError {
    pub(crate) fn io(doing: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::Io { doing: doing.into(), error: error.into() }
    }

    /// Returns the sort of reason that machine-readable output uses.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::Ended(_) => "already_exited",
            Self::Silent(_) => "silent",
            Self::Refused(refusal) => &refusal.kind,
            Self::Start(error) => error.kind().as_str(),
            Self::Io { .. } => "io",
        }
    }

    /// Returns what to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NotFound(_) => Some("`hostel process list` shows those that there are"),
            Self::Ended(_) => Some("`hostel process logs` shows what it printed"),
            Self::Silent(_) => {
                Some("see whether the keeper was stopped: `hostel process list` shows its number")
            }
            Self::Refused(refusal) => refusal.hint.as_deref(),
            Self::Start(error) => error.hint(),
            Self::Io { .. } => None,
        }
    }
}
