//! Which numbers of requests are in use on a connection.
//!
//! An answer names its request by the number that the client has given it, so two of one number cannot be told apart: the library
//! would send the answer of one for the other, or none. The second is refused, and the first goes on. A number is free again once its
//! request is not worked on any more and, where that is seen, its answer has gone out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

/// What is said of the second.
pub(super) const REFUSAL: &str =
    "a request with this `id` is not answered yet: give each request of a session an `id` of its own";

/// The numbers in use.
#[derive(Default)]
pub(super) struct InUse(Mutex<HashMap<RequestId, State>>);

/// What still goes on with a request.
#[derive(Clone, Copy)]
struct State {
    is_worked_on: bool,
    is_owed: bool,
}

/// A request that is worked on, until this is dropped.
pub(super) struct Held {
    id: RequestId,
    all: Arc<InUse>,
}

impl InUse {
    /// Takes a number. `is_owed` says that [`answered`](Self::answered) will be told. None if it is in use.
    pub(super) fn take(self: &Arc<Self>, id: &RequestId, is_owed: bool) -> Option<Held> {
        let mut all = self.all();
        if all.contains_key(id) {
            return None;
        }
        all.insert(id.clone(), State { is_worked_on: true, is_owed });
        Some(Held { id: id.clone(), all: Arc::clone(self) })
    }

    /// Notes that a request was answered, or never will be.
    pub(super) fn answered(&self, id: &RequestId) {
        self.change(id, |state| state.is_owed = false);
    }

    fn change(&self, id: &RequestId, change: impl FnOnce(&mut State)) {
        let mut all = self.all();
        let Some(state) = all.get_mut(id) else { return };
        change(state);
        if !state.is_worked_on && !state.is_owed {
            all.remove(id);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<RequestId, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.change(&self.id, |state| state.is_worked_on = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_once_its_request_is_done_and_answered() {
        let (all, id) = (Arc::<InUse>::default(), RequestId::Number(1));
        for answered_first in [false, true] {
            let held = all.take(&id, true).unwrap();
            assert!(
                all.take(&id, true).is_none() && all.take(&RequestId::String("1".into()), false).is_some()
            );
            if answered_first {
                all.answered(&id);
                assert!(all.take(&id, true).is_none());
                drop(held);
            } else {
                drop(held);
                assert!(all.take(&id, true).is_none());
                all.answered(&id);
            }
        }
        drop(all.take(&id, false).unwrap());
        assert!(all.take(&id, false).is_some());
    }
}
