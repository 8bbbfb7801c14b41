//! What goes to stderr, and the exit code, when a command fails.

use hostel_plugin_api::Error;

use super::print::say;
use crate::config::{ConfigError, FileError, KeyError};
use crate::dotenv::DotenvError;
use crate::home::HomeError;
use crate::plugins::install::{InstallError, SourceError};
use crate::plugins::{EnableError, ScaffoldError};
use crate::world::OpenError;

/// The exit code of a failed command that is not `exec`.
pub(super) const FAILED: u8 = 1;

/// The exit code of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// A failure, ready to be shown.
#[derive(Debug)]
pub(super) struct Failure {
    /// None where the reader of our output has left, which is no failure.
    code: Option<u8>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { code: Some(FAILED), message: message.into(), hint: None }
    }

    /// The person, or a signal, ended it.
    pub(super) fn interrupted() -> Self {
        Self { code: Some(INTERRUPTED), ..Self::new("interrupted") }
    }

    pub(super) fn with_code(mut self, code: u8) -> Self {
        self.code = Some(code);
        self
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Shows the failure and returns the exit code.
    pub(super) fn print(&self) -> u8 {
        let Some(code) = self.code else { return 0 };
        say("error", &self.message);
        if let Some(hint) = &self.hint {
            say("hint", hint);
        }
        code
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { code: None, message: String::new(), hint: None },
            _ => Self::new(format!("failed to print: {error}")).with_hint(
                "what was asked for may have been done; see that there is room where the output goes",
            ),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            code: Some(FAILED),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self { code: Some(FAILED), message: error.to_string(), hint: error.hint() }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::File(error) => error.into(),
            ConfigError::Unsound(..) => {
                Self::new(error.to_string()).with_hint("`hostel config check` lists everything that is wrong")
            }
            ConfigError::Value { ref key, .. } => {
                let hint = format!("set it with `hostel config set {key} VALUE`");
                Self::new(error.to_string()).with_hint(hint)
            }
        }
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Self::new(error.to_string()).with_hint("set `HOSTEL_HOME` to the folder that Hostel may use")
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Home(error) => error.into(),
            OpenError::File(error) => error.into(),
            OpenError::Config(error) => error.into(),
            OpenError::Backends(error) => error.into(),
            error @ OpenError::Reaper(_) => Self::new(error.to_string()),
        }
    }
}

impl From<ScaffoldError> for Failure {
    fn from(error: ScaffoldError) -> Self {
        Self::new(error.to_string()).with_hint(error.hint())
    }
}

impl From<EnableError> for Failure {
    fn from(error: EnableError) -> Self {
        match error {
            EnableError::Config(error) => error.into(),
            EnableError::Value(error) => error.into(),
            EnableError::Load(ref load) => Self::new(error.to_string()).with_hint(load.hint.clone()),
            EnableError::Unknown(_) | EnableError::Problem(..) => {
                Self::new(error.to_string()).with_hint("`hostel plugins list` shows what is there")
            }
            EnableError::Record(..) => Self::new(error.to_string())
                .with_hint("check that nothing else is there, and the permissions of its folder"),
            EnableError::Key(_) => Self::new(error.to_string()),
        }
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Enable(error) => (*error).into(),
            error => Self { code: Some(FAILED), message: error.to_string(), hint: error.hint() },
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self { code: Some(FAILED), message: error.to_string(), hint: error.hint() }
    }
}

impl From<DotenvError> for Failure {
    fn from(error: DotenvError) -> Self {
        Self { code: Some(FAILED), message: error.to_string(), hint: error.hint() }
    }
}
