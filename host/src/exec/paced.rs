//! Writes to our own output without being held by a reader that does not read.
//!
//! A pager that waits for a key, or a pipe whose reader sleeps, blocks a writer for as long as it likes. The command's time
//! limit and the user's Ctrl-C must hold all the same, so writing waits for room, for the cancellation and for the deadline at
//! once. What finds no room once one of the last two has come is kept, up to a limit: if the command had ended by itself before
//! that, its whole output is still delivered in the end; if it is being killed, what nobody reads is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What fits into a pipe that says it has room (`PIPE_BUF`).
const ALWAYS_FITS: usize = 4096;

/// The most that is kept: more than stands in the pipe of a command that has ended.
const LARGEST_KEPT: usize = 4 * 1024 * 1024;

/// A descriptor to write to.
#[derive(Debug)]
pub struct Paced {
    /// A second opening of the same file that does not block; none where that cannot be had.
    unblocked: Option<File>,
    /// Whether waiting is over for now.
    given_up: bool,
    /// What has found no room.
    kept: Vec<u8>,
    /// Bytes that were not even kept.
    dropped: u64,
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
        Self { unblocked, given_up: false, kept: Vec::new(), dropped: 0 }
    }

    /// Writes `bytes`, or keeps what finds no room before waiting is over.
    ///
    /// # Errors
    ///
    /// Fails if the output is closed or cannot be written to.
    pub fn write(&mut self, bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        let written =
            if self.kept.is_empty() && !self.given_up { self.try_write(bytes, patience)? } else { 0 };
        let rest = &bytes[written..];
        let room = LARGEST_KEPT.saturating_sub(self.kept.len()).min(rest.len());
        self.kept.extend_from_slice(&rest[..room]);
        self.dropped += (rest.len() - room) as u64;
        Ok(())
    }

    /// Delivers what was kept, waiting for the reader as long as nobody cancels.
    ///
    /// # Errors
    ///
    /// Fails if the output is closed, or if some of it could not even be kept.
    pub fn deliver(&mut self, cancel: BorrowedFd<'_>) -> io::Result<()> {
        let kept = std::mem::take(&mut self.kept);
        self.given_up = false;
        let written = self.try_write(&kept, Patience { cancel, deadline: None })?;
        let missing = (kept.len() - written) as u64 + self.dropped;
        if missing == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("{missing} bytes found no reader in time")))
    }

    /// Writes as much as there is room for until waiting is over. Returns how much that was.
    fn try_write(&mut self, bytes: &[u8], patience: Patience<'_>) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            if self.unblocked.is_none() && !self.wait(patience)? {
                break;
            }
            let rest = &bytes[done..];
            let written = match &mut self.unblocked {
                Some(file) => file.write(rest),
                None => rustix::io::write(io::stdout(), &rest[..rest.len().min(ALWAYS_FITS)])
                    .map_err(io::Error::from),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(patience)? {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
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
