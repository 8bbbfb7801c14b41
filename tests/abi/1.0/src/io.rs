//! What a call brings along while it runs: where its output goes, when it must end, and whether it was cancelled.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

/// Whether the receiver of output wants more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Nobody reads any more; end the command as if it had been interrupted.
    Stop,
}

/// The host's side of one running call.
///
/// All methods may be called from any thread. `output` may wait for a slow reader, but not beyond the deadline; the others return
/// at once.
pub trait ExecIo: Sync {
    /// Receives output as it comes: standard output and standard error merged, in the order written, any bytes.
    fn output(&self, bytes: &[u8]) -> Flow;

    /// Returns whether the caller wants the command to end now.
    fn cancelled(&self) -> bool;

    /// Returns a descriptor that becomes readable, and stays so, when the call is cancelled, so that a provider which
    /// waits in `poll` need not ask again and again. None where there is no such descriptor.
    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns when the command must have ended. A provider that waits past it is cut off by its host.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// What a command reads on its standard input.
#[derive(Debug, Default)]
pub enum Stdin {
    /// Nothing: end-of-file at once.
    #[default]
    Empty,
    /// These bytes, then end-of-file. May be larger than any pipe.
    Bytes(Vec<u8>),
    /// Whatever can be read from this descriptor.
    Fd(OwnedFd),
}
