//! Residents that end by themselves.
//!
//! One that was idle for long leaves, with its spare, and both stay zombies until somebody waits for them. The session whose they are may never
//! run a command again, so one thread of the process waits for the end of any.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use super::launch::Kept;
use super::resident::Resident;

/// A resident whose end is waited for, and the session whose it is.
type Awaited = (OwnedFd, Weak<Mutex<Kept>>);

/// What the thread is told.
struct Told {
    new: Mutex<Vec<Awaited>>,
    bell: OwnedFd,
}

/// Has `resident` let go by the session of `kept` once it has ended. Where that cannot be, the session's next command finds it.
pub(super) fn watch(kept: &Arc<Mutex<Kept>>, resident: &Resident) {
    static TOLD: LazyLock<Option<Arc<Told>>> = LazyLock::new(|| begin().ok());
    let (Some(told), Ok(end)) = (&*TOLD, resident.end()) else { return };
    lock(&told.new).push((end, Arc::downgrade(kept)));
    // It cannot be full.
    let _ = rustix::io::write(&told.bell, &1_u64.to_ne_bytes());
}

fn begin() -> io::Result<Arc<Told>> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let told = Arc::new(Told { new: Mutex::default(), bell });
    let theirs = Arc::clone(&told);
    thread::Builder::new().name("residents".into()).spawn(move || follow(&theirs))?;
    Ok(told)
}

fn follow(told: &Told) {
    let mut awaited: Vec<Awaited> = Vec::new();
    loop {
        let bell = PollFd::from_borrowed_fd(told.bell.as_fd(), PollFlags::IN);
        let ends = awaited.iter().map(|(end, _)| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = std::iter::once(bell).chain(ends).collect();
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Without `poll` each is found by its session's next command.
            Err(_) => return,
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready[0] {
            let _ = rustix::io::read(&told.bell, &mut [0; 8]);
        }
        let mut ended = ready[1..].iter();
        awaited.retain(|(_, kept)| {
            let has_ended = ended.next().is_some_and(|ended| *ended);
            if let Some(kept) = kept.upgrade().filter(|_| has_ended) {
                lock(&kept).let_go_ended();
            }
            !has_ended
        });
        awaited.append(&mut lock(&told.new));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
