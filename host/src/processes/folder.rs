//! The folder of one background process.
//!
//! The program that starts a process, its keeper, and whoever asks for it later share nothing but files. What they may rely
//! on is settled here: the record is replaced whole; a lock that the kernel gives up with its holder says who is alive, so
//! that a number which another process has by now deceives nobody; and all of it is for this user only.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostel_plugin_api::shell::{lock_within, open_lock};
use rustix::fs::{FlockOperation, flock};

use super::id::ProcessId;
use super::record::Record;
use crate::home::{Home, make_private, open_regular, read_regular};

/// More than this is no record, whatever its command.
const LARGEST_RECORD: u64 = 256 * 1024 * 1024;

/// How long another holder of a lock is waited for. It holds it for the time of a few writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder of one process.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

/// Returns the folder of all processes.
pub(super) fn root(home: &Home) -> PathBuf {
    home.path().join("state").join("processes")
}

/// Keeps everybody else from starting processes in `home`, until what is returned is dropped.
pub(super) fn lock_root(home: &Home) -> io::Result<File> {
    let root = root(home);
    make_private(&root)?;
    lock(&root.join("lock"))
}

/// Opens a lock file and locks it, waiting a little.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let file = open_lock(path)?;
    lock_within(&file, PATIENCE)?;
    Ok(file)
}

/// Replaces a file whole.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Who holds a process's lock.
#[derive(Debug)]
pub(super) enum Hold {
    /// Its keeper, which therefore lives.
    Keeper,
    /// We do, until this is dropped: there is no keeper.
    Ours(#[allow(dead_code, reason = "holds the lock")] Option<File>),
}

impl Folder {
    /// Returns the folder of `id`, which need not exist.
    pub(super) fn of(home: &Home, id: &ProcessId) -> Self {
        Self(root(home).join(id.as_str()))
    }

    /// Returns the folders that there are, with their names.
    pub(super) fn all(home: &Home) -> io::Result<Vec<(ProcessId, Self)>> {
        let entries = match fs::read_dir(root(home)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let folder = |entry: fs::DirEntry| {
            let id = ProcessId::parse(entry.file_name().to_str()?)?;
            Some((id, Self(entry.path())))
        };
        Ok(entries.flatten().filter_map(folder).collect())
    }

    /// Makes the folder, which must not exist.
    pub(super) fn create(&self) -> io::Result<()> {
        if let Some(parent) = self.0.parent() {
            make_private(parent)?;
        }
        DirBuilder::new().mode(0o700).create(&self.0)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the record. None where there is none.
    pub(super) fn read_record(&self) -> io::Result<Option<Record>> {
        match read_regular(&self.0.join("record.json"), LARGEST_RECORD) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the record. Where there is no room for a second one, the first is overwritten: its end must be known.
    pub(super) fn write_record(&self, record: &Record) -> io::Result<()> {
        let path = self.0.join("record.json");
        let text = serde_json::to_vec(record)?;
        match replace(&path, &text) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                let Ok(mut file) = File::options().write(true).open(&path) else { return Err(error) };
                file.write_all(&text)?;
                file.set_len(text.len() as u64)
            }
            other => other,
        }
    }

    /// Takes the lock, for the keeper. It is kept as long as the file is open.
    pub(super) fn keep(&self) -> io::Result<File> {
        lock(&self.0.join("lock"))
    }

    /// Finds out whether the keeper lives.
    pub(super) fn hold(&self) -> io::Result<Hold> {
        let file = match open_regular(&self.0.join("lock")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Hold::Ours(None)),
            Err(error) => return Err(error),
        };
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Hold::Ours(Some(file))),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Hold::Keeper),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes the socket on which the keeper is spoken to.
    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let listener = self.at_socket(|path| UnixListener::bind(path))?;
        fs::set_permissions(self.0.join("control"), Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Connects to the keeper.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        self.at_socket(|path| UnixStream::connect(path))
    }

    /// Names the socket by way of a descriptor: the address of a socket has room for 107 bytes, which a home's path may need
    /// alone.
    fn at_socket<T>(&self, open: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let dir = File::open(&self.0)?;
        open(&PathBuf::from(format!("/proc/self/fd/{}/control", dir.as_raw_fd())))
    }

    /// Removes the folder and all in it. One that is gone is no harm.
    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.0.display(), %error, "failed to remove what is kept of a process");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::record::tests::sample;

    fn folder(dir: &tempfile::TempDir) -> (Home, Folder, Record) {
        // Longer than the address of a socket can be.
        let home = Home::at(dir.path().join("x".repeat(120))).unwrap();
        let record = sample();
        let folder = Folder::of(&home, &record.id);
        folder.create().unwrap();
        (home, folder, record)
    }

    #[test]
    fn the_record_is_kept_and_all_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let (home, folder, record) = folder(&dir);
        assert!(folder.read_record().unwrap().is_none());
        folder.write_record(&record).unwrap();
        assert_eq!(folder.read_record().unwrap().unwrap().command, record.command);
        let _lock = folder.keep().unwrap();
        let _listener = folder.listen().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        for entry in fs::read_dir(folder.path()).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        assert_eq!(Folder::all(&home).unwrap().len(), 1);
    }

    #[test]
    fn the_lock_tells_who_lives() {
        let dir = tempfile::tempdir().unwrap();
        let (_, folder, _) = folder(&dir);
        assert!(matches!(folder.hold().unwrap(), Hold::Ours(None)));
        let lock = folder.keep().unwrap();
        assert!(matches!(folder.hold().unwrap(), Hold::Keeper));
        drop(lock);
        assert!(matches!(folder.hold().unwrap(), Hold::Ours(Some(_))));
    }

    #[test]
    fn the_socket_is_reached_however_long_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let (_, folder, _) = folder(&dir);
        assert!(folder.connect().is_err());
        let listener = folder.listen().unwrap();
        let _ours = folder.connect().unwrap();
        assert!(listener.accept().is_ok());
    }
}
