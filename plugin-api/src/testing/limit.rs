//! Keeps what a provider does wrong on a thread of its own.

use std::any::Any;
use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::abi::guard::guard_or;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silent {
    /// It took longer than this.
    Hung(Duration),
    /// It panicked, with this message.
    Panicked(String),
    /// It was never asked: there are no threads left.
    NoThread(String),
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hung(limit) => write!(f, "no answer within {:.1} s", limit.as_secs_f64()),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::NoThread(reason) => write!(f, "no thread could be started: {reason}"),
        }
    }
}

/// Runs `body` on a thread of its own, and leaves it behind at `limit`.
pub(super) fn limited<T: Send + 'static>(
    limit: Duration,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Silent> {
    let (sender, receiver) = mpsc::channel();
    let call = move || {
        // The waiter may have gone.
        let _ = sender.send(body());
    };
    let thread = thread::Builder::new().name("conformance".into()).spawn(call);
    let thread = thread.map_err(|error| Silent::NoThread(error.to_string()))?;
    match receiver.recv_timeout(limit) {
        Ok(answer) => {
            // It has nothing left to do, and must not be counted among threads any more.
            let _ = thread.join();
            Ok(answer)
        }
        Err(RecvTimeoutError::Timeout) => Err(Silent::Hung(limit)),
        Err(RecvTimeoutError::Disconnected) => {
            Err(Silent::Panicked(thread.join().err().map_or_else(String::new, message)))
        }
    }
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // Its destructor may panic as well.
    guard_or((), || drop(payload));
    text.unwrap_or_else(|| "without a message".to_owned())
}

/// Locks, also after a panic: every change that is made under a lock here is a single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_panics_and_silence_are_told_apart() {
        let limit = Duration::from_millis(200);
        assert_eq!(limited(limit, || 7).unwrap(), 7);
        let panicked = limited(limit, || panic!("boom")).map(|()| 0).unwrap_err();
        assert_eq!(panicked.to_string(), "panicked: boom");
        let hung = limited(limit, || thread::sleep(Duration::from_secs(2))).unwrap_err();
        assert_eq!(hung.to_string(), "no answer within 0.2 s");
    }
}
