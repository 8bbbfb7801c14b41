//! Why a plugin could not be loaded: at which step, why, and what to do.

use std::fmt;

use hostel_plugin_api::{Error, ErrorKind};

/// The steps between a folder and a provider, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Who may write to the files.
    Permissions,
    /// Whether someone whom the user trusts has signed it.
    Signature,
    /// Whether the library is the one that was enabled.
    Checksum,
    /// Whether the file is there, which is looked at before its checksum, and can be a library of this machine at all.
    File,
    /// Whether it has a plugin's entry.
    Entry,
    /// Whether it says for which API it was built, and for one that we have.
    Version,
    /// Whether the loader takes it.
    Open,
    /// Whether its types are ours.
    Layout,
    /// Whether it registers what it promised.
    Register,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permissions => "permissions",
            Self::Signature => "signature",
            Self::Checksum => "checksum",
            Self::File => "file check",
            Self::Version => "version",
            Self::Entry => "entry symbol",
            Self::Open => "opening",
            Self::Layout => "interface check",
            Self::Register => "registration",
        })
    }
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin `{plugin}` cannot be loaded ({step}): {reason}")]
pub struct LoadError {
    /// The plugin.
    pub plugin: String,
    /// The step.
    pub step: Step,
    /// Why, as a clause.
    pub reason: String,
    /// What to do.
    pub hint: String,
    /// Whether it may be over soon without anybody doing anything.
    pub passes: bool,
}

impl LoadError {
    /// Makes the error of a plugin that is on the list of the enabled, and was never enabled properly.
    #[must_use]
    pub fn never_pinned(plugin: &str) -> Self {
        let reason = "this folder's library was never pinned, or the record of that is damaged";
        Self::new(plugin, Step::Checksum, reason, format!("run `hostel plugins enable {plugin}`"))
    }

    /// Makes the error of a plugin whose manifest asks for more than was granted when it was enabled.
    #[must_use]
    pub fn wants_more(plugin: &str, more: &[String]) -> Self {
        let reason = format!("its manifest now asks for more than was granted: to {}", more.join(", to "));
        Self::new(
            plugin,
            Step::Permissions,
            reason,
            format!("run `hostel plugins enable {plugin}` to grant it"),
        )
    }

    /// Makes the error of one step.
    pub fn new(plugin: &str, step: Step, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { plugin: plugin.to_owned(), step, reason: reason.into(), hint: hint.into(), passes: false }
    }

    /// Says that it may be over soon, so that whoever waits a moment may do better.
    #[must_use]
    pub fn passing(self) -> Self {
        Self { passes: true, ..self }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        // What needs somebody to do something is not worth another attempt.
        let kind = if error.passes { ErrorKind::UNAVAILABLE } else { ErrorKind::NOT_CONFIGURED };
        Self::new(kind, error.to_string()).with_hint(error.hint).not_started()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_by_itself_is_worth_another_attempt() {
        let error = LoadError::new("p", Step::Checksum, "it was changed", "enable it again");
        assert_eq!(Error::from(error.clone()).kind(), ErrorKind::NOT_CONFIGURED);
        assert_eq!(Error::from(error.passing()).kind(), ErrorKind::UNAVAILABLE);
    }
}
