//! Looks at the output of a command whose `sudo`s were given a password.
//!
//! `sudo` says only there that the password was wrong. And a line that no `sudo` has read, because it was not reached or needed
//! none, goes to whatever reads next, which may well print it: what is printed goes to logs and to models, so the password is
//! taken out of it.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{ExecIo, Flow};

use super::secret::Secret;

/// The caller's side of a call.
pub(super) type SharedIo = Arc<dyn ExecIo + Send + Sync>;

/// What `sudo` says of a wrong password, in both of its implementations.
const REFUSALS: [&[u8]; 4] = [
    b"Sorry, try again",
    b"incorrect password attempt",
    b"Authentication failed, try again",
    b"incorrect authentication attempt",
];

/// The longest of them, but for one byte: how much of the past must be known to find one that comes in pieces.
const PAST: usize = 31;

/// A password of fewer bytes would blank out half of every line.
const SHORTEST: usize = 4;

/// What stands in the place of the password.
const MASK: &[u8] = b"***";

/// What was seen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// `sudo` said that the password was wrong.
    pub(super) refused: bool,
    /// The password was taken out.
    pub(super) masked: bool,
}

/// The caller's side of a call, without the password in its output.
pub(super) struct Watch {
    io: SharedIo,
    /// How long a person was waited for, which is not the command's time.
    asked: Duration,
    output: Mutex<Output>,
}

struct Output {
    password: Arc<Secret>,
    seen: Seen,
    /// The beginning of a password, perhaps, that is not passed on yet.
    held: Vec<u8>,
    /// The last bytes that were looked at.
    past: Vec<u8>,
}

impl Watch {
    pub(super) fn new(io: SharedIo, password: Arc<Secret>, asked: Duration) -> Self {
        let output = Output { password, seen: Seen::default(), held: Vec::new(), past: Vec::new() };
        Self { io, asked, output: Mutex::new(output) }
    }

    /// Passes on what is still held back, and returns what was seen.
    pub(super) fn finish(&self) -> Seen {
        let mut output = self.lock();
        let held = std::mem::take(&mut output.held);
        if !held.is_empty() {
            // The command is over: nothing could be stopped any more.
            let _ = self.io.output(&held);
        }
        output.seen
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExecIo for Watch {
    fn output(&self, bytes: &[u8]) -> Flow {
        if bytes.is_empty() {
            return self.io.output(bytes);
        }
        // Held until it is passed on, so that it stays in order.
        let mut output = self.lock();
        output.look(bytes);
        let shown = output.without_password(bytes);
        if shown.is_empty() { Flow::Continue } else { self.io.output(&shown) }
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        let deadline = self.io.deadline()?;
        Some(deadline.checked_add(self.asked).unwrap_or(deadline))
    }
}

impl Output {
    /// Looks for a refusal.
    fn look(&mut self, bytes: &[u8]) {
        if self.seen.refused {
            return;
        }
        self.past.extend_from_slice(bytes);
        self.seen.refused = REFUSALS.iter().any(|refusal| position(&self.past, refusal).is_some());
        let old = self.past.len().saturating_sub(PAST);
        self.past.drain(..old);
    }

    /// Returns what can be passed on now.
    fn without_password(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut waiting = std::mem::take(&mut self.held);
        waiting.extend_from_slice(bytes);
        let password = self.password.bytes();
        if password.len() < SHORTEST {
            return waiting;
        }
        let mut shown = Vec::with_capacity(waiting.len());
        let mut rest = waiting.as_slice();
        while let Some(at) = position(rest, password) {
            shown.extend_from_slice(&rest[..at]);
            shown.extend_from_slice(MASK);
            rest = &rest[at + password.len()..];
            self.seen.masked = true;
        }
        let longest = rest.len().min(password.len() - 1);
        let held = (1..=longest).rev().find(|length| rest.ends_with(&password[..*length])).unwrap_or(0);
        let (known, held) = rest.split_at(rest.len() - held);
        shown.extend_from_slice(known);
        self.held = held.to_vec();
        shown
    }
}

/// Returns where `wanted`, which is not empty, begins.
fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        from += at;
        if bytes[from..].starts_with(wanted) {
            return Some(from);
        }
        from += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<u8>>);

    impl ExecIo for Kept {
        fn output(&self, bytes: &[u8]) -> Flow {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Flow::Continue
        }

        fn cancelled(&self) -> bool {
            false
        }
    }

    /// Returns what comes out of `text` in pieces of this length, and what was seen.
    fn watched(password: &str, text: &str, piece: usize) -> (String, Seen) {
        let kept = Arc::new(Kept::default());
        let secret = Arc::new(Secret::first_line(password));
        let watch = Watch::new(Arc::<Kept>::clone(&kept), secret, Duration::ZERO);
        for bytes in text.as_bytes().chunks(piece) {
            assert_eq!(watch.output(bytes), Flow::Continue);
        }
        let seen = watch.finish();
        let shown = kept.0.lock().unwrap().clone();
        (String::from_utf8(shown).unwrap(), seen)
    }

    #[test]
    fn the_password_is_taken_out_however_it_comes() {
        let cases = [
            ("hunter2", "a hunter2 b\nhunter2hunter2", "a *** b\n******"),
            ("hunter2", "hunter1 hunthunter2 hunter", "hunter1 hunt*** hunter"),
            ("aabaa", "aabaabaa aabaa", "***baa ***"),
            ("abc", "abc", "abc"),
            ("", "plain", "plain"),
        ];
        for (password, text, expected) in cases {
            for piece in 1..=text.len() {
                let (shown, seen) = watched(password, text, piece);
                assert_eq!(shown, expected, "{text} in pieces of {piece}");
                assert_eq!(seen.masked, shown != text);
                assert!(!seen.refused);
            }
        }
    }

    #[test]
    fn a_refusal_is_seen_however_it_comes() {
        assert_eq!(REFUSALS.map(<[u8]>::len).into_iter().max(), Some(PAST + 1));
        for text in [
            "x\nSorry, try again.\nsudo: no password was provided\n",
            "sudo: 1 incorrect password attempt\n",
            "sudo: 3 incorrect password attempts\n",
            "sudo: Authentication failed, try again.\n",
            "Maximum 3 incorrect authentication attempts reached\n",
        ] {
            for piece in 1..=text.len() {
                let (shown, seen) = watched("hunter2", text, piece);
                assert_eq!(shown, text);
                assert!(seen.refused && !seen.masked, "{text} in pieces of {piece}");
            }
        }
        assert!(!watched("hunter2", "sudo: a password is required\nSorry", 5).1.refused);
    }

    #[test]
    fn the_time_of_a_question_is_not_the_commands() {
        struct Until(Instant);
        impl ExecIo for Until {
            fn output(&self, _: &[u8]) -> Flow {
                Flow::Continue
            }

            fn cancelled(&self) -> bool {
                false
            }

            fn deadline(&self) -> Option<Instant> {
                Some(self.0)
            }
        }
        let (until, asked) = (Instant::now(), Duration::from_secs(7));
        let watch = Watch::new(Arc::new(Until(until)), Arc::default(), asked);
        assert_eq!(watch.deadline(), Some(until + asked));
    }
}
