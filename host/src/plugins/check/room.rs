//! The throw-away folder of a check, and what is left of those that could not throw theirs away.
//!
//! A check that is killed leaves its folder behind, and nobody else knows of it. So each holds a lock on its own as long as it lives, which
//! the kernel drops, and the next check removes every folder of ours that nobody holds.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::TempDir;

/// How the names of such folders begin.
const PREFIX: &str = "hostel-check-";

/// How often another check may be quicker than we are, and take a folder for abandoned before we hold it.
const TRIES: usize = 16;

/// A folder that goes with this.
pub(super) struct Room {
    dir: TempDir,
    _held: Option<OwnedFd>,
}

impl Room {
    /// Makes one in the system's folder for temporary files, and removes those that were left there.
    ///
    /// # Errors
    ///
    /// Fails if no folder can be made.
    pub(super) fn make() -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(base: &Path) -> io::Result<Self> {
        sweep(base);
        for _ in 0..TRIES {
            let private = fs::Permissions::from_mode(0o700);
            let dir = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(base)?;
            let held = match hold(dir.path()) {
                Ok(held) => Some(held),
                Err(Errno::WOULDBLOCK | Errno::NOENT) => continue,
                // Where there are no locks, nobody sweeps.
                Err(_) => None,
            };
            if dir.path().exists() {
                return Ok(Self { dir, _held: held });
            }
        }
        Err(io::Error::other("every folder that was made was removed at once"))
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Locks a folder that nobody else holds.
fn hold(folder: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty())?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

/// Removes what was left behind. What cannot be removed stays for the next time.
fn sweep(base: &Path) {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        if let Ok(held) = hold(&path)
            && is_ours(&held)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether we have made it: nobody else can have put anything there.
fn is_ours(folder: &OwnedFd) -> bool {
    fstat(folder).is_ok_and(|stat| stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o7777 == 0o700)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::*;

    #[test]
    fn only_what_nobody_holds_and_we_have_made_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, mode| {
            let path = base.path().join(name);
            fs::DirBuilder::new().create(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            fs::write(path.join("file"), "x").unwrap();
            path
        };
        let held = Room::make_in(base.path()).unwrap();
        let left = make("hostel-check-left", 0o700);
        let others = [make("hostel-check-open", 0o755), make("something-else", 0o700)];
        let link = base.path().join("hostel-check-link");
        symlink(&others[1], &link).unwrap();
        let path = held.path().to_owned();
        let next = Room::make_in(base.path()).unwrap();
        assert!(!left.exists() && path.exists() && next.path() != path);
        assert!(others.iter().all(|other| other.join("file").exists()) && link.is_symlink());
        drop(held);
        assert!(!path.exists());
        // One that was killed has not got so far.
        let gone = base.path().join("hostel-check-gone");
        fs::DirBuilder::new().mode(0o700).create(&gone).unwrap();
        let holder = hold(&gone).unwrap();
        sweep(base.path());
        assert!(gone.exists());
        drop(holder);
        sweep(base.path());
        assert!(!gone.exists() && next.path().exists());
    }
}
