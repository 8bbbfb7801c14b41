//! The one error type that crosses every contract of this crate.

use std::fmt;

use serde_json::Value;

use crate::Extra;

/// What sort of failure an [`Error`] is.
///
/// A newtype over a number and not an `enum`, so that a plugin built later can name a kind that an older host has
/// never heard of; such a kind reads as [`ErrorKind::OTHER`] does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorKind(pub u32);

impl ErrorKind {
    /// Anything that no other kind describes.
    pub const OTHER: Self = Self(0);
    /// The provider lacks a setting, a token or a program that its user can supply.
    pub const NOT_CONFIGURED: Self = Self(1);
    /// The provider's service or engine does not answer.
    pub const UNAVAILABLE: Self = Self(2);
    /// The caller asked for something that cannot be done as asked.
    pub const INVALID_REQUEST: Self = Self(3);
    /// The working directory that the caller named does not exist or cannot be entered.
    pub const BAD_CWD: Self = Self(4);
    /// The environment is gone, and what became of the command is unknown.
    pub const LOST: Self = Self(5);
    /// This provider does not do that.
    pub const UNSUPPORTED: Self = Self(6);
    /// The provider's code panicked. Set by the code around it, never by a provider.
    pub const PANICKED: Self = Self(7);
    /// An operating system call failed.
    pub const IO: Self = Self(8);
    /// What was named does not exist.
    pub const NOT_FOUND: Self = Self(9);
    /// The provider's service or the operating system does not allow it.
    pub const DENIED: Self = Self(10);
    /// It took too long.
    pub const TIMEOUT: Self = Self(11);
    /// The caller gave up.
    pub const CANCELLED: Self = Self(12);
    /// A limit of the account or the machine is used up.
    pub const QUOTA: Self = Self(13);

    /// The process in which the provider's code ran has died, or was killed because it hung. Set by the host, never by a provider.
    pub const CRASHED: Self = Self(14);

    /// Returns the name that machine-readable output uses for this kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NOT_CONFIGURED => "not_configured",
            Self::UNAVAILABLE => "unavailable",
            Self::INVALID_REQUEST => "invalid_request",
            Self::BAD_CWD => "bad_cwd",
            Self::LOST => "lost",
            Self::UNSUPPORTED => "unsupported",
            Self::PANICKED => "panicked",
            Self::IO => "io",
            Self::NOT_FOUND => "not_found",
            Self::DENIED => "denied",
            Self::TIMEOUT => "timeout",
            Self::CANCELLED => "cancelled",
            Self::QUOTA => "quota",
            Self::CRASHED => "crashed",
            _ => "other",
        }
    }
}

impl fmt::Debug for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.as_str(), self.0)
    }
}

/// A failure, with what a person can do about it.
///
/// Write the message as one line that says what failed, on what, and why, in lower case and without a final stop.
/// Never put a secret into it: it is shown, logged and sent to agents.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Parts>);

/// Behind a box, since every result of every call carries one.
#[derive(Debug, Clone, PartialEq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    started: bool,
    extra: Extra,
}

impl Error {
    /// Makes an error of `kind` from a command that may have started, which is the careful assumption.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            message: message.into(),
            hint: None,
            started: true,
            extra: Extra::new(),
        }))
    }

    /// Makes an error of an operating system call: `doing` says what failed, on what.
    #[must_use]
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::IO, format!("{doing}: {error}"))
    }

    /// Says what to do about it, as one line.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Puts what was being done, and on what, in front of the message.
    #[must_use]
    pub fn with_context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// Promises that the command of this call has not started, so that it is safe to run it again.
    #[must_use]
    pub fn not_started(mut self) -> Self {
        self.0.started = false;
        self
    }

    /// Returns what sort of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the one-line message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns what to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Adds a field that a later version of the host may know, such as how long to wait before another try.
    #[must_use]
    pub fn with_extra(mut self, key: &str, value: Value) -> Self {
        self.0.extra.insert(key.to_owned(), value);
        self
    }

    /// Returns the fields that have no method of their own.
    #[must_use]
    pub fn extra(&self) -> &Extra {
        &self.0.extra
    }

    /// Returns whether the command may have started. While this is true the call must not be repeated.
    #[must_use]
    pub fn may_have_started(&self) -> bool {
        self.0.started
    }
}
