//! The command line's side of a running call: where its output goes, and what is typed meanwhile.

use std::io::{self, IsTerminal};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ErrorKind, ExecIo, ExecOutcome, Flow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::print::say;
use super::tty;
use super::typing::Typing;
use crate::exec::clean::{Clean, Options};
use crate::exec::{Cancel, Collector, Paced, Patience, Report, Screen, Terminal, exit_code_of};
use crate::world::World;

/// Hostel itself failed.
pub(super) const FAILED: u8 = 125;

/// Returns the exit code where a call has failed.
pub(super) fn failed(error: &Error) -> u8 {
    exit_code_of(error).and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

/// Nobody reads our output any more: what a shell reports of a program in that place (128 + `SIGPIPE`).
const CLOSED: u8 = 141;

/// Returns the exit code where our own output could not be written, and says why unless its reader has simply left.
pub(super) fn undelivered(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CLOSED;
    }
    say("error", &format!("failed to write the output: {error}"));
    say("hint", "the command may have run only in part; see that there is room where its output goes");
    FAILED
}

/// Makes a call on a terminal that is as large as ours, and passes on what is typed here.
pub(super) fn on_terminal(
    call: impl FnOnce((&Terminal, OwnedFd)) -> Result<ExecOutcome, Error>,
    stdin: bool,
) -> Result<ExecOutcome, Error> {
    let (terminal, commands) = Terminal::open(tty::size()).map_err(|error| starting(&error))?;
    let raw = tty::Raw::begin().map_err(|error| starting(&error))?;
    let _typing = Typing::begin(&terminal, raw.is_some() || stdin).map_err(|error| starting(&error))?;
    call((&terminal, commands))
}

pub(super) fn starting(error: &io::Error) -> Error {
    Error::new(ErrorKind::IO, format!("failed to start a command: {error}")).not_started()
}

/// Where the output goes.
pub(super) enum Sink {
    /// Kept for the end.
    Keep(Collector),
    /// Passed on byte by byte.
    Raw(Paced),
    /// Passed on to a person.
    Screen(Paced, Screen),
}

impl Sink {
    /// Keeps `most` bytes, or passes output on: as it is where that is wanted, or nobody looks.
    pub(super) fn new(world: &World, most: Option<u32>, raw: bool) -> Result<Self, Error> {
        if let Some(most) = most {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Ok(Self::Keep(Collector::new(most, world.outputs()?)));
        }
        let out = Paced::stdout();
        let raw = raw || !io::stdout().is_terminal();
        Ok(if raw { Self::Raw(out) } else { Self::Screen(out, Screen::default()) })
    }

    fn take(&mut self, bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        match self {
            Self::Keep(collector) => {
                collector.take(bytes);
                Ok(())
            }
            Self::Raw(out) => out.write(bytes, patience),
            Self::Screen(out, screen) => out.write(&screen.show(bytes), patience),
        }
    }
}

/// The command line's side of a running call.
pub(super) struct Io {
    cancel: Cancel,
    deadline: Option<Instant>,
    /// None once the call is over: a provider that did not come back may still write.
    sink: Mutex<Option<(Sink, Clean)>>,
    failed: Mutex<Option<io::Error>>,
    /// Whether the last thing that was printed did not end its line.
    mid_line: AtomicBool,
}

impl Io {
    pub(super) fn new(limit: Duration, sink: Sink, clean: Options) -> Result<Self, Error> {
        let cancel = Cancel::new().map_err(|error| starting(&error))?;
        let deadline = Instant::now().checked_add(limit);
        let sink = Mutex::new(Some((sink, Clean::new(clean))));
        Ok(Self { cancel, deadline, sink, failed: Mutex::default(), mid_line: AtomicBool::new(false) })
    }

    /// Lets the signals that would end us cancel the call instead.
    pub(super) fn cancel_on_signals(&self) -> Result<(), Error> {
        self.cancel.on_signals(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(|error| starting(&error))
    }

    /// Returns whether what was printed last did not end its line.
    pub(super) fn is_mid_line(&self) -> bool {
        self.mid_line.load(Ordering::SeqCst)
    }

    /// Cancels the call.
    pub(super) fn interrupt(&self) {
        self.cancel.cancel();
    }

    fn patience(&self) -> Patience<'_> {
        Patience { cancel: self.cancel.as_fd(), deadline: self.deadline }
    }

    /// Ends the taking of output, and adds what was kept to the report. Returns why some of it could not be passed on. What is
    /// left of the output of a command that ended by itself is waited for; that of a command that was killed is not.
    pub(super) fn finish(&self, report: &mut Report, by_itself: bool) -> Option<io::Error> {
        let failed = lock(&self.failed).take();
        let deliver = |mut out: Paced| if by_itself { out.deliver(self.cancel.as_fd()).err() } else { None };
        let late = lock(&self.sink).take().and_then(|(mut sink, mut clean)| {
            let held = sink.take(&clean.finish(), self.patience()).err();
            held.or_else(|| match sink {
                Sink::Keep(collector) => {
                    report.printed(collector.finish());
                    None
                }
                Sink::Screen(mut out, mut screen) => {
                    let last = out.write(&screen.finish(), self.patience()).err();
                    last.or_else(|| deliver(out))
                }
                Sink::Raw(out) => deliver(out),
            })
        });
        self.cancel.over();
        failed.or(late)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExecIo for Io {
    fn output(&self, bytes: &[u8]) -> Flow {
        if let Some(last) = bytes.last() {
            self.mid_line.store(*last != b'\n', Ordering::SeqCst);
        }
        let written = match &mut *lock(&self.sink) {
            Some((sink, clean)) => sink.take(&clean.take(bytes), self.patience()),
            None => return Flow::Stop,
        };
        match written {
            Ok(()) => Flow::Continue,
            Err(error) => {
                *lock(&self.failed) = Some(error);
                Flow::Stop
            }
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.cancel.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
