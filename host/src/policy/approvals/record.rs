//! A request that is kept, with its answer.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::id::ApprovalId;
use super::request::Request;

/// How long a request waits for its answer, and how long that holds.
const HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Nobody has answered.
    Pending,
    /// The same call may be made once.
    Once,
    /// All calls that it covers may be made until the task's environment is cleaned up, for a day at the most.
    Session,
    /// The same call is refused.
    Denied,
}

impl Standing {
    /// Returns the name that machine-readable output uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Once => "once",
            Self::Session => "session",
            Self::Denied => "denied",
        }
    }
}

/// A request that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: ApprovalId,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// How it stands.
    pub standing: Standing,
    /// When it was answered, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// What the person has to say of it, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The call.
    pub request: Request,
}

impl Record {
    /// Returns whether it counts no more. What was made or answered in the future was so by a clock that was wrong.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now.abs_diff(self.answered.unwrap_or(self.created)) > HOLDS.as_secs()
    }
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}
