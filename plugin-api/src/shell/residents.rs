//! How many sessions keep a resident at a time.
//!
//! A resident costs descriptors here and processes beside us for as long as its session is there, whether commands come or not. A
//! host with hundreds of sessions would run out of descriptors (a worker has a thousand), and its next command would fail. So only the
//! sessions whose commands ran last keep theirs; the others get a new one when they need it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::launch::Kept;

/// So many keep theirs. It takes as many sessions that are busy at once before that makes anything slower.
const MOST: usize = 64;

/// Those that have one, the one that was used last at the end.
#[derive(Default)]
pub(super) struct Residents(Mutex<VecDeque<Weak<Mutex<Kept>>>>);

impl Residents {
    /// Those of this process.
    pub(super) fn shared() -> &'static Self {
        static SHARED: Residents = Residents(Mutex::new(VecDeque::new()));
        &SHARED
    }

    /// Notes that a session uses its resident now, and takes away those that were used longest ago, if there are too many. The
    /// caller may have locked what is its own, and nothing of another's.
    pub(super) fn note(&self, used: &Arc<Mutex<Kept>>) {
        for kept in self.superfluous(used) {
            // Who is locked is in use just now, and comes here again.
            if let Ok(mut kept) = kept.try_lock() {
                kept.let_go();
            }
        }
    }

    fn superfluous(&self, used: &Arc<Mutex<Kept>>) -> Vec<Arc<Mutex<Kept>>> {
        let used = Arc::downgrade(used);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.back().is_some_and(|last| last.ptr_eq(&used)) {
            return Vec::new();
        }
        all.retain(|one| !one.ptr_eq(&used) && one.strong_count() > 0);
        all.push_back(used);
        let excess = all.len().saturating_sub(MOST);
        all.drain(..excess).filter_map(|one| one.upgrade()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_used_last_keep_theirs() {
        let residents = Residents::default();
        let kept: Vec<Arc<Mutex<Kept>>> = (0..MOST + 2).map(|_| Arc::default()).collect();
        for one in &kept[..MOST] {
            assert!(residents.superfluous(one).is_empty());
        }
        assert!(residents.superfluous(&kept[0]).is_empty(), "it was there already");
        let gone = residents.superfluous(&kept[MOST]);
        assert!(gone.len() == 1 && Arc::ptr_eq(&gone[0], &kept[1]));
        let last: Arc<Mutex<Kept>> = Arc::default();
        drop(kept);
        drop(gone);
        assert!(residents.superfluous(&last).is_empty(), "sessions that are gone count for nothing");
    }
}
