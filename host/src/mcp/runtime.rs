//! The runtime that serves connections.

use std::io;
use std::time::Duration;

use tokio::runtime::Builder;

/// The most calls that run at once. More wait for one of them to end: each may take minutes.
pub(super) const CALLS: usize = 1024;

/// Threads for what is only looked up. No number of calls can take them away.
const OTHERS: usize = 32;

/// How long threads have that still do something. All that must end has ended by then.
const LEAVING: Duration = Duration::from_millis(200);

/// Runs `main` to its end. Connections are served on this thread, and what may wait runs on others.
///
/// # Errors
///
/// Fails if the process has no descriptors left.
pub(super) fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALLS + OTHERS)
        .thread_name("mcp")
        .build()?;
    let outcome = runtime.block_on(main);
    runtime.shutdown_timeout(LEAVING);
    Ok(outcome)
}
