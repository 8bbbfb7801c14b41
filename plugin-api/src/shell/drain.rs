//! How long output is waited for.
//!
//! A call ends with its shell and not at end-of-file, since a child in the background may hold the pipe for ever. What the command itself has
//! written may still stand in the pipe then, and whoever takes it may be slow.

use std::time::{Duration, Instant};

/// After the end, silence of this length means that nothing more belongs to the command.
pub(super) const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// After the end, a child that writes without pause is listened to for this long.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// What the output is worth waiting for.
pub(super) enum Output {
    Open,
    /// The process has ended. So many bytes stood in the pipe then, which are owed however slowly they are taken; what comes
    /// after them is waited for a little. The last byte came at `last`, and the last of those owed at `since`.
    Draining {
        owed: usize,
        since: Instant,
        last: Instant,
    },
    Closed,
}

impl Output {
    /// Notes that so many bytes were taken.
    pub(super) fn took(&mut self, count: usize, now: Instant) {
        if let Self::Draining { owed, since, last } = self {
            if *owed > 0 {
                *since = now;
            }
            *owed = owed.saturating_sub(count);
            *last = now;
        }
    }

    /// Returns when waiting for more is over.
    pub(super) fn until(&self) -> Option<Instant> {
        match self {
            Self::Draining { owed: 0, since, last } => Some((*last + DRAIN_IDLE).min(*since + DRAIN_LIMIT)),
            Self::Open | Self::Draining { .. } | Self::Closed => None,
        }
    }

    /// Returns whether waiting for more is over.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        matches!(self, Self::Closed) || self.until().is_some_and(|until| now >= until)
    }
}
