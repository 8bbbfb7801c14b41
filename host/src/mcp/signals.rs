//! The signals that end a server.

use std::io::{self, PipeReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use tokio_util::sync::CancellationToken;

use crate::exec::ignored_signals;

/// Returns what is cancelled by the first signal that would end us. The second one ends the process at once. What our starter
/// has told us to ignore is ignored.
///
/// # Errors
///
/// Fails if a signal cannot be caught, or there can be no further thread.
pub(super) fn stop() -> io::Result<CancellationToken> {
    let (bell, ring) = io::pipe()?;
    let (stop, again) = (CancellationToken::new(), Arc::<AtomicBool>::default());
    let ignored = ignored_signals();
    for signal in
        [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0)
    {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        pipe::register(signal, ring.try_clone()?)?;
    }
    let theirs = stop.clone();
    thread::Builder::new().name("signals".into()).spawn(move || wait(bell, &theirs, &again))?;
    Ok(stop)
}

fn wait(mut bell: PipeReader, stop: &CancellationToken, again: &AtomicBool) {
    if bell.read(&mut [0]).is_ok_and(|count| count > 0) {
        again.store(true, Ordering::SeqCst);
        stop.cancel();
    }
}
