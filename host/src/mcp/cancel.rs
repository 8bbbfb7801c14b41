//! The calls of one client that are in flight, and what ends them.
//!
//! A tool runs on a thread of its own, which nothing of the runtime's can stop. What can is its [`Cancel`]: it kills the tree
//! of the command. A call is cancelled when its client says so, when the client is gone, and when the server ends; and
//! whoever lets environments go must know that none is left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exec::Cancel;

/// How long calls may take to end once they are cancelled. The environments leave a provider behind after eight seconds.
const ENDING: Duration = Duration::from_secs(10);

/// The calls in flight.
pub(super) struct Calls {
    live: Mutex<Live>,
    count: watch::Sender<usize>,
    /// No call may begin any more.
    over: CancellationToken,
}

#[derive(Default)]
struct Live {
    cancels: HashMap<u64, Arc<Cancel>>,
    next: u64,
}

/// One call in flight, until it is dropped.
pub(super) struct Flight {
    calls: Arc<Calls>,
    number: u64,
}

impl Calls {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            count: watch::Sender::new(0),
            over: CancellationToken::new(),
        })
    }

    /// Counts a call. It is cancelled at once if all is over.
    pub(super) fn begin(self: &Arc<Self>, cancel: &Arc<Cancel>) -> Flight {
        let mut live = self.live();
        if self.over.is_cancelled() {
            cancel.cancel();
        }
        let number = live.next;
        live.next += 1;
        live.cancels.insert(number, Arc::clone(cancel));
        self.count.send_replace(live.cancels.len());
        Flight { calls: Arc::clone(self), number }
    }

    /// Returns how many calls are in flight.
    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Cancels all calls that are in flight now.
    pub(super) fn cancel_all(&self) {
        self.live().cancels.values().for_each(|cancel| cancel.cancel());
    }

    /// Cancels all calls, also those that will yet begin, and waits for their end, but not for ever.
    pub(super) async fn end(&self) {
        self.over.cancel();
        self.cancel_all();
        if !self.idle_within(ENDING).await {
            tracing::warn!(left = self.count(), "calls did not end in time");
        }
    }

    /// Waits until no call may begin any more, and nobody should wait for a client.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Waits until no call is in flight, but no longer than `limit`. Returns whether none is.
    pub(super) async fn idle_within(&self, limit: Duration) -> bool {
        let mut count = self.count.subscribe();
        // The sender is ours, and lives.
        tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await.is_ok()
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut live = self.calls.live();
        live.cancels.remove(&self.number);
        self.calls.count.send_replace(live.cancels.len());
    }
}

/// Cancels a call once a request is cancelled, until this is dropped.
#[must_use = "nothing is heard once this is dropped"]
pub(super) struct Heard(JoinHandle<()>);

impl Heard {
    pub(super) fn new(request: CancellationToken, cancel: Arc<Cancel>) -> Self {
        Self(tokio::spawn(async move {
            request.cancelled().await;
            cancel.cancel();
        }))
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn the_end_is_for_all_calls_and_waits_for_them() {
        runtime().block_on(async {
            let calls = Calls::new();
            let (first, second) = (Arc::new(Cancel::new().unwrap()), Arc::new(Cancel::new().unwrap()));
            let flight = calls.begin(&first);
            assert!(!calls.idle_within(Duration::ZERO).await && calls.count() == 1);
            let ending = tokio::spawn({
                let calls = Arc::clone(&calls);
                async move { calls.end().await }
            });
            tokio::task::yield_now().await;
            assert!(first.is_cancelled() && !ending.is_finished());
            let late = calls.begin(&second);
            assert!(second.is_cancelled());
            drop((flight, late));
            ending.await.unwrap();
            assert_eq!(calls.count(), 0);
        });
    }

    #[test]
    fn a_request_cancels_its_call_only_while_it_is_heard() {
        runtime().block_on(async {
            let (request, cancel) = (CancellationToken::new(), Arc::new(Cancel::new().unwrap()));
            drop(Heard::new(request.clone(), Arc::clone(&cancel)));
            request.cancel();
            tokio::task::yield_now().await;
            assert!(!cancel.is_cancelled());
            let _heard = Heard::new(request, Arc::clone(&cancel));
            tokio::task::yield_now().await;
            assert!(cancel.is_cancelled());
        });
    }
}
