//! [`ExecIo`] as it crosses: the host makes it, the plugin calls it, and it lives as long as one call.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use abi_stable::sabi_trait;
use abi_stable::sabi_trait::prelude::TD_Opaque;
use abi_stable::std_types::RSlice;

use super::guard::guard_or;
use crate::{ExecIo, Flow};

/// The crossing form of [`ExecIo`]. The bytes of `output` are borrowed for the call only.
#[sabi_trait]
pub trait AbiExecIo: Sync {
    /// Returns 0 to go on, anything else to stop.
    fn output(&self, bytes: RSlice<'_, u8>) -> u8;
    /// Returns anything but 0 if the call was cancelled.
    fn cancelled(&self) -> u8;
    /// Returns the descriptor, or −1.
    fn cancel_fd(&self) -> i32;
    /// Returns the nanoseconds until the deadline, or the largest number where there is none.
    #[sabi(last_prefix_field)]
    fn remaining_ns(&self) -> u64;
}

/// The reference that crosses.
pub(crate) type AbiExecIoRef<'a> = AbiExecIo_TO<'a, abi_stable::sabi_types::RRef<'a, ()>>;

/// The plugin's side: makes the host's object look like an [`ExecIo`].
pub(crate) struct PluginIo<'a> {
    io: AbiExecIoRef<'a>,
    deadline: Option<Instant>,
}

impl<'a> PluginIo<'a> {
    pub(crate) fn new(io: AbiExecIoRef<'a>) -> Self {
        let deadline = match io.remaining_ns() {
            u64::MAX => None,
            left => Instant::now().checked_add(Duration::from_nanos(left)),
        };
        Self { io, deadline }
    }
}

impl ExecIo for PluginIo<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        if self.io.output(RSlice::from_slice(bytes)) == 0 { Flow::Continue } else { Flow::Stop }
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled() != 0
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        let fd: RawFd = self.io.cancel_fd();
        // SAFETY: the host's descriptor is open as long as its `ExecIo` lives, which outlives `self.io`, and so the borrow
        // that is returned.
        (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// The host's side: answers the plugin's calls from an [`ExecIo`].
pub(crate) struct HostIo<'a>(pub(crate) &'a dyn ExecIo);

impl HostIo<'_> {
    pub(crate) fn crossing(&self) -> AbiExecIoRef<'_> {
        AbiExecIo_TO::from_ptr(self, TD_Opaque)
    }
}

impl AbiExecIo for HostIo<'_> {
    fn output(&self, bytes: RSlice<'_, u8>) -> u8 {
        guard_or(1, || u8::from(self.0.output(bytes.as_slice()) == Flow::Stop))
    }

    fn cancelled(&self) -> u8 {
        guard_or(1, || u8::from(self.0.cancelled()))
    }

    fn cancel_fd(&self) -> i32 {
        guard_or(-1, || self.0.cancel_fd().map_or(-1, |fd| fd.as_raw_fd()))
    }

    fn remaining_ns(&self) -> u64 {
        guard_or(0, || match self.0.deadline() {
            Some(deadline) => u64::try_from(deadline.saturating_duration_since(Instant::now()).as_nanos())
                .unwrap_or(u64::MAX - 1),
            None => u64::MAX,
        })
    }
}
