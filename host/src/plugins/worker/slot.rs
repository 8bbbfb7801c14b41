//! The host's side of one call: where its output and its answer arrive.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};

use super::running::WINDOW;
use super::serve::lock;

/// How a worker ended.
#[derive(Debug)]
pub(super) struct Death {
    /// What became of it, as in "plugin X ...": "crashed (SIGSEGV)".
    pub(super) how: String,
    /// The last that it said on its standard error.
    pub(super) last_words: Option<String>,
    /// Whether somebody else has killed it.
    pub(super) from_outside: bool,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The worker answered, with this text.
    Reply(Arc<Vec<u8>>),
    /// The worker is no more.
    Died(Arc<Death>),
}

/// One call.
pub(super) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
    /// Shows that something has come, for a caller that must watch something else as well.
    bell: Option<OwnedFd>,
    /// How many bytes may come in all.
    most: usize,
}

#[derive(Default)]
struct State {
    data: VecDeque<Vec<u8>>,
    queued: usize,
    received: usize,
    end: Option<End>,
}

impl Slot {
    /// Makes a slot for a caller that only waits, and takes no more data than this.
    pub(super) fn quiet(most: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), bell: None, most }
    }

    /// Makes a slot with a descriptor to poll.
    pub(super) fn with_bell() -> std::io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell: Some(bell), ..Self::quiet(usize::MAX) })
    }

    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }

    /// Takes output in. Returns whether the worker was granted so much.
    pub(super) fn push(&self, data: Vec<u8>) -> bool {
        let mut state = lock(&self.state);
        state.queued += data.len();
        state.received = state.received.saturating_add(data.len());
        let allowed = state.queued <= WINDOW && state.received <= self.most;
        state.data.push_back(data);
        drop(state);
        self.ring();
        allowed
    }

    pub(super) fn finish(&self, end: End) {
        lock(&self.state).end.get_or_insert(end);
        self.ring();
    }

    fn ring(&self) {
        match &self.bell {
            // It cannot be full before it was rung 2^64 times.
            Some(bell) => drop(rustix::io::write(bell, &1_u64.to_ne_bytes())),
            None => self.changed.notify_all(),
        }
    }

    /// Whether anything has come.
    pub(super) fn has_come(&self) -> bool {
        let state = lock(&self.state);
        !state.data.is_empty() || state.end.is_some()
    }

    /// Takes what has come, and stops the bell: first all output, then the end.
    pub(super) fn take(&self) -> (VecDeque<Vec<u8>>, Option<End>) {
        if let Some(bell) = &self.bell {
            // Nothing to read means that it has not been rung.
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
        let mut state = lock(&self.state);
        state.queued = 0;
        (std::mem::take(&mut state.data), state.end.clone())
    }

    /// Waits for output or the end. Returns nothing if neither comes in time.
    pub(super) fn wait(&self, until: Instant) -> Option<(VecDeque<Vec<u8>>, Option<End>)> {
        let mut state = lock(&self.state);
        while state.data.is_empty() && state.end.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        Some(self.take())
    }
}
