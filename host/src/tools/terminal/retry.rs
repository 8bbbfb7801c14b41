//! When a command is tried again.
//!
//! A command that may have started is never run a second time. One that surely has not, because the backend was not there for a
//! moment, is worth some seconds of patience.

use std::sync::PoisonError;
use std::time::Duration;

use hostel_plugin_api::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::tools::call::Call;
use crate::tools::session::Session;

/// How long is waited before each further attempt.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// What passes by itself.
const PASSING: [ErrorKind; 2] = [ErrorKind::UNAVAILABLE, ErrorKind::QUOTA];

/// After these the environment is gone, and the next attempt gets another.
const GONE: [ErrorKind; 3] = [ErrorKind::LOST, ErrorKind::CRASHED, ErrorKind::PANICKED];

/// Makes attempts until one is not worth another. `error` says why an attempt has failed, if it has. None if the caller gave up.
pub(in crate::tools) fn again<T>(
    session: &Session,
    call: &Call,
    mut attempt: impl FnMut() -> T,
    error: impl Fn(&T) -> Option<&Error>,
) -> Option<T> {
    let mut attempts = Attempts::default();
    loop {
        let made = attempt();
        let Some(error) = error(&made) else { return Some(made) };
        if loses_environment(error) {
            session.memory.terminal.lock().unwrap_or_else(PoisonError::into_inner).lose();
        }
        let Some(pause) = attempts.pause(error) else { return Some(made) };
        tracing::debug!(%error, ?pause, "the command has not started, and is tried again");
        if !wait(pause, call) {
            return None;
        }
    }
}

/// Returns whether the environment is gone with this error.
fn loses_environment(error: &Error) -> bool {
    GONE.contains(&error.kind())
}

/// Returns whether this is no fault of the command, and may be over soon.
pub(super) fn passes(error: &Error) -> bool {
    !error.may_have_started() && PASSING.contains(&error.kind())
}

/// Counts the attempts of one call.
#[derive(Debug, Default)]
struct Attempts(usize);

impl Attempts {
    /// Returns how long to wait before the next attempt. None if there is none.
    fn pause(&mut self, error: &Error) -> Option<Duration> {
        if error.may_have_started() || !(loses_environment(error) || PASSING.contains(&error.kind())) {
            return None;
        }
        let pause = PAUSES.get(self.0).copied()?;
        self.0 += 1;
        // There is nothing to wait for where a new environment is made anyway.
        Some(if self.0 == 1 && loses_environment(error) { Duration::ZERO } else { pause })
    }
}

/// Waits. Returns whether the caller did not give up meanwhile.
fn wait(pause: Duration, call: &Call) -> bool {
    let until = std::time::Instant::now() + pause;
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::from_borrowed_fd(call.cancel_fd(), PollFlags::IN)], left.as_ref()) {
            Ok(0) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_surely_not_started_is_tried_again() {
        let error = |kind| Error::new(kind, "no");
        let mut attempts = Attempts::default();
        for kind in [ErrorKind::UNAVAILABLE, ErrorKind::LOST, ErrorKind::CRASHED, ErrorKind::QUOTA] {
            assert_eq!(attempts.pause(&error(kind)), None);
        }
        for kind in [ErrorKind::INVALID_REQUEST, ErrorKind::BAD_CWD, ErrorKind::NOT_CONFIGURED] {
            assert_eq!(attempts.pause(&error(kind).not_started()), None);
        }
        let unavailable = error(ErrorKind::UNAVAILABLE).not_started();
        let pauses: Vec<_> = std::iter::from_fn(|| attempts.pause(&unavailable)).collect();
        assert_eq!(pauses, PAUSES);
        let lost = error(ErrorKind::LOST).not_started();
        assert_eq!(Attempts::default().pause(&lost), Some(Duration::ZERO));
    }

    #[test]
    fn waiting_ends_with_the_callers_patience() {
        let call = Call::new().unwrap();
        assert!(wait(Duration::from_millis(1), &call));
        call.cancel().cancel();
        assert!(!wait(Duration::from_secs(600), &call));
    }
}
