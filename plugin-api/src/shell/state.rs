//! What a session remembers between commands, in memory or in a file.
//!
//! Only changes are kept: variables that commands set or unset, and the directory once a command has left the first one.
//! A later command so sees the host's present environment with the session's changes on it. Each command's own changes are
//! laid upon whatever the state is when it ends, under a lock, so that commands that run at once lose nothing of each
//! other's; where two set the same thing, the last to end wins.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// The changes that a session has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionState {
    /// Where it stands, once a command has moved it.
    pub(super) cwd: Option<PathBuf>,
    /// Variables that commands have set.
    pub(super) set: BTreeMap<OsString, OsString>,
    /// Variables of the place's own that commands have unset.
    pub(super) unset: BTreeSet<OsString>,
}

/// What one command changed.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) cwd: Option<PathBuf>,
    pub(super) set: BTreeMap<OsString, OsString>,
    pub(super) unset: BTreeSet<OsString>,
    /// Variables of which nothing is to be remembered any more.
    pub(super) forget: BTreeSet<OsString>,
}

impl Change {
    fn is_empty(&self) -> bool {
        self.cwd.is_none() && self.set.is_empty() && self.unset.is_empty() && self.forget.is_empty()
    }
}

const HEADER: &[u8] = b"hostel-session 1";
const FOOTER: &[u8] = b"end";

impl SessionState {
    fn apply(&mut self, change: Change) {
        if change.cwd.is_some() {
            self.cwd = change.cwd;
        }
        for name in &change.forget {
            self.set.remove(name);
        }
        for name in change.unset {
            self.set.remove(&name);
            self.unset.insert(name);
        }
        for (name, value) in change.set {
            self.unset.remove(&name);
            self.set.insert(name, value);
        }
    }

    /// Writes the state as fields that end in NUL, which no directory or variable can hold.
    fn to_bytes(&self) -> Vec<u8> {
        let mut fields = vec![HEADER.to_vec()];
        fields.extend(self.cwd.iter().map(|cwd| [b"cwd ", cwd.as_os_str().as_bytes()].concat()));
        fields.extend(
            self.set.iter().map(|(name, value)| [b"set ", name.as_bytes(), b"=", value.as_bytes()].concat()),
        );
        fields.extend(self.unset.iter().map(|name| [b"unset ", name.as_bytes()].concat()));
        fields.push(FOOTER.to_vec());
        let mut bytes = fields.join(&0);
        bytes.push(0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0).collect::<Vec<_>>();
        if fields.first() != Some(&HEADER) || fields.pop() != Some(FOOTER) {
            return None;
        }
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let mut state = Self::default();
        for field in &fields[1..] {
            if let Some(cwd) = field.strip_prefix(b"cwd ") {
                state.cwd = Some(text(cwd).into());
            } else if let Some(name) = field.strip_prefix(b"unset ") {
                state.unset.insert(text(name));
            } else {
                let pair = field.strip_prefix(b"set ")?;
                let split = pair.iter().position(|byte| *byte == b'=')?;
                state.set.insert(text(&pair[..split]), text(&pair[split + 1..]));
            }
        }
        Some(state)
    }
}

/// Keeps a session's state: in a file where the session outlives the process, else in memory.
#[derive(Debug)]
pub(super) struct Store {
    dir: Option<PathBuf>,
    memory: Mutex<SessionState>,
}

impl Store {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, memory: Mutex::default() }
    }

    /// Returns the present state. A file that cannot be understood counts as empty, with a warning.
    pub(super) fn load(&self) -> (SessionState, Option<String>) {
        let Some(dir) = &self.dir else {
            return (self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone(), None);
        };
        let path = file(dir);
        match read(&path) {
            Ok(Some(state)) => (state, None),
            Ok(None) => {
                let warning = format!("`{}` is damaged and was passed over", path.display());
                (SessionState::default(), Some(warning))
            }
            Err(error) => {
                (SessionState::default(), Some(format!("failed to read `{}`: {error}", path.display())))
            }
        }
    }

    /// Lays `change` upon the state.
    pub(super) fn update(&self, change: Change) -> io::Result<()> {
        if change.is_empty() {
            return Ok(());
        }
        let Some(dir) = &self.dir else {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).apply(change);
            return Ok(());
        };
        make_dir(dir)?;
        let lock = File::options().create(true).append(true).mode(0o600).open(dir.join("lock"))?;
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

/// How long another holder of a session's lock is waited for. It holds it for the time of a write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Locks a file against all other processes that lock it so, and gives up after `patience` if one of them never lets go. The
/// lock ends with the file.
///
/// # Errors
///
/// Fails if the lock cannot be had.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another process holds the lock"));
            }
            Err(error) => return Err(error.into()),
        }
    }
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
    use super::*;

    fn change(name: &str, value: &str) -> Change {
        Change { set: [(name.into(), value.into())].into(), ..Default::default() }
    }

    #[test]
    fn the_file_form_survives_the_round_trip_and_damage_is_noticed() {
        let mut state = SessionState { cwd: Some("/srv/a\nb".into()), ..Default::default() };
        state.set.insert("A".into(), OsString::from_vec(b"x=y\n\xff".to_vec()));
        state.unset.insert("B".into());
        let bytes = state.to_bytes();
        assert_eq!(SessionState::from_bytes(&bytes), Some(state));
        for cut in 0..bytes.len() {
            assert_eq!(SessionState::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
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
    fn the_last_of_set_and_unset_counts() {
        let store = Store::new(None);
        store.update(change("A", "1")).unwrap();
        store.update(Change { unset: [OsString::from("A")].into(), ..Default::default() }).unwrap();
        assert_eq!((store.load().0.set.len(), store.load().0.unset.len()), (0, 1));
        store.update(change("A", "2")).unwrap();
        assert_eq!((store.load().0.set.len(), store.load().0.unset.len()), (1, 0));
    }
}
