//! Who reads what a worker sends.
//!
//! A thread of the link's own reads, so that records are written down and a death is noticed when nobody asks for anything. But
//! a caller that only waits for a short answer does better to read it itself: to be woken by another thread costs several times
//! what the answer takes. So such a caller takes the reading over, and the thread rests until calls have ceased for a
//! moment, or somebody needs it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::frame::{Frame, FrameError, FrameReader};
use super::serve::lock;

/// How long after the last caller the thread rests. Calls often come in a row.
const REST: Duration = Duration::from_millis(10);

/// How long a frame that has begun may take to come whole.
const WHOLE: Duration = Duration::from_secs(5);

/// The reading end of the socket.
pub(super) struct Inbox {
    frames: Mutex<FrameReader<UnixStream>>,
    socket: UnixStream,
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Default)]
struct Turn {
    /// Whether a caller reads.
    taken: bool,
    /// Whether the thread is to read at once.
    needed: bool,
    rest_until: Option<Instant>,
    /// Why nothing more can be read.
    broken: Option<String>,
}

impl Inbox {
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(WHOLE))?;
        let frames = Mutex::new(FrameReader::new(socket.try_clone()?));
        Ok(Self { frames, socket, turn: Mutex::default(), changed: Condvar::new() })
    }

    /// The thread's side: reads the next frame, when it is its turn, and passes it on. Fails with why there will be no other:
    /// nothing to say where the socket was closed. `pass` is that of [`read_until`](Self::read_until).
    pub(super) fn next(&self, pass: impl FnOnce(Frame) -> Result<(), String>) -> Result<(), Option<String>> {
        loop {
            self.wait_for_turn()?;
            let buffered = lock(&self.frames).buffered() > 0;
            if !buffered && !self.readable(None) {
                continue;
            }
            if lock(&self.turn).taken {
                // It woke both of us, and is for a caller.
                continue;
            }
            let mut frames = lock(&self.frames);
            if frames.buffered() == 0 && !self.readable(Some(Duration::ZERO)) {
                continue;
            }
            let frame = frames.read().map_err(reason)?;
            // Nobody reads on before this one is where it belongs: an answer would overtake the output in front of it.
            return pass(frame).map_err(Some);
        }
    }

    fn wait_for_turn(&self) -> Result<(), Option<String>> {
        let mut turn = lock(&self.turn);
        loop {
            if let Some(broken) = turn.broken.take() {
                return Err(Some(broken));
            }
            let rest = turn.rest_until.map(|until| until.saturating_duration_since(Instant::now()));
            let resting = rest.filter(|left| !turn.needed && !left.is_zero());
            // A caller that leaves does not wake us unless we are needed: that would cost it more than its answer.
            let left = match (turn.taken, resting) {
                (true, _) => REST,
                (false, Some(left)) => left,
                (false, None) => break,
            };
            turn = self.changed.wait_timeout(turn, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        turn.needed = false;
        turn.rest_until = None;
        Ok(())
    }

    /// Has the thread read at once: somebody waits who cannot read.
    pub(super) fn need(&self) {
        lock(&self.turn).needed = true;
        self.changed.notify_all();
    }

    /// The caller's side: reads and passes frames on until `done`, or the time is up. Returns false at once if somebody else
    /// reads. `waiting` says whether others wait for frames; `pass` returns why what it was given breaks the rules, if it does.
    pub(super) fn read_until(
        &self,
        until: Instant,
        done: impl Fn() -> bool,
        waiting: impl Fn() -> bool,
        pass: impl Fn(Frame) -> Result<(), String>,
    ) -> bool {
        {
            let mut turn = lock(&self.turn);
            if turn.taken || turn.broken.is_some() {
                return false;
            }
            turn.taken = true;
        }
        let (mut rest, mut broken, mut read) = (false, None, false);
        let frames = match self.frames.try_lock() {
            Ok(frames) => Some(frames),
            Err(TryLockError::Poisoned(frames)) => Some(frames.into_inner()),
            // The thread has a frame in hand just now.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut frames) = frames {
            read = true;
            while frames.has_whole() || !done() {
                let left = until.saturating_duration_since(Instant::now());
                if !frames.has_whole() && frames.buffered() == 0 && !self.readable(Some(left)) {
                    if left.is_zero() {
                        break;
                    }
                    continue;
                }
                match frames.read().map_err(reason) {
                    Ok(frame) => broken = pass(frame).err(),
                    // The thread meets it again, and knows what to do.
                    Err(None) => rest = true,
                    Err(why) => broken = why,
                }
                if rest || broken.is_some() {
                    break;
                }
            }
            rest = rest || frames.buffered() > 0;
        }
        let mut turn = lock(&self.turn);
        turn.taken = false;
        turn.rest_until = Some(Instant::now() + REST);
        turn.needed = turn.needed || rest || broken.is_some() || !read || waiting();
        turn.broken = broken;
        let wake = turn.needed || turn.broken.is_some();
        drop(turn);
        if wake {
            self.changed.notify_all();
        }
        read
    }

    /// Waits until there is something to read, or the time is up.
    fn readable(&self, limit: Option<Duration>) -> bool {
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match poll(&mut fds, left.and_then(|left| Timespec::try_from(left).ok()).as_ref()) {
                // A signal that is caught is nothing to read: who took it for that would wait for half a message.
                Err(Errno::INTR) => {}
                Ok(ready) => return ready > 0,
                // It shows again where it is read.
                Err(_) => return true,
            }
        }
    }
}

/// Why nothing more can be read. None where the other side has simply closed the connection.
fn reason(error: FrameError) -> Option<String> {
    match error {
        FrameError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Some("sent half a message".to_owned())
        }
        FrameError::Closed | FrameError::Io(_) => None,
        other => Some(format!("sent {other}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use rustix::process::{Signal, kill_process};

    use super::super::frame::{self, Kind};
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_never_overtakes_the_output_in_front_of_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let inbox = Inbox::new(ours).unwrap();
        let passed = Mutex::new(Vec::new());
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let (ours, order) = (&inbox, &passed);
        let slow = move |frame: Frame| {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            lock(order).push(frame.kind);
            Ok(())
        };
        let quick = |frame: Frame| {
            lock(&passed).push(frame.kind);
            Ok(())
        };
        frame::write(&theirs, Kind::DATA, 1, b"output").unwrap();
        thread::scope(|scope| {
            let reader = scope.spawn(move || ours.next(slow));
            has_begun.recv().unwrap();
            // The thread has a frame in hand, and a caller comes whose answer stands behind it.
            frame::write(&theirs, Kind::RESULT, 1, b"{}").unwrap();
            let read = inbox.read_until(Instant::now() + LIMIT, || lock(&passed).len() == 1, || false, quick);
            go_on.send(()).unwrap();
            assert_eq!(reader.join().unwrap(), Ok(()));
            assert!(!read, "two have read at once");
        });
        assert_eq!(inbox.next(quick), Ok(()));
        assert_eq!(*lock(&passed), [Kind::DATA, Kind::RESULT]);
    }

    #[test]
    fn a_signal_is_nothing_to_read() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let inbox = Inbox::new(ours).unwrap();
        signal_hook::flag::register(signal_hook::consts::SIGURG, Arc::default()).unwrap();
        let over = AtomicBool::new(false);
        let own = rustix::thread::gettid();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    // Whom it names is who gets it, where that thread takes it.
                    kill_process(own, Signal::URG).unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let begin = Instant::now();
            let limit = Duration::from_millis(200);
            let readable = inbox.readable(Some(limit));
            over.store(true, Ordering::SeqCst);
            assert!(!readable && begin.elapsed() >= limit, "after {:?}", begin.elapsed());
        });
    }
}
