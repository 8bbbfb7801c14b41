//! The folders of launchers, and which of them may be left.
//!
//! A launcher removes its folder. One that is killed cannot, and where the host is killed with it nobody does. So the host notes each
//! folder before it is made, in a file that it holds a lock on, which the kernel drops however the host ends. A note that nobody holds is of
//! a folder that the next run in the same task looks after.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::home::{Home, make_private, read_regular};
use crate::tools::session::Session;

/// More than any note has, in bytes.
const LONGEST: u64 = 64 * 1024;

/// A folder that is noted.
pub(super) struct Note {
    path: PathBuf,
    /// Held until this is dropped.
    _lock: File,
}

/// Says whose a folder is.
pub(super) fn owner(session: &Session) -> String {
    format!("{}\n{}", session.entry().name(), session.task())
}

fn notes(home: &Home) -> PathBuf {
    home.path().join("state").join("code")
}

impl Note {
    /// Notes that `owner` will have a folder `name`.
    ///
    /// # Errors
    ///
    /// Fails if the note cannot be written.
    pub(super) fn write(home: &Home, owner: &str, name: &str) -> io::Result<Self> {
        let dir = notes(home);
        make_private(&dir)?;
        // Held before it has its name: it is never there without.
        let mut note = tempfile::Builder::new().prefix(".new-").tempfile_in(&dir)?;
        flock(note.as_file(), FlockOperation::NonBlockingLockExclusive)?;
        note.write_all(owner.as_bytes())?;
        let path = dir.join(name);
        let file = note.persist(&path)?;
        Ok(Self { path, _lock: file })
    }

    /// Returns the folder's name.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Forgets the folder, which is gone. Otherwise it is looked after the next time.
    pub(super) fn settle(self) {
        // If it stays, somebody looks for what is not there.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the folders of `owner` whose hosts are gone.
pub(super) fn orphans(home: &Home, owner: &str) -> Vec<Note> {
    let Ok(entries) = fs::read_dir(notes(home)) else { return Vec::new() };
    let is_note = |path: &Path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_note(path));
    paths.filter_map(|path| orphan(path, owner)).collect()
}

fn orphan(path: PathBuf, owner: &str) -> Option<Note> {
    let lock = File::open(&path).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    let is_theirs = read_regular(&path, LONGEST).is_ok_and(|text| text == owner.as_bytes());
    is_theirs.then_some(Note { path, _lock: lock })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_nobody_holds_is_found_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let found = |owner: &str| orphans(&home, owner).iter().map(Note::name).collect::<Vec<_>>();
        assert!(found("a").is_empty());
        let held = Note::write(&home, "a", "hostel-code-1").unwrap();
        drop(Note::write(&home, "a", "hostel-code-2").unwrap());
        drop(Note::write(&home, "b", "hostel-code-3").unwrap());
        assert_eq!(
            (found("a"), found("b")),
            (vec!["hostel-code-2".to_owned()], vec!["hostel-code-3".into()])
        );
        held.settle();
        orphans(&home, "a").into_iter().for_each(Note::settle);
        assert!(found("a").is_empty() && notes(&home).join("hostel-code-3").exists());
    }
}
