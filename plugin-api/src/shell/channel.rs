//! The two ways between the session and its shell beside the standard streams: the command in, the state out.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, MemfdFlags, memfd_create};

use super::{boot, exports};

/// More than this is no state that anybody needs.
const LONGEST_RECORD: u64 = 16 * 1024 * 1024;

/// What most records need.
const USUAL_RECORD: u64 = 16 * 1024;

/// A command on its way to the shell, in a file without a name.
#[derive(Debug)]
pub(super) struct Script(File);

impl Script {
    pub(super) fn new(command: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("hostel-command", MemfdFlags::CLOEXEC)?);
        file.write_all(command.as_bytes())?;
        file.rewind()?;
        Ok(Self(file))
    }

    /// Returns whether the shell has begun to read the command. Until then it has surely not run any of it: the position
    /// is shared between us and the shell.
    pub(super) fn was_read(&self) -> bool {
        let mut file = &self.0;
        // An empty command is never read past its beginning, and does nothing either way.
        file.stream_position().is_ok_and(|at| at > 0) || file.metadata().is_ok_and(|meta| meta.len() == 0)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Removes records that a host left behind which was killed.
pub(super) fn prune(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        if modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD)) {
            // Another process may have removed it just now.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// No call takes as long.
const OLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a shell wrote down at its exit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) cwd: PathBuf,
    pub(super) exported: BTreeMap<OsString, OsString>,
}

/// The file into which the shell writes its state. It exists before the shell does, so that a changed `umask` does not
/// matter, and goes with this object.
#[derive(Debug)]
pub(super) struct Record(tempfile::NamedTempFile);

impl Record {
    pub(super) fn new_in(dir: &Path) -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix("call-").tempfile_in(dir)?))
    }

    /// Returns whether there is room for a record. A shell that finds none cannot say so.
    pub(super) fn has_room(&self) -> bool {
        let tried = rustix::fs::fallocate(self.0.as_file(), FallocateFlags::KEEP_SIZE, 0, USUAL_RECORD);
        // Some file systems cannot tell.
        !matches!(tried, Err(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the state, or nothing where the shell did not come to write it.
    pub(super) fn read(self) -> Result<Option<Recorded>, String> {
        let mut bytes = Vec::new();
        let read = self.0.as_file().take(LONGEST_RECORD).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let parse = || {
            let bytes = bytes.strip_suffix(boot::END_MARK)?;
            let split = bytes.iter().position(|byte| *byte == 0)?;
            let cwd = bytes[..split].strip_suffix(b"\n")?;
            Some(Recorded {
                cwd: OsStr::from_bytes(cwd).into(),
                exported: exports::parse(&bytes[split + 1..])?,
            })
        };
        parse().map(Some).ok_or_else(|| "the shell's record of it is damaged or cut short".to_owned())
    }
}
