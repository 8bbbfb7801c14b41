//! The way of a command to its shell, beside the standard streams.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, memfd_create};

/// A command on its way to the shell, in a file without a name, behind what the session tells the shell first.
#[derive(Debug)]
pub(super) struct Script {
    file: File,
    /// Where the command begins.
    begins: u64,
    is_empty: bool,
}

impl Script {
    /// Makes the script of `command`. A shell that reads no prelude is given none.
    pub(super) fn new(prelude: Option<&[u8]>, command: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("hostel-command", MemfdFlags::CLOEXEC)?);
        let mut bytes = Vec::with_capacity(prelude.map_or(0, <[u8]>::len) + command.len() + 1);
        if let Some(prelude) = prelude {
            bytes.extend_from_slice(prelude);
            bytes.push(0);
        }
        let begins = bytes.len() as u64;
        bytes.extend_from_slice(command.as_bytes());
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(Self { file, begins, is_empty: command.is_empty() })
    }

    /// Returns whether the shell has begun to read the command. Until then it has surely not run any of it: the position
    /// is shared between us and the shell.
    pub(super) fn was_read(&self) -> bool {
        let mut file = &self.file;
        // An empty command is never read past its beginning, and does nothing either way.
        file.stream_position().is_ok_and(|at| at > self.begins || self.is_empty && at == self.begins)
    }

    /// Takes the command away from whoever might still come to read it. Returns whether nobody had begun to.
    pub(super) fn withdraw(&self) -> bool {
        // The kernel lets nobody read while it tells the position.
        self.file.set_len(0).is_ok() && self.is_untouched()
    }

    /// Returns whether nothing of it was read, not even what stands before the command.
    pub(super) fn is_untouched(&self) -> bool {
        let mut file = &self.file;
        file.stream_position().is_ok_and(|at| at == 0)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
