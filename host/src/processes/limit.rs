//! Limits the notices of all background processes together.
//!
//! Each process keeps its distance (`watch.rs`), and sixty-four of them could still drown everything else that an agent
//! hears. The processes of ours that watch them share this limit by a file.

use serde::{Deserialize, Serialize};

/// Lets 15 notices pass within 10 s, and after one more none for 30 s. Counts in seconds since 1970, since a file outlives
/// the clock of one boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GlobalLimit {
    /// When the last notices passed.
    passed: Vec<u64>,
    silent_until: u64,
    suppressed: u64,
}

/// What becomes of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It passes.
    Passes {
        /// Notices of all processes that did not, since the last one that did.
        suppressed: u64,
    },
    /// It does not, and it is the first: that there is silence now may be told instead.
    Silences,
    /// It does not.
    Silent,
}

impl GlobalLimit {
    const NOTICES: usize = 15;
    const WITHIN: u64 = 10;
    const SILENCE: u64 = 30;

    /// Counts a notice, and returns whether it passes. `now` is in seconds since 1970, and may be a little earlier than in
    /// the call before. What can only stem from a clock that has been set back is forgotten.
    pub fn admit(&mut self, now: u64) -> Admission {
        if (1..=Self::SILENCE).contains(&self.silent_until.saturating_sub(now)) {
            self.suppressed = self.suppressed.saturating_add(1);
            return Admission::Silent;
        }
        self.passed.retain(|at| now.abs_diff(*at) < Self::WITHIN);
        if self.passed.len() >= Self::NOTICES {
            self.passed.clear();
            self.silent_until = now.saturating_add(Self::SILENCE);
            self.suppressed = self.suppressed.saturating_add(1);
            return Admission::Silences;
        }
        self.passed.push(now);
        Admission::Passes { suppressed: std::mem::take(&mut self.suppressed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processes_together_fall_silent() {
        let mut limit = GlobalLimit::default();
        for count in 0..15 {
            assert_eq!(limit.admit(1000 + count % 9), Admission::Passes { suppressed: 0 });
        }
        assert_eq!(limit.admit(1008), Admission::Silences);
        let text = serde_json::to_string(&limit).unwrap();
        let mut limit: GlobalLimit = serde_json::from_str(&text).unwrap();
        assert_eq!(limit.admit(1037), Admission::Silent);
        assert_eq!(limit.clone().admit(1038), Admission::Passes { suppressed: 2 });
        assert_eq!(limit.admit(900), Admission::Passes { suppressed: 2 }, "the clock was set back");
    }

    #[test]
    fn notices_that_take_their_time_pass() {
        let mut limit = GlobalLimit::default();
        assert!((0..100).all(|count| limit.admit(count) == Admission::Passes { suppressed: 0 }));
    }

    #[test]
    fn no_file_content_stops_it() {
        assert_eq!(serde_json::from_str::<GlobalLimit>("{}").unwrap(), GlobalLimit::default());
        let text = format!(r#"{{"passed":[0,{0},{0}],"silent_until":{0},"suppressed":{0}}}"#, u64::MAX);
        for now in [0, 1, 1 << 40] {
            let mut limit: GlobalLimit = serde_json::from_str(&text).unwrap();
            assert_eq!(limit.admit(now), Admission::Passes { suppressed: u64::MAX });
        }
    }
}
