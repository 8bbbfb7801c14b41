//! Starts another guard where one has ended.
//!
//! Whoever is short of memory, or tidies up by name, may kill the guard and not the host. The next call would find that; but a call that is in
//! flight may last for hours, and would then be left behind by a host that is killed. So a thread waits for the end of each guard.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::{Said, Shared};

/// A second guard that has ended sooner cannot be one here, and the next one would end as soon.
const SHORTEST: Duration = Duration::from_secs(1);

/// Follows the guard that a call has started just now, if there is one. Without a thread the next call finds its end.
pub(super) fn begin(shared: &Arc<Shared>, said: &Said) {
    follow(shared, said, Duration::ZERO);
}

/// Follows a guard that is replaced if it has lived for so long.
fn follow(shared: &Arc<Shared>, said: &Said, shortest: Duration) {
    let process = said.line.as_ref().and_then(|line| line.process.as_ref());
    let Some(end) = process.and_then(|process| process.pidfd.try_clone().ok()) else { return };
    let (shared, begun) = (Arc::downgrade(shared), Instant::now());
    let wait = move || {
        // Whether it is there or cannot be waited for: it is looked at.
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&end, PollFlags::IN)], None));
        if begun.elapsed() >= shortest {
            replace(&shared);
        }
    };
    let _ = thread::Builder::new().name("guard".into()).spawn(wait);
}

fn replace(shared: &Weak<Shared>) {
    let Some(shared) = shared.upgrade() else { return };
    let mut said = shared.lock();
    let in_flight = said.list.as_ref().is_some_and(|list| !list.in_flight().is_empty());
    // After a good-bye, and where a call was quicker, there is nothing to do.
    if !in_flight || said.line.is_none() || said.has_guard() {
        return;
    }
    said.begin(&shared.start);
    follow(&shared, &said, SHORTEST);
}
