//! Asks whoever sits behind an agent whether something may be done.
//!
//! A tool knows what is to be asked, and a face knows whom: a person at a terminal, or the client of a protocol. That nobody has
//! answered in time is never a yes, and neither is that there is nobody; but in the latter case there may be another way to ask.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// This time.
    Once,
    /// As long as the session lasts.
    Session,
    /// From now on.
    Always,
    /// No.
    Deny,
}

impl Choice {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Once, Self::Session, Self::Always, Self::Deny];

    /// Returns the name that programs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }

    /// Reads such a name. None for anything else.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.as_str() == name)
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is to be done, where, and why it is asked; several lines.
    pub message: String,
    /// What may be answered. [`Choice::Deny`] always may.
    pub choices: Vec<Choice>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The choice, one of those that were offered.
    pub choice: Choice,
    /// What the person has to say of it, for the agent.
    pub reason: Option<String>,
}

impl Reply {
    /// A no without a word.
    #[must_use]
    pub fn deny() -> Self {
        Self { choice: Choice::Deny, reason: None }
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Somebody has answered.
    Answered(Reply),
    /// Nobody has answered in time, or the caller gave up.
    Unanswered,
    /// Nobody can be asked.
    Nobody,
}

/// Somebody who can ask.
pub trait Asker: Send + Sync {
    /// Asks, and waits until there is a reply, `limit` is over, or `cancel` becomes readable.
    fn ask(&self, question: &Question, limit: Duration, cancel: BorrowedFd<'_>) -> Asked;

    /// Returns whether the session that is asked about goes on in other programs, so that an answer for the session has to be kept
    /// for them. By default it ends with this one.
    fn is_for_all_programs(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for choice in Choice::ALL {
            assert_eq!(Choice::parse(choice.as_str()), Some(choice));
        }
        assert_eq!(Choice::parse("Once"), None);
    }
}
