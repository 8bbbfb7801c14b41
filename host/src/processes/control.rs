//! What is said between a keeper and those who want something of its process.
//!
//! One connection carries one question: a line of JSON, behind which a `write` has its bytes, so that they can be any; and one
//! answer, a line of JSON as well. The answers to `wait` and `kill` come once the process has ended and its record says so.

use serde::{Deserialize, Serialize};

use super::error::Refusal;
use super::record::{PtySize, Source};

/// The longest line.
pub(super) const LONGEST_LINE: usize = 4096;

/// The most bytes that one `write` carries. Whoever has more asks again.
pub(super) const LARGEST_WRITE: usize = 64 * 1024;

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Request {
    /// Give the process these many bytes, which follow.
    Write { bytes: usize },
    /// Tell it that there is no more input.
    CloseStdin,
    /// Change the size of its terminal.
    Resize(PtySize),
    /// Send this signal to everything that it has started.
    Signal { signal: i32 },
    /// End it.
    Kill { source: Source },
    /// Prolong its lease, by this many seconds from now or as many as it was given before.
    Renew { lease_s: Option<f64> },
    /// Say when it has ended.
    Wait,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// It was done.
    Done,
    /// It was done, to so many processes.
    Signalled { processes: usize },
    /// It is not done.
    Refused(Refusal),
}

/// Writes a line.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // What is said here has only texts for keys, which is all that could fail.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_one_line() {
        let write = line(&Request::Write { bytes: 3 });
        assert_eq!(write, b"{\"do\":\"write\",\"bytes\":3}\n");
        for request in [
            Request::CloseStdin,
            Request::Resize(PtySize { rows: 1, columns: 2 }),
            Request::Kill { source: Source::Cleanup },
            Request::Renew { lease_s: None },
            Request::Wait,
        ] {
            assert_eq!(serde_json::from_slice::<Request>(&line(&request)).unwrap(), request);
        }
        let answer = Answer::Refused(Refusal::new("kind", "two\nlines").with_hint("hint"));
        let text = line(&answer);
        assert!(text.ends_with(b"\n") && !text[..text.len() - 1].contains(&b'\n'));
        assert_eq!(serde_json::from_slice::<Answer>(&text).unwrap(), answer);
    }
}
