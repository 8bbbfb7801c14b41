//! Locks that processes of one user have on one another, by a file that each of them opens.
//!
//! The kernel drops the lock of whoever dies. But it wakes a waiter for nothing but the lock; and what stands at the path may be no file: whoever
//! opens a pipe waits for its other end, for ever.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::{Errno, retry_on_intr};

/// Opens a file of this user's to lock it, read it and add to it, and makes it if there is none. It does not wait.
///
/// # Errors
///
/// Fails if something else is there (a link, a pipe, a device, a folder), and as the operating system says.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::CLOEXEC
        | OFlags::NOCTTY
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK;
    let no_file = || io::Error::other(format!("`{}` is not a regular file; remove it", path.display()));
    match open(path, flags, Mode::RUSR | Mode::WUSR) {
        // What the kernel says of a link, a folder, and a socket or a device that is not there.
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO | Errno::NODEV) => Err(no_file()),
        opened => {
            let file = File::from(opened?);
            if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
        }
    }
}

/// Locks a file against all other processes that lock it so, and gives up after `patience` if one of them never lets go. The
/// lock ends with the file.
///
/// # Errors
///
/// Fails if the lock cannot be had.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<()> {
    match retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Err(Errno::WOULDBLOCK) => {}
        locked => return Ok(locked?),
    }
    // The kernel wakes whoever waits for a lock, and knows no time limit for it: so a thread waits. One that gets it too late holds it no
    // longer than both files are open.
    let waiting = file.try_clone()?;
    let (locked, when_locked) = mpsc::channel();
    let wait = move || {
        // Nobody may be left to hear of it.
        let _ = locked.send(retry_on_intr(|| flock(&waiting, FlockOperation::LockExclusive)));
    };
    thread::Builder::new().name("lock".into()).spawn(wait)?;
    match when_locked.recv_timeout(patience) {
        Ok(locked) => Ok(locked?),
        Err(_) => Err(io::Error::other("another process holds the lock")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn only_a_file_is_locked_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("target", at("link")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for name in ["pipe", "folder", "link", "device", "socket"] {
            let error = open_lock(&at(name)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("is not a regular file"), "{error}");
        }
        assert!(!at("target").exists());
        assert!(open_lock(Path::new("/dev/null")).is_err());
        let file = open_lock(&at("lock")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        lock_within(&file, Duration::ZERO).unwrap();
        assert!(lock_within(&open_lock(&at("lock")).unwrap(), Duration::from_millis(20)).is_err());
    }
}
