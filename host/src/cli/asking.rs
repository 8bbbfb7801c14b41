//! Asks whoever sits at our terminal whether a call may be made.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::question;
use crate::tools::{Asked, Asker, Choice, Question, Reply};

/// Returns who can ask. None where nobody sits at a terminal.
pub(super) fn asker() -> Option<Arc<dyn Asker>> {
    if question::somebody_is_there() { Some(Arc::new(AtTerminal)) } else { None }
}

struct AtTerminal;

impl Asker for AtTerminal {
    /// Signals end the question by themselves.
    fn ask(&self, question: &Question, limit: Duration, _: BorrowedFd<'_>) -> Asked {
        let mut offered = vec!["y: this time"];
        if question.choices.contains(&Choice::Session) {
            offered.push("s: for the session");
        }
        // What is not ours was made visible by whoever made the question.
        let text = format!("{}\n\nAllow it? ({}, anything else: no) ", question.message, offered.join(", "));
        let answer = question::forget_typed().and_then(|()| question::ask_within(&text, false, Some(limit)));
        match answer {
            Ok(answer) => Asked::Answered(read(&answer, question)),
            Err(error) => {
                tracing::debug!(%error, "nobody has answered at the terminal");
                Asked::Unanswered
            }
        }
    }

    fn is_for_all_programs(&self) -> bool {
        // Each call is a program of its own.
        true
    }
}

fn read(answer: &str, question: &Question) -> Reply {
    let choice = match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "once" => Choice::Once,
        "s" | "session" => Choice::Session,
        _ => Choice::Deny,
    };
    if question.choices.contains(&choice) { Reply { choice, reason: None } } else { Reply::deny() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_that_was_offered_is_one() {
        let question = |choices: &[Choice]| Question { message: String::new(), choices: choices.to_vec() };
        let all = question(&[Choice::Once, Choice::Session]);
        let given = |answer: &str| read(answer, &all).choice;
        assert_eq!([given(" Y "), given("yes"), given("s")], [Choice::Once, Choice::Once, Choice::Session]);
        for no in ["", "n", "ye", "y y", "always", "\u{1b}[A"] {
            assert_eq!(given(no), Choice::Deny, "{no:?}");
        }
        assert_eq!(read("s", &question(&[Choice::Once])).choice, Choice::Deny);
    }
}
