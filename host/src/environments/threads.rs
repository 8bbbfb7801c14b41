//! Threads that run one thing after the other.
//!
//! Each call on an environment runs on a thread that can be left behind, and starting one for each costs more than a short command's
//! share of everything else that we do. So a thread that is done waits a while for the next thing.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for something to do.
const PATIENCE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// Those that wait, the last one last.
static WAITING: Mutex<Vec<(u64, Sender<Work>)>> = Mutex::new(Vec::new());

/// Runs `work` on a thread of its own, for as long as that takes. Where it panics, the thread ends.
///
/// # Errors
///
/// Fails if there can be no further thread.
pub(super) fn run(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut work: Work = Box::new(work);
    loop {
        let Some((_, waiting)) = lock().pop() else { break };
        match waiting.send(work) {
            Ok(()) => return Ok(()),
            // It has just given up waiting.
            Err(failed) => work = failed.0,
        }
    }
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("execute".into()).spawn(move || work_on(work, &sender, &receiver))?;
    Ok(())
}

fn work_on(mut work: Work, sender: &Sender<Work>, receiver: &Receiver<Work>) {
    let own = number();
    loop {
        work();
        lock().push((own, sender.clone()));
        work = match receiver.recv_timeout(PATIENCE) {
            Ok(next) => next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut waiting = lock();
                if let Some(place) = waiting.iter().position(|(number, _)| *number == own) {
                    waiting.remove(place);
                    return;
                }
                drop(waiting);
                // Somebody has taken us just now, and is about to say what for.
                let Ok(next) = receiver.recv() else { return };
                next
            }
        };
    }
}

fn number() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn lock() -> MutexGuard<'static, Vec<(u64, Sender<Work>)>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_used_again_and_one_that_panics_is_not() {
        let (sender, receiver) = mpsc::channel();
        let say = |sender: &Sender<thread::ThreadId>| {
            let sender = sender.clone();
            run(move || sender.send(thread::current().id()).unwrap()).unwrap();
        };
        run(|| panic!("on purpose")).unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..200 {
            say(&sender);
            seen.insert(receiver.recv().unwrap());
        }
        assert!(seen.len() < 200, "{} threads", seen.len());
        // Many at once each have one.
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(8));
        for _ in 0..8 {
            let (barrier, sender) = (std::sync::Arc::clone(&barrier), sender.clone());
            run(move || {
                barrier.wait();
                sender.send(thread::current().id()).unwrap();
            })
            .unwrap();
        }
        let at_once: std::collections::HashSet<_> = (0..8).map(|_| receiver.recv().unwrap()).collect();
        assert_eq!(at_once.len(), 8);
    }
}
