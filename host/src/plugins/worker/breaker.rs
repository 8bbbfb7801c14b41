//! Stops the restarting of a plugin that crashes again and again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many crashes ...
const MOST: usize = 5;
/// ... within so long open the breaker ...
const WITHIN: Duration = Duration::from_secs(60);
/// ... for so long.
const PAUSE: Duration = Duration::from_secs(30);

/// The crashes of one plugin.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    crashes: VecDeque<Instant>,
    open_until: Option<Instant>,
    total: u64,
}

impl Breaker {
    /// Takes a crash down.
    pub(super) fn crashed(&mut self, now: Instant) {
        self.total += 1;
        self.crashes.push_back(now);
        while self.crashes.front().is_some_and(|first| now.duration_since(*first) > WITHIN) {
            self.crashes.pop_front();
        }
        if self.crashes.len() >= MOST {
            self.crashes.clear();
            self.open_until = Some(now + PAUSE);
        }
    }

    /// Returns how many crashes there were in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns how long no worker is to be started, if so.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Duration> {
        let left = self.open_until?.saturating_duration_since(now);
        if left.is_zero() {
            self.open_until = None;
            return None;
        }
        Some(left)
    }

    /// Why the plugin is not started.
    pub(super) fn reason(left: Duration) -> String {
        let seconds = left.as_secs() + 1;
        format!("it crashed {MOST} times within a minute, and is not started again for {seconds} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_in_a_minute_open_it_and_a_pause_closes_it() {
        let (start, mut breaker) = (Instant::now(), Breaker::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in 0..4 {
            breaker.crashed(at(second));
            assert_eq!(breaker.pause(at(second)), None);
        }
        // The first is forgotten by then.
        breaker.crashed(at(61));
        assert_eq!(breaker.pause(at(61)), None);
        breaker.crashed(at(62));
        assert!(breaker.pause(at(62)).is_none());
        for second in 63..66 {
            breaker.crashed(at(second));
        }
        assert!(breaker.pause(at(65)).is_some());
        assert!(breaker.pause(at(93)).is_some());
        assert_eq!(breaker.pause(at(95)), None);
        breaker.crashed(at(96));
        assert_eq!(breaker.pause(at(96)), None);
    }
}
