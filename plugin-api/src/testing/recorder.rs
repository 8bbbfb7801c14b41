//! The caller's side of a call, as a test wants it.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::limit::lock;
use crate::{ExecIo, Flow};

/// Records the output of one call, has a deadline as the host's own calls have, and can be cancelled from another thread.
#[derive(Debug)]
pub struct Recorder {
    deadline: Instant,
    seen: Mutex<Seen>,
    stop_after: usize,
    cancelled: AtomicBool,
    /// Nothing where no pipe could be made: whoever asks then sees the cancellation all the same.
    pipe: Option<(PipeReader, PipeWriter)>,
}

#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    first: Option<Instant>,
}

impl Recorder {
    /// Makes a recorder for a call that must have ended at `deadline`.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            seen: Mutex::default(),
            stop_after: usize::MAX,
            cancelled: AtomicBool::new(false),
            pipe: std::io::pipe().ok(),
        }
    }

    /// Lets it answer [`Flow::Stop`] from the moment when it holds `bytes` bytes.
    #[must_use]
    pub fn stopping_after(mut self, bytes: usize) -> Self {
        self.stop_after = bytes;
        self
    }

    /// Cancels the call.
    pub fn cancel(&self) {
        let before = self.cancelled.swap(true, Ordering::SeqCst);
        if let Some((_, writer)) = self.pipe.as_ref().filter(|_| !before) {
            let mut writer: &PipeWriter = writer;
            // A byte fits into a pipe that nobody else writes to.
            let _ = writer.write_all(b"!");
        }
    }

    /// Returns what has been printed so far.
    #[must_use]
    pub fn recorded(&self) -> Vec<u8> {
        lock(&self.seen).bytes.clone()
    }

    /// Returns when the first output came.
    #[must_use]
    pub fn first_output(&self) -> Option<Instant> {
        lock(&self.seen).first
    }
}

impl ExecIo for Recorder {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut seen = lock(&self.seen);
        if !bytes.is_empty() && seen.first.is_none() {
            seen.first = Some(Instant::now());
        }
        seen.bytes.extend_from_slice(bytes);
        if seen.bytes.len() >= self.stop_after { Flow::Stop } else { Flow::Continue }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|(reader, _)| reader.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }
}
