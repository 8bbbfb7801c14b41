//! What a rule is, and what can be found of it.

use std::time::Duration;

use super::bench::Bench;
use super::options::Options;
use crate::Error;

/// One thing that must hold of every provider.
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) about: &'static str,
    /// How to see it without the kit; `BACKEND` stands for the backend's name.
    pub(super) reproduce: &'static str,
    /// Whether commands have to run for it.
    pub(super) runs: bool,
    /// When its thread is left behind.
    pub(super) limit: fn(&Options) -> Duration,
    pub(super) test: fn(&Bench) -> Found,
}

impl Rule {
    /// Makes a rule for which no command runs.
    pub(super) const fn attribute(
        id: &'static str,
        about: &'static str,
        reproduce: &'static str,
        test: fn(&Bench) -> Found,
    ) -> Self {
        Self { id, about, reproduce, runs: false, limit: of_attributes, test }
    }

    /// Makes a rule for which commands run.
    pub(super) const fn command(
        id: &'static str,
        about: &'static str,
        reproduce: &'static str,
        test: fn(&Bench) -> Found,
    ) -> Self {
        Self { id, about, reproduce, runs: true, limit: of_commands, test }
    }

    /// Leaves its thread behind at `limit` instead.
    pub(super) const fn within(self, limit: fn(&Options) -> Duration) -> Self {
        Self { limit, ..self }
    }
}

/// Every question has a limit of its own; this one is for all of them together.
fn of_attributes(options: &Options) -> Duration {
    options.probe_limit * 60 + Duration::from_secs(60)
}

/// A command that does not come back is killed at its deadline, before this.
fn of_commands(_options: &Options) -> Duration {
    Duration::from_secs(45)
}

/// What was found: where the rule holds, a remark, which may be empty.
pub(super) type Found = Result<String, Unmet>;

/// Why a rule has not been seen to hold, as one line.
#[derive(Debug, Clone)]
pub(super) enum Unmet {
    Broken(String),
    Skipped(String),
}

impl Unmet {
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::Broken(reason) | Self::Skipped(reason) => reason,
        }
    }
}

impl From<Error> for Unmet {
    fn from(error: Error) -> Self {
        Self::Broken(told("the call", &error))
    }
}

/// Says that `what` failed, and how.
pub(super) fn told(what: &str, error: &Error) -> String {
    format!("{what} failed ({}): {error}", error.kind().as_str())
}

pub(super) fn broken<T>(detail: impl Into<String>) -> Result<T, Unmet> {
    Err(Unmet::Broken(detail.into()))
}

pub(super) fn skipped<T>(reason: impl Into<String>) -> Result<T, Unmet> {
    Err(Unmet::Skipped(reason.into()))
}

/// Goes on if `holds`, and else says what is wrong.
pub(super) fn hold(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Unmet> {
    if holds { Ok(()) } else { broken(otherwise()) }
}

/// Shows the beginning of an output within a line.
pub(super) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 120;
    let part = bytes.get(..LONGEST).unwrap_or(bytes);
    let text: String = String::from_utf8_lossy(part).chars().flat_map(char::escape_debug).collect();
    let more = if bytes.len() > LONGEST { "…" } else { "" };
    format!("`{text}{more}`")
}
