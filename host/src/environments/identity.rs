//! What an environment is, for every process of the host: which task's, which backend's, since when, and an id of its own.
//!
//! Folders are named for their tasks in a form that cannot always be read back, and whoever looks after sandboxes needs a name
//! that no later environment of the same task has. Both stand in `environment.json` in the task's folder. Commands and
//! plugins may write to that folder, so nothing in the file is believed that does not fit the folder.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::UNIX_EPOCH;

use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::random;

/// The file's name.
const NAME: &str = "environment.json";

/// The longest file that is read: a task id has to fit into an argument list.
const LONGEST: u64 = 1024 * 1024;

/// The file's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) task: String,
    pub(super) backend: String,
    /// 16 hexadecimal digits.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
}

impl Identity {
    /// Reads what stands in the folder `dir`. None where there is nothing, or what is there is of no use.
    pub(super) fn read(dir: impl AsFd) -> io::Result<Option<Self>> {
        // Neither a link nor a pipe that was put there may lead away or hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(dir, NAME, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text)?;
        let read: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(read.filter(|read| is_id(&read.id)))
    }

    /// Reads what stands in the folder `dir`, and gives the environment an identity if it has none. Of several who do so at
    /// once, all get that of the first.
    pub(super) fn read_or_make(dir: impl AsFd, backend: &str, task: &str) -> io::Result<Self> {
        let dir = dir.as_fd();
        let fits = |found: &Self| found.backend == backend && found.task == task;
        if let Some(found) = Self::read(dir)?.filter(fits) {
            return Ok(found);
        }
        let id = random::hex::<8>()?;
        let created = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let made = Self { task: task.to_owned(), backend: backend.to_owned(), id, created };
        let text = format!("{}\n", serde_json::to_string(&made).map_err(io::Error::from)?);
        let beside = format!(".{NAME}-{}", made.id);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(dir, &beside, flags, Mode::RUSR | Mode::WUSR)?);
        let placed = file.write_all(text.as_bytes()).and_then(|()| {
            // Unlike a rename, a link leaves what somebody else has put there in the meantime.
            match linkat(dir, &beside, dir, NAME, AtFlags::empty()) {
                Ok(()) => return Ok(made),
                Err(Errno::EXIST) => {
                    if let Some(theirs) = Self::read(dir)?.filter(fits) {
                        return Ok(theirs);
                    }
                }
                // File systems without links.
                Err(_) => {}
            }
            renameat(dir, &beside, dir, NAME)?;
            Ok(made)
        });
        // It may have been renamed.
        let _ = unlinkat(dir, &beside, AtFlags::empty());
        placed
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
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
    fn all_who_come_at_once_get_the_same_identity() {
        let (dir, opened) = folder();
        let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let make = || Identity::read_or_make(&opened, "local", "t").unwrap().id;
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1);
        assert!(ids.iter().all(|id| is_id(id)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "something was left beside it");
    }

    #[test]
    fn what_is_damaged_or_of_another_task_is_replaced() {
        let (dir, opened) = folder();
        let other = r#"{"task":"other","backend":"local","id":"0123456789abcdef","created":1}"#;
        let no_id = r#"{"task":"t","backend":"local","id":"../../x","created":1}"#;
        for text in ["", "{", "[]", other, no_id] {
            std::fs::write(dir.path().join(NAME), text).unwrap();
            let made = Identity::read_or_make(&opened, "local", "t").unwrap();
            assert!(made.task == "t" && made.created > 1, "{text}");
            assert_eq!(Identity::read(&opened).unwrap(), Some(made));
        }
    }

    #[test]
    fn a_link_in_its_place_leads_nowhere() {
        let (dir, opened) = folder();
        let (place, target) = (dir.path().join(NAME), dir.path().join("target"));
        std::fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &place).unwrap();
        Identity::read_or_make(&opened, "local", "t").unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
        assert!(place.symlink_metadata().unwrap().is_file());
    }
}
