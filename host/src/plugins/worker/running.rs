//! A call that the worker is making: what the host has said about it since.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ExecIo, Flow};
use rustix::event::{EventfdFlags, eventfd};

use super::frame::{Kind, LONGEST_PIECE};
use super::serve::{Writer, lock};

/// How much output of one call may be under way at a time. The host grants more as it passes output on.
pub(super) const WINDOW: usize = 1 << 20;

/// How long output still waits for a reader when the call is over for its caller.
const LAST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Running {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Bytes that were granted beyond [`WINDOW`].
    granted: usize,
    sent: usize,
    cancelled: Option<Instant>,
    stopped: bool,
    /// Where the cancellation shows, once somebody wants to wait for it.
    bell: Option<Arc<OwnedFd>>,
}

impl Running {
    pub(super) fn cancel(&self) {
        let mut state = lock(&self.state);
        state.cancelled.get_or_insert_with(Instant::now);
        if let Some(bell) = &state.bell {
            ring(bell);
        }
        self.changed.notify_all();
    }

    /// Nobody wants the output: the command is to end as if it had been cancelled, also where it prints nothing more.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.cancel();
    }

    pub(super) fn grant(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.granted = state.granted.saturating_add(bytes);
        self.changed.notify_all();
    }

    /// Returns the call's side of its output, deadline and cancellation.
    pub(super) fn io(
        self: &Arc<Self>,
        call: u32,
        writer: &Arc<Writer>,
        remaining_us: Option<u64>,
    ) -> Result<WorkerIo, Error> {
        let failed = |error: io::Error| Error::io("failed to make a call's event", &error).not_started();
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let bell = Arc::new(bell);
        let mut state = lock(&self.state);
        if state.cancelled.is_some() {
            ring(&bell);
        }
        state.bell = Some(Arc::clone(&bell));
        drop(state);
        let deadline = remaining_us.and_then(|left| Instant::now().checked_add(Duration::from_micros(left)));
        Ok(WorkerIo { call, running: Arc::clone(self), writer: Arc::clone(writer), bell, deadline })
    }
}

fn ring(bell: &OwnedFd) {
    // It cannot be full: it is rung twice at the most.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// [`ExecIo`] as a provider in a worker sees it.
pub(super) struct WorkerIo {
    call: u32,
    running: Arc<Running>,
    writer: Arc<Writer>,
    bell: Arc<OwnedFd>,
    deadline: Option<Instant>,
}

impl WorkerIo {
    /// Sends bytes as the host makes room for them. Returns whether it wants more.
    pub(super) fn send(&self, bytes: &[u8]) -> Flow {
        for piece in bytes.chunks(LONGEST_PIECE) {
            if !self.reserve(piece.len()) {
                return Flow::Stop;
            }
            if self.writer.send(Kind::DATA, self.call, piece).is_err() {
                return Flow::Stop;
            }
        }
        if lock(&self.running.state).stopped { Flow::Stop } else { Flow::Continue }
    }

    /// Waits until there is room for `bytes`. Returns whether there is.
    fn reserve(&self, bytes: usize) -> bool {
        let mut state = lock(&self.running.state);
        loop {
            if state.stopped {
                return false;
            }
            if state.sent + bytes <= WINDOW + state.granted {
                state.sent += bytes;
                return true;
            }
            let ends = [self.deadline, state.cancelled].into_iter().flatten().min();
            let left = ends.map(|end| (end + LAST).saturating_duration_since(Instant::now()));
            state = match left {
                // Nobody reads, and the time is up: what does not fit is lost, as on a pipe without a reader.
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    self.running.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.running.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl ExecIo for WorkerIo {
    fn output(&self, bytes: &[u8]) -> Flow {
        // Nothing, too: it says that the command has started.
        if bytes.is_empty() && self.writer.send(Kind::DATA, self.call, bytes).is_err() {
            return Flow::Stop;
        }
        self.send(bytes)
    }

    fn cancelled(&self) -> bool {
        lock(&self.running.state).cancelled.is_some()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl std::fmt::Debug for WorkerIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerIo").field("call", &self.call).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::super::frame::{Frame, FrameReader};
    use super::*;

    #[test]
    fn an_output_of_nothing_is_told_too() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let io = Arc::new(Running::default()).io(7, &Arc::new(Writer::new(ours)), None).unwrap();
        assert_eq!((io.output(b""), io.output(b"x")), (Flow::Continue, Flow::Continue));
        let mut frames = FrameReader::new(theirs);
        let frame = |body: &[u8]| Frame { kind: Kind::DATA, call: 7, body: body.to_vec() };
        assert_eq!([frames.read().unwrap(), frames.read().unwrap()], [frame(b""), frame(b"x")]);
    }
}
