//! The session's place between a command's output and its caller.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::channel::Script;
use crate::{ExecIo, Flow};

/// More than this is not held back, whoever has printed it.
const MOST_HELD: usize = 64 * 1024;

/// The caller's side of a call, with the session's own time limit where it has none. What comes before the shell has read the
/// command is not the command's, and is held back.
pub(super) struct Watched<'a> {
    pub(super) io: &'a dyn ExecIo,
    pub(super) deadline: Option<Instant>,
    pub(super) script: &'a Script,
    pub(super) early: &'a Mutex<Option<Vec<u8>>>,
}

impl ExecIo for Watched<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = early.as_mut() else { return self.io.output(bytes) };
        held.extend_from_slice(bytes);
        if held.len() < MOST_HELD && !self.script.was_read() {
            return Flow::Continue;
        }
        let held = early.take().unwrap_or_default();
        self.io.output(&held)
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
