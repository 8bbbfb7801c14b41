//! A short command of ours in front of the caller's own.
//!
//! Nobody hears it, it takes no longer than it may, and it ends with the call that it is made for.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel_plugin_api::{ExecIo, Flow};

use super::running::SharedIo;

/// The caller's side of such a command.
pub struct Aside {
    io: SharedIo,
    until: Instant,
}

impl Aside {
    /// Makes that of a command which may take so long, beside the call of `io`.
    #[must_use]
    pub fn within(limit: Duration, io: SharedIo) -> SharedIo {
        Arc::new(Self { io, until: Instant::now() + limit })
    }
}

impl ExecIo for Aside {
    fn output(&self, _: &[u8]) -> Flow {
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.io.deadline().map_or(self.until, |deadline| deadline.min(self.until)))
    }
}
