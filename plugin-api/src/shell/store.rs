//! Where a session's state is kept: in memory, or in a file.
//!
//! The file is written beside and renamed, under a lock, so that nobody ever reads half a state and calls that end at once keep
//! each other's changes.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use super::lock::{lock_within, open_lock};
use super::state::{Change, SessionState};

/// Keeps a session's state: in a file where the session outlives the process, else in memory.
#[derive(Debug)]
pub(super) struct Store {
    dir: Option<PathBuf>,
    /// The state as it was last seen, and the file that it stood in.
    memory: Mutex<(Option<Version>, Arc<SessionState>)>,
}

/// Tells one file from the next that takes its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Version {
    /// Returns whether no later file can have the same: it may get the number of one that was replaced, and within a tick of the
    /// kernel's clock its time, too.
    fn is_final(&self) -> bool {
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(self.changed.0), u32::try_from(self.changed.1)) else {
            return false;
        };
        let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
        // A clock that was set back proves nothing.
        changed.elapsed().is_ok_and(|age| age > TICKS)
    }
}

impl Store {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, memory: Mutex::default() }
    }

    /// Returns the present state. A file that cannot be understood counts as empty, with a warning.
    pub(super) fn load(&self) -> (Arc<SessionState>, Option<String>) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(dir) = &self.dir else { return (Arc::clone(&memory.1), None) };
        let path = file(dir);
        let version = version(&path);
        if version.is_some() && version == memory.0 {
            return (Arc::clone(&memory.1), None);
        }
        match read(&path) {
            Ok(Some(state)) => {
                *memory = (version.filter(Version::is_final), Arc::new(state));
                (Arc::clone(&memory.1), None)
            }
            Ok(None) => {
                let warning = format!("`{}` is damaged and was passed over", path.display());
                (Arc::default(), Some(warning))
            }
            Err(error) => (Arc::default(), Some(format!("failed to read `{}`: {error}", path.display()))),
        }
    }

    /// Lays `change` upon the state.
    pub(super) fn update(&self, change: Change) -> io::Result<()> {
        if change.is_empty() {
            return Ok(());
        }
        let Some(dir) = &self.dir else {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut memory.1).apply(change);
            return Ok(());
        };
        make_dir(dir)?;
        let lock = open_lock(&dir.join("lock"))?;
        lock_within(&lock, PATIENCE)?;
        let mut state = read(&file(dir))?;
        if state.is_none() {
            // What cannot be understood now may be to somebody else later.
            fs::rename(file(dir), dir.join("session.damaged"))?;
        }
        let mut state = state.take().unwrap_or_default();
        state.apply(change);
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(&state.to_bytes())?;
        file.persist(self::file(dir))?;
        Ok(())
    }
}

/// More than this is no state: a command's variables have to fit into far less.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Reads a state. None where what is there is damaged, or no file at all: opening a pipe would wait for ever.
fn read(path: &Path) -> io::Result<Option<SessionState>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(SessionState::default())),
        Err(error) => Err(error),
        Ok(meta) if !meta.is_file() || meta.len() > LONGEST => Ok(None),
        Ok(_) => Ok(SessionState::from_bytes(&fs::read(path)?)),
    }
}

/// Some ticks of the slowest clock that a kernel has.
const TICKS: Duration = Duration::from_millis(50);

/// How long another holder of a session's lock is waited for. It holds it for the time of a write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns which file stands at `path`. A new one takes its name with each change.
fn version(path: &Path) -> Option<Version> {
    let meta = fs::metadata(path).ok()?;
    Some(Version { device: meta.dev(), inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) })
}

fn file(dir: &Path) -> PathBuf {
    dir.join(OsStr::new("session"))
}

/// Makes `dir` and its parents, for this user only.
pub(super) fn make_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::thread;

    use super::*;

    fn change(name: &str, value: &str) -> Change {
        Change { set: [(name.into(), value.into())].into(), ..Default::default() }
    }

    #[test]
    fn changes_of_many_at_once_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || {
                    Store::new(Some(path.clone())).update(change(&format!("V{number}"), "1")).unwrap();
                });
            }
        });
        assert_eq!(Store::new(Some(path)).load().0.set.len(), 16);
    }

    #[test]
    fn a_file_that_another_could_be_taken_for_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Some(dir.path().to_owned()));
        let remembered = || store.memory.lock().unwrap().0;
        store.update(change("A", "1")).unwrap();
        assert_eq!(store.load().0.set.len(), 1);
        let at_once = version(&file(dir.path())).unwrap();
        assert!(remembered().is_none() || at_once.is_final(), "it was remembered too early");
        while !at_once.is_final() {
            thread::yield_now();
        }
        assert_eq!(store.load().0.set.len(), 1);
        assert_eq!(remembered(), Some(at_once));
    }

    #[test]
    fn the_last_of_set_and_unset_counts() {
        let store = Store::new(None);
        store.update(change("A", "1")).unwrap();
        store.update(Change { unset: [OsString::from("A")].into(), ..Default::default() }).unwrap();
        assert_eq!((store.load().0.set.len(), store.load().0.unset.len()), (0, 1));
        store.update(change("A", "2")).unwrap();
        assert_eq!((store.load().0.set.len(), store.load().0.unset.len()), (1, 0));
    }
}
