//! The names of calls: of all calls on an environment, of one of them, and of the reading of its login files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// Makes a name for a call that no other has. It begins with that of its environment, so that what calls have left behind is
/// found when the environment ends.
pub(super) fn call_id(environment: Option<&str>) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = format!("{:x}_{since:x}_{count:x}", std::process::id());
    environment.map_or_else(|| own.clone(), |id| format!("{}{own}", calls_of(id)))
}

/// Returns how the names of all calls on an environment begin.
pub(super) fn calls_of(id: &str) -> String {
    format!("e{id}_")
}

/// Returns the name under which a shell session on the environment `id` reads its login files in the call `call`.
pub(super) fn login_of(id: &str, call: &str) -> String {
    format!("{}login_{call}", calls_of(id))
}
