//! Writes to our own output without being held by a reader that does not read.
//!
//! A pager that waits for a key, or a pipe whose reader sleeps, blocks a writer for as long as it likes. The command's time
//! limit and the user's Ctrl-C must hold all the same, so writing waits for room, for the cancellation and for the deadline at
//! once. Once one of the last two has come, what finds no room at once is dropped: the command is being killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What fits into a pipe that says it has room (`PIPE_BUF`).
const ALWAYS_FITS: usize = 4096;

/// A descriptor to write to.
#[derive(Debug)]
pub struct Paced {
    /// A second opening of the same file that does not block; none where that cannot be had.
    unblocked: Option<File>,
    given_up: bool,
}

/// Until when a write may wait.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Becomes readable when waiting is over.
    pub cancel: BorrowedFd<'a>,
    /// When waiting is over.
    pub deadline: Option<Instant>,
}

impl Paced {
    /// Prepares to write to standard output.
    #[must_use]
    pub fn stdout() -> Self {
        let mut options = OpenOptions::new();
        // Not set on the descriptor itself, which other processes share.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.write(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
        let is_stream = rustix::fs::fstat(io::stdout()).is_ok_and(|stat| {
            let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
            kind == rustix::fs::FileType::Fifo || kind == rustix::fs::FileType::CharacterDevice
        });
        // A regular file would be opened anew at its beginning, and never blocks for long.
        let unblocked = if is_stream { options.open("/proc/self/fd/1").ok() } else { None };
        Self { unblocked, given_up: false }
    }

    /// Writes all of `bytes`, unless waiting is over before there is room.
    ///
    /// # Errors
    ///
    /// Fails if the output is closed or cannot be written to.
    pub fn write(&mut self, mut bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        while !bytes.is_empty() && !self.given_up {
            if self.unblocked.is_none() && !self.wait(patience)? {
                return Ok(());
            }
            let written = match &mut self.unblocked {
                Some(file) => file.write(bytes),
                None => rustix::io::write(io::stdout(), &bytes[..bytes.len().min(ALWAYS_FITS)])
                    .map_err(io::Error::from),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(patience)? {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for room. Returns whether there is some; if waiting is over, nothing is waited for any more.
    fn wait(&mut self, patience: Patience<'_>) -> io::Result<bool> {
        let stdout = io::stdout();
        let out = self.unblocked.as_ref().map_or(stdout.as_fd(), AsFd::as_fd);
        let left = patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left + Duration::from_millis(1)).ok());
        let mut fds = [
            PollFd::from_borrowed_fd(out, PollFlags::OUT),
            PollFd::from_borrowed_fd(patience.cancel, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) if !fds[0].revents().is_empty() => Ok(true),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
            Ok(_) => {
                self.given_up = true;
                Ok(false)
            }
        }
    }
}
