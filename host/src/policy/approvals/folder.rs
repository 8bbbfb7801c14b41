//! The files in which requests are kept.
//!
//! A file there lets a command run, so a file counts only if nobody but its owner can have written it: it and its folder must
//! belong to this user, or root, and be closed to all others; nothing is read through a link. Whoever has the folder open has it alone, so
//! that of two processes with the same yes one comes second, and finds it gone.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostel_plugin_api::shell::lock_within;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::id::ApprovalId;
use super::record::Record;
use crate::home::{Home, make_private};

/// More than this is no request.
const LARGEST: u64 = 1024 * 1024;

/// How long another process is waited for. It has the folder for the time of a few reads.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a file is called until it is whole.
const HALF: &str = ".half";

/// Where requests are kept in `home`.
fn path(home: &Home) -> PathBuf {
    home.path().join("state").join("approvals")
}

/// The folder, which nobody else has open.
pub(super) struct Folder {
    dir: OwnedFd,
    _lock: File,
}

impl Folder {
    /// Opens the folder. None if nothing was ever kept.
    pub(super) fn open(home: &Home) -> io::Result<Option<Self>> {
        let path = path(home);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            dir => dir?,
        };
        if !is_ours(&File::from(dir.try_clone()?))? {
            return Err(stranger(&path));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = File::from(openat(&dir, "lock", flags, Mode::RUSR | Mode::WUSR)?);
        lock_within(&lock, PATIENCE)?;
        Ok(Some(Self { dir, _lock: lock }))
    }

    /// As [`open`](Self::open), making it if there is none.
    pub(super) fn make(home: &Home) -> io::Result<Self> {
        make_private(&path(home))?;
        Self::open(home)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Reads a request. None if there is none that counts.
    pub(super) fn read(&self, id: &ApprovalId) -> Option<Record> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.dir, name(id), flags, Mode::empty()).ok()?);
        if !file.metadata().ok()?.is_file() || !is_ours(&file).ok()? {
            tracing::warn!(%id, "a file in the place of a request is not believed");
            return None;
        }
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text).ok()?;
        serde_json::from_slice::<Record>(&text).ok().filter(|record| record.id == *id)
    }

    /// Reads all requests.
    pub(super) fn all(&self) -> io::Result<Vec<Record>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(".json"));
            found.extend(name.and_then(ApprovalId::parse).and_then(|id| self.read(&id)));
        }
        Ok(found)
    }

    /// Keeps a request in place of what is kept under its name.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_vec(record)?;
        // One that did not get so far has left it.
        let _ = unlinkat(&self.dir, HALF, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.dir, HALF, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&text)?;
        Ok(renameat(&self.dir, HALF, &self.dir, name(&record.id))?)
    }

    /// Removes a request. Returns whether it was there to be removed.
    pub(super) fn remove(&self, id: &ApprovalId) -> io::Result<bool> {
        match unlinkat(&self.dir, name(id), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn name(id: &ApprovalId) -> String {
    format!("{id}.json")
}

/// Whether a file belongs to this user, or root, and others have no right to it. A folder may be looked into.
fn is_ours(file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    let others = if meta.is_dir() { 0o022 } else { 0o077 };
    Ok([geteuid().as_raw(), 0].contains(&meta.uid()) && meta.mode() & others == 0)
}

fn stranger(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!("`{path}` must belong to this user, and others may not write to it"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::policy::approvals::record::{Standing, now};
    use crate::policy::approvals::request::tests::sample;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        (dir, home)
    }

    fn record() -> Record {
        let (id, request) = (ApprovalId::random().unwrap(), sample("t", "ls"));
        Record { id, created: now(), standing: Standing::Once, answered: None, note: None, request }
    }

    #[test]
    fn a_file_that_others_could_have_written_is_not_believed() {
        let (_dir, home) = home();
        assert!(Folder::open(&home).unwrap().is_none());
        let folder = Folder::make(&home).unwrap();
        let record = record();
        folder.write(&record).unwrap();
        let file = path(&home).join(name(&record.id));
        assert_eq!(folder.read(&record.id), Some(record.clone()));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&file), mode(&path(&home))), (0o600, 0o700));
        for mode in [0o660, 0o602, 0o644] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(folder.read(&record.id), None, "{mode:o}");
        }
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(folder.all().unwrap().len(), 1);
        let moved = path(&home).join("moved");
        fs::rename(&file, &moved).unwrap();
        symlink(&moved, &file).unwrap();
        assert_eq!(folder.read(&record.id), None, "a link");
        fs::remove_file(&file).unwrap();
        let other = ApprovalId::random().unwrap();
        fs::rename(&moved, path(&home).join(name(&other))).unwrap();
        assert_eq!((folder.read(&other), folder.all().unwrap().len()), (None, 0), "another's name");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let (_dir, home) = home();
        drop(Folder::make(&home).unwrap());
        fs::set_permissions(path(&home), Permissions::from_mode(0o770)).unwrap();
        assert!(Folder::open(&home).is_err());
        fs::remove_dir_all(path(&home)).unwrap();
        symlink("/tmp", path(&home)).unwrap();
        assert!(Folder::open(&home).is_err());
    }
}
