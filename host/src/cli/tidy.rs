//! Removes what a command has made for itself when a signal ends the command.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::print::say;
use crate::guard::Guard;

/// What is to be removed.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Keeps those signals from ending this program as long as what is returned is held.
pub(super) fn undisturbed() -> MutexGuard<'static, impl Sized> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes `folder` when SIGINT, SIGTERM or SIGHUP ends this program. One that is gone by then is no harm.
pub(super) fn remove_on_signal(folder: &Path) {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.push(folder.to_owned());
    if made.len() == 1 {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Without it the signal ends the program as it always did, and the folder stays until it is found to be stale.
            let _ = watch(signal);
        }
    }
}

fn watch(signal: i32) -> std::io::Result<()> {
    let (mut bell, ring) = UnixStream::pair()?;
    ring.set_nonblocking(true)?;
    thread::Builder::new().name("tidy".into()).spawn(move || {
        if bell.read(&mut [0]).is_ok_and(|read| read > 0) {
            // What still runs would go on writing to it.
            Guard::shared().end_in_flight();
            for folder in MADE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // It may be gone.
                let _ = std::fs::remove_dir_all(folder);
            }
            say("error", "interrupted");
            std::process::exit(128 + signal);
        }
    })?;
    signal_hook::low_level::pipe::register(signal, ring)?;
    Ok(())
}
