//! Closes environments that nobody has used for a while, in a host that runs for long.
//!
//! Each costs memory, a sandbox or money for as long as it is live, and an agent that has gone away does not say so. One thread
//! looks after all of them. It sleeps until the first moment at which one can have been idle for long enough, or for as long
//! as there are none. It decides on a picture of them: whoever closes one looks again, under its own lock.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Names an environment: backend and task.
pub type Key = (String, String);

/// What the reaper sees of one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Which one it is.
    pub key: Key,
    /// When the last call on it began or ended.
    pub last_used: Instant,
    /// How many calls are in flight.
    pub in_flight: usize,
}

/// The environments that the reaper looks after.
pub trait Reapable: Send + Sync + 'static {
    /// Returns those that are live. Must not wait for one that is being made or cleaned up.
    fn seen(&self) -> Vec<Seen>;

    /// Returns whether background processes are alive in one.
    fn has_background(&self, key: &Key) -> bool;

    /// Closes one, unless it was used since it was `seen`. Holds nobody up but the reaper.
    fn close_idle(&self, seen: &Seen);
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Reaper {
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    /// There is an environment that the reaper has not seen.
    made: bool,
    over: bool,
}

impl Reaper {
    /// Starts to close those of `environments` that have been idle for `lifetime`.
    ///
    /// # Errors
    ///
    /// Fails if there can be no further thread.
    pub fn start<R: Reapable>(environments: &Arc<R>, lifetime: Duration) -> io::Result<Self> {
        let bell = Arc::<Bell>::default();
        let (theirs, environments) = (Arc::clone(&bell), Arc::downgrade(environments));
        let reap = move || reap(&environments, lifetime, &theirs);
        thread::Builder::new().name("reaper".into()).spawn(reap)?;
        Ok(Self { bell })
    }

    /// Says that an environment was made. Calls need not be told of: they only put the moment off.
    pub fn made(&self) {
        lock(&self.bell.rung).made = true;
        self.bell.changed.notify_one();
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // Not waited for: it may be closing one just now.
        lock(&self.bell.rung).over = true;
        self.bell.changed.notify_one();
    }
}

fn reap<R: Reapable>(environments: &Weak<R>, lifetime: Duration, bell: &Bell) {
    loop {
        // Not held while asleep, so that it does not keep them.
        let Some(live) = environments.upgrade() else { return };
        let now = Instant::now();
        let (due, mut next) = plan(&live.seen(), now, lifetime);
        for seen in due {
            if live.has_background(&seen.key) {
                // It counts as used until now.
                next = earliest(next, now.checked_add(lifetime));
            } else {
                live.close_idle(&seen);
            }
        }
        drop(live);
        if !bell.wait(next) {
            return;
        }
    }
}

/// Returns those that have been idle for long enough, and the next moment at which another one can have been.
fn plan(seen: &[Seen], now: Instant, lifetime: Duration) -> (Vec<Seen>, Option<Instant>) {
    let mut due = Vec::new();
    let mut next = None;
    for one in seen {
        // A call that is in flight ends now at the earliest.
        let since = if one.in_flight > 0 { now } else { one.last_used };
        match since.checked_add(lifetime) {
            Some(at) if at <= now => due.push(one.clone()),
            at => next = earliest(next, at),
        }
    }
    (due, next)
}

/// Returns the earlier of two moments, of which either may never come.
fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

impl Bell {
    /// Sleeps until `next`, or for as long as there is nothing to look after if that is None. Returns false when all is over.
    fn wait(&self, next: Option<Instant>) -> bool {
        let mut rung = lock(&self.rung);
        loop {
            if rung.over {
                return false;
            }
            // With a moment to wake at, a new environment changes nothing: it can be due no earlier.
            let Some(next) = next else {
                if std::mem::take(&mut rung.made) {
                    return true;
                }
                rung = self.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                rung.made = false;
                return true;
            }
            rung = self.changed.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn lock(rung: &Mutex<Rung>) -> MutexGuard<'_, Rung> {
    rung.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    fn seen(task: &str, last_used: Instant, in_flight: usize) -> Seen {
        Seen { key: ("local".into(), task.into()), last_used, in_flight }
    }

    #[test]
    fn only_what_was_idle_for_long_enough_is_due() {
        let start = Instant::now();
        let (lifetime, now) = (Duration::from_secs(300), start + Duration::from_secs(400));
        let old = seen("old", start, 0);
        let young = seen("young", start + Duration::from_secs(150), 0);
        let busy = seen("busy", start, 1);
        let (due, next) = plan(&[busy.clone(), old.clone(), young], now, lifetime);
        assert_eq!((due, next), (vec![old], Some(start + Duration::from_secs(450))));
        assert_eq!(plan(&[busy], now, lifetime), (vec![], Some(now + lifetime)));
        assert_eq!(plan(&[], now, lifetime), (vec![], None));
    }

    #[test]
    fn a_lifetime_without_end_is_never_over() {
        let now = Instant::now();
        assert_eq!(plan(&[seen("t", now, 0)], now, Duration::MAX), (vec![], None));
    }

    struct Fake {
        live: Mutex<Vec<Seen>>,
        background: Mutex<Vec<&'static str>>,
        told: Mutex<Sender<String>>,
    }

    impl Reapable for Fake {
        fn seen(&self) -> Vec<Seen> {
            self.live.lock().unwrap().clone()
        }

        fn has_background(&self, key: &Key) -> bool {
            let found = self.background.lock().unwrap().pop_if(|task| *task == key.1).is_some();
            if found {
                self.told.lock().unwrap().send(format!("kept {}", key.1)).unwrap();
            }
            found
        }

        fn close_idle(&self, seen: &Seen) {
            self.live.lock().unwrap().retain(|other| other.key != seen.key);
            self.told.lock().unwrap().send(format!("closed {}", seen.key.1)).unwrap();
        }
    }

    fn fake() -> (Arc<Fake>, Receiver<String>) {
        let (sender, receiver) = mpsc::channel();
        let (live, background) = (Mutex::default(), Mutex::default());
        (Arc::new(Fake { live, background, told: Mutex::new(sender) }), receiver)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn it_wakes_for_what_is_made_later_and_waits_for_background_processes() {
        let (environments, told) = fake();
        let reaper = Reaper::start(&environments, Duration::from_millis(20)).unwrap();
        for task in ["first", "second"] {
            environments.background.lock().unwrap().push(task);
            environments.live.lock().unwrap().push(seen(task, Instant::now(), 0));
            reaper.made();
            assert_eq!(told.recv_timeout(LONG).unwrap(), format!("kept {task}"));
            assert_eq!(told.recv_timeout(LONG).unwrap(), format!("closed {task}"));
        }
    }

    #[test]
    fn it_ends_and_keeps_nothing_alive() {
        let (environments, told) = fake();
        environments.live.lock().unwrap().push(seen("t", Instant::now(), 0));
        let reaper = Reaper::start(&environments, Duration::from_secs(3600)).unwrap();
        drop(reaper);
        drop(environments);
        // The sender goes with the environments, once the thread has let go of them.
        assert_eq!(told.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
