//! One's turn at something that others may be at for long.
//!
//! Who waits must still hear that its caller has given up, and the kernel wakes a waiter for a lock for nothing but the lock. So a
//! thread waits for it, and a pipe says when it has it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::call::Cause;
use super::lock::open_lock;
use crate::ExecIo;

/// How often a caller is asked whether it has cancelled who has no descriptor to say so.
const ASK: Duration = Duration::from_millis(100);

/// Locks the file at `path` against all others that lock it so, until what is returned is dropped. The call of `io` may be ended
/// meanwhile: by a cancellation, or at `deadline`.
///
/// # Errors
///
/// Fails if the file cannot be locked, or not before `patience` is over.
pub(super) fn take(
    path: &Path,
    io: &dyn ExecIo,
    deadline: Instant,
    patience: Duration,
) -> io::Result<Result<File, Cause>> {
    let file = open_lock(path)?;
    match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Err(Errno::WOULDBLOCK) => {}
        locked => return locked.map(|()| Ok(file)).map_err(io::Error::from),
    }
    let (over, theirs) = io::pipe()?;
    // One that gets the lock too late holds it no longer than both files are open.
    let waiting = file.try_clone()?;
    let wait = move || {
        let locked = retry_on_intr(|| flock(&waiting, FlockOperation::LockExclusive));
        drop(theirs);
        locked
    };
    let thread = thread::Builder::new().name("lock".into()).spawn(wait)?;
    let give_up = Instant::now() + patience;
    loop {
        let now = Instant::now();
        if io.cancelled() {
            return Ok(Err(Cause::Interrupt));
        }
        if now >= deadline {
            return Ok(Err(Cause::Timeout));
        }
        if now >= give_up {
            return Err(io::Error::other("another call is at it for too long"));
        }
        let mut fds = vec![PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN)];
        let cancel = io.cancel_fd();
        let ask = if cancel.is_none() { now + ASK } else { give_up };
        fds.extend(cancel.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let left = deadline.min(give_up).min(ask).saturating_duration_since(now);
        // The kernel rounds down.
        let left = Timespec::try_from(left + Duration::from_millis(1)).unwrap_or_default();
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            thread.join().unwrap_or(Err(Errno::CANCELED))?;
            return Ok(Ok(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::BorrowedFd;
    use std::sync::mpsc;

    use super::*;
    use crate::Flow;

    /// A caller who cancels once something stands in the pipe.
    struct Caller(io::PipeReader);

    impl ExecIo for Caller {
        fn output(&self, _: &[u8]) -> Flow {
            Flow::Continue
        }

        fn cancelled(&self) -> bool {
            rustix::io::ioctl_fionread(&self.0).is_ok_and(|count| count > 0)
        }

        fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }
    }

    #[test]
    fn whoever_waits_gets_its_turn_and_can_be_ended_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (reader, mut cancel) = io::pipe().unwrap();
        let caller = Caller(reader);
        let (soon, late) = (Duration::from_millis(50), Duration::from_secs(60));
        let until = |wait: Duration| Instant::now() + wait;
        let held = take(&path, &caller, until(late), late).unwrap().unwrap();
        assert!(matches!(take(&path, &caller, until(soon), late), Ok(Err(Cause::Timeout))));
        assert!(take(&path, &caller, until(late), soon).is_err());
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let (path, caller) = (&path, &caller);
            scope.spawn(move || sender.send(take(path, caller, until(late), late).unwrap().is_ok()));
            assert!(receiver.recv_timeout(soon).is_err(), "two have it at once");
            drop(held);
            assert!(receiver.recv().unwrap());
        });
        let _held = take(&path, &caller, until(late), late).unwrap().unwrap();
        cancel.write_all(b"x").unwrap();
        assert!(matches!(take(&path, &caller, until(late), late), Ok(Err(Cause::Interrupt))));
    }
}
