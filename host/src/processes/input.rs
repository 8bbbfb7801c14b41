//! What a background process is given to read.
//!
//! It may not read for hours, and its keeper must not wait for it: others want to know how it is, or to end it. So what is
//! written is queued, up to a limit, and a thread of its own hands it over.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::bell::Bell;
use crate::exec::Terminal;

/// The most that is queued.
const LARGEST_QUEUE: usize = 1024 * 1024;

/// What is written in one go: whatever says that there is room takes that much without waiting long.
const PIECE: usize = 4096;

/// What a terminal reads as the end of input.
const END_OF_INPUT: u8 = 4;

/// Where the input goes.
#[derive(Debug)]
pub(super) enum Target {
    Pipe(OwnedFd),
    Terminal(Terminal),
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(fd) => fd.as_fd(),
            Self::Terminal(terminal) => terminal.as_fd(),
        }
    }
}

impl Target {
    fn write(&self, piece: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Pipe(fd) => rustix::io::write(fd, piece),
            // What a terminal makes of keys is its own.
            Self::Terminal(terminal) => {
                let mut terminal = terminal;
                terminal.write(piece).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
        }
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    Queued,
    /// There is no room for it now.
    Full,
    /// Nobody reads any more, or the end of input was sent before.
    Closed,
}

/// The way into one process.
#[derive(Debug)]
pub(super) struct Input {
    shared: Arc<Shared>,
    is_terminal: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Rung when some of the queue was handed over.
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<u8>,
    closed: bool,
    moved: Instant,
}

impl Input {
    /// Begins to hand over.
    pub(super) fn new(target: Target, bell: Arc<Bell>) -> io::Result<Self> {
        let is_terminal = matches!(target, Target::Terminal(_));
        let state = State { queue: VecDeque::new(), closed: false, moved: Instant::now() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), bell });
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("input".into()).spawn(move || theirs.hand_over(&target))?;
        Ok(Self { shared, is_terminal })
    }

    /// Queues all of `bytes`, or nothing.
    pub(super) fn push(&self, bytes: &[u8]) -> Pushed {
        let mut state = self.shared.lock();
        if state.closed {
            return Pushed::Closed;
        }
        if state.queue.len() + bytes.len() > LARGEST_QUEUE {
            return Pushed::Full;
        }
        if state.queue.is_empty() {
            // Until now there was nothing that could have been read.
            state.moved = Instant::now();
        }
        state.queue.extend(bytes);
        drop(state);
        self.shared.changed.notify_one();
        Pushed::Queued
    }

    /// Ends the input behind what is queued. A terminal stays open: its programs read an end of input from it.
    pub(super) fn close(&self) {
        let mut state = self.shared.lock();
        if self.is_terminal {
            state.queue.push_back(END_OF_INPUT);
        } else {
            state.closed = true;
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Returns when some of the queue was last handed over.
    pub(super) fn moved(&self) -> Instant {
        self.shared.lock().moved
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, target: &Target) {
        while let Some(piece) = self.next() {
            let result = target.write(&piece);
            let mut state = self.lock();
            match result {
                Ok(count) => {
                    state.queue.drain(..count.min(piece.len()));
                    state.moved = Instant::now();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    drop(state);
                    // Where it fails, the next write says why.
                    let _ = poll(&mut [PollFd::new(target, PollFlags::OUT)], None);
                }
                // Nobody has the other end any more.
                Err(_) => {
                    state.closed = true;
                    state.queue.clear();
                }
            }
            self.bell.ring();
        }
    }

    /// Waits for something to hand over. None once there will be no more.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        while state.queue.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let piece: Vec<u8> = state.queue.iter().take(PIECE).copied().collect();
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_queued_arrives_whole_and_then_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let input = Input::new(Target::Pipe(writer.into()), Arc::new(Bell::new().unwrap())).unwrap();
        // More than a pipe holds.
        let text = vec![b'x'; 300_000];
        assert_eq!(input.push(&text), Pushed::Queued);
        input.close();
        assert_eq!(input.push(b"late"), Pushed::Closed);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, text);
    }

    #[test]
    fn a_reader_that_does_not_read_costs_no_more_than_the_queue() {
        let (_reader, writer) = io::pipe().unwrap();
        let input = Input::new(Target::Pipe(writer.into()), Arc::new(Bell::new().unwrap())).unwrap();
        assert_eq!(input.push(&vec![0; LARGEST_QUEUE]), Pushed::Queued);
        assert_eq!(input.push(&vec![0; LARGEST_QUEUE]), Pushed::Full);
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let bell = Arc::new(Bell::new().unwrap());
        let input = Input::new(Target::Pipe(writer.into()), Arc::clone(&bell)).unwrap();
        assert_eq!(input.push(b"x"), Pushed::Queued);
        poll(&mut [PollFd::new(&*bell, PollFlags::IN)], None).unwrap();
        assert_eq!(input.push(b"y"), Pushed::Closed);
    }
}
