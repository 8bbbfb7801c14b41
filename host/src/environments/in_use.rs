//! Tells across processes of the host whether an environment is in use, and when it last was.
//!
//! A cleanup must not take an environment away from under a command, and that command may be another process's. So every
//! task's folder holds a file `use`: a process locks it for all as long as a call of its own is in flight, and a cleanup
//! locks it for itself. The kernel drops the locks of a process that is killed, so a dead host stands in nobody's way. The
//! file's time of modification is the last use.
//!
//! Such a lock belongs to an open file and not to a call. A process therefore opens the file once for each environment, and
//! holds the lock while its count of calls is above zero: a call costs a few system calls. The time is written once a second at the
//! most, since that goes through the file system's journal.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{
    FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, fstat, futimens, openat,
};
use rustix::io::Errno;

/// The file's name.
const NAME: &str = "use";

/// How long a call waits for a cleanup to end: longer than one may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How exact the last use is.
const EXACT: Duration = Duration::from_secs(1);

/// Both times of a file: the second becomes the present one.
const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
};

/// The file, opened once more, with locks of its own.
#[derive(Debug)]
pub(super) struct UseFile(File);

impl UseFile {
    /// Opens the file in the folder `dir`, and makes it if there is none. Commands may write to the folder: a link that they
    /// have laid is not followed.
    pub(super) fn open(dir: impl AsFd) -> io::Result<Self> {
        Self::with(dir, OFlags::CREATE)
    }

    /// Opens the file if there is one.
    pub(super) fn find(dir: impl AsFd) -> io::Result<Option<Self>> {
        match Self::with(dir, OFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    fn with(dir: impl AsFd, flags: OFlags) -> io::Result<Self> {
        // Opening a pipe that somebody has put there must not wait for its other end.
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(dir, NAME, flags, Mode::RUSR | Mode::WUSR)?);
        if file.metadata()?.is_file() {
            return Ok(Self(file));
        }
        Err(io::Error::other("`use` in it is no regular file"))
    }

    /// Returns whether the environment was cleaned up, and this file removed, since it was opened.
    pub(super) fn is_gone(&self) -> io::Result<bool> {
        Ok(fstat(&self.0)?.st_nlink == 0)
    }

    pub(super) fn last_used(&self) -> io::Result<SystemTime> {
        self.0.metadata()?.modified()
    }

    fn touch(&self) {
        // Only a list is less exact without it.
        let _ = futimens(&self.0, &NOW);
    }

    /// Locks it for a cleanup, unless a call or another cleanup holds it.
    pub(super) fn lock_alone(&self) -> io::Result<bool> {
        self.try_lock(FlockOperation::NonBlockingLockExclusive)
    }

    /// Returns whether a call or a cleanup holds it.
    pub(super) fn is_held(&self) -> io::Result<bool> {
        // Once more: somebody else who asks just now holds it for a moment.
        let free = self.lock_alone()? || self.lock_alone()?;
        if free {
            self.unlock();
        }
        Ok(!free)
    }

    /// Locks it for a call, and waits for the end of a cleanup.
    pub(super) fn lock_for_call(&self, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        while !self.try_lock(FlockOperation::NonBlockingLockShared)? {
            self.wait(until)?;
        }
        Ok(())
    }

    pub(super) fn unlock(&self) {
        // What is not locked any more is what is wanted; the kernel knows no other failure.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }

    fn try_lock(&self, operation: FlockOperation) -> io::Result<bool> {
        loop {
            match flock(&self.0, operation) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until nobody holds it alone. The kernel knows no limit to that, so it is waited for on another thread, by an open
    /// file of its own: a lock that comes too late is dropped with it.
    fn wait(&self, until: Instant) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let theirs = File::options().read(true).write(true).open(path)?;
        let (sender, receiver) = mpsc::channel();
        let wait = move || {
            let done = loop {
                match flock(&theirs, FlockOperation::LockShared) {
                    Err(Errno::INTR) => {}
                    done => break done,
                }
            };
            drop(theirs);
            // The waiter may have gone.
            let _ = sender.send(done);
        };
        thread::Builder::new().name("environment-wait".into()).spawn(wait)?;
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(done) => Ok(done?),
            Err(_) => Err(io::Error::new(io::ErrorKind::WouldBlock, "a cleanup of it does not end")),
        }
    }
}

/// One process's hold on the use of an environment. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Holder(Arc<Held>);

#[derive(Debug)]
struct Held {
    file: UseFile,
    calls: Mutex<Calls>,
}

/// The calls of this process.
#[derive(Debug, Default)]
struct Calls {
    in_flight: usize,
    /// When the last use was written down last.
    noted: Option<Instant>,
}

/// Says that a call is in flight for as long as it lives.
#[derive(Debug)]
#[must_use = "the environment counts as idle once this is dropped"]
pub struct InUse(Arc<Held>);

impl Holder {
    pub(super) fn new(file: UseFile) -> Self {
        Self(Arc::new(Held { file, calls: Mutex::default() }))
    }

    /// Begins a call. None where the environment was cleaned up.
    pub(super) fn begin(&self) -> io::Result<Option<InUse>> {
        let held = &self.0;
        // Held over the wait: whoever else begins a call here has to wait for the same.
        let mut calls = lock(&held.calls);
        let first = calls.in_flight == 0;
        if first {
            held.file.lock_for_call(PATIENCE)?;
        }
        // After the lock: from now on nobody can clean it up, unless by force.
        let gone = held.file.is_gone();
        if !matches!(gone, Ok(false)) {
            if first {
                held.file.unlock();
            }
            return gone.map(|_| None);
        }
        held.note(&mut calls);
        calls.in_flight += 1;
        Ok(Some(InUse(Arc::clone(held))))
    }

    /// Notes a use that no lock shows, such as a background process's.
    pub(super) fn touch(&self) {
        self.0.note(&mut lock(&self.0.calls));
    }
}

impl Held {
    /// Writes down that it is used now, unless that was done just now.
    fn note(&self, calls: &mut Calls) {
        if calls.noted.is_none_or(|noted| noted.elapsed() >= EXACT) {
            self.file.touch();
            calls.noted = Some(Instant::now());
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut calls = lock(&self.0.calls);
        self.0.note(&mut calls);
        calls.in_flight = calls.in_flight.saturating_sub(1);
        if calls.in_flight == 0 {
            self.0.file.unlock();
        }
    }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let opened = File::open(dir.path()).unwrap();
        (dir, opened)
    }

    #[test]
    fn it_is_held_from_the_first_call_to_the_last() {
        let (_dir, opened) = folder();
        let holder = Holder::new(UseFile::open(&opened).unwrap());
        let other = UseFile::open(&opened).unwrap();
        let first = holder.begin().unwrap().unwrap();
        let second = holder.begin().unwrap().unwrap();
        drop(first);
        assert!(other.is_held().unwrap() && !other.lock_alone().unwrap());
        drop(second);
        assert!(!other.is_held().unwrap());
        let again = UseFile::open(&opened).unwrap();
        assert!(again.lock_alone().unwrap(), "asking leaves nothing locked");
    }

    #[test]
    fn a_call_waits_for_a_cleanup_and_then_finds_the_environment_gone() {
        let (dir, opened) = folder();
        let holder = Holder::new(UseFile::open(&opened).unwrap());
        let cleanup = UseFile::open(&opened).unwrap();
        assert!(cleanup.lock_alone().unwrap());
        let (sender, receiver) = mpsc::channel();
        let caller = thread::spawn(move || sender.send(holder.begin().unwrap().is_none()));
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "it did not wait");
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        drop(cleanup);
        assert!(receiver.recv_timeout(Duration::from_secs(20)).unwrap());
        caller.join().unwrap().unwrap();
    }

    #[test]
    fn waiting_has_an_end() {
        let (_dir, opened) = folder();
        let (call, cleanup) = (UseFile::open(&opened).unwrap(), UseFile::open(&opened).unwrap());
        assert!(cleanup.lock_alone().unwrap());
        let error = call.lock_for_call(Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let (dir, opened) = folder();
        std::os::unix::fs::symlink("elsewhere", dir.path().join(NAME)).unwrap();
        assert!(UseFile::open(&opened).is_err());
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn a_use_is_noted() {
        let (dir, opened) = folder();
        let holder = Holder::new(UseFile::open(&opened).unwrap());
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        File::options().write(true).open(dir.path().join(NAME)).unwrap().set_modified(long_ago).unwrap();
        drop(holder.begin().unwrap().unwrap());
        assert!(UseFile::open(&opened).unwrap().last_used().unwrap() > long_ago);
    }
}
