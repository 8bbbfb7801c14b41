//! The caller's side of a script that runs: hears its launcher, and passes on what that says.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hostel_plugin_api::{ExecIo, Flow};

use super::frames::{Frame, Frames, Request};
use crate::exec::Cancel;
use crate::tools::terminal::{Taken, Taking};

/// Hears one launcher.
pub(super) struct Hearing {
    stop: Arc<Cancel>,
    deadline: Option<Instant>,
    /// Whether the launcher has said anything.
    is_up: AtomicBool,
    /// None once the call is over: a provider that did not come back may still write.
    heard: Mutex<Option<Heard>>,
}

/// What was heard.
pub(super) struct Heard {
    frames: Frames,
    output: Taking,
    errors: Taking,
    /// None once the script has ended.
    calls: Option<Sender<Request>>,
    told: Told,
}

/// What a launcher has told of its script.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// It was about to begin.
    pub(super) begun: bool,
    /// It has ended, with this exit code.
    pub(super) exit_code: Option<i32>,
    /// Why it could not be begun.
    pub(super) failed: Option<String>,
    /// The last of what the place has said that was not the launcher.
    pub(super) said: String,
}

/// All that came of a script.
pub(super) struct Result {
    /// Its standard output. None if that was taken before.
    pub(super) output: Option<Taken>,
    /// Its standard error.
    pub(super) errors: Option<Taken>,
    /// What its launcher has told.
    pub(super) told: Told,
}

impl Hearing {
    /// Hears a launcher that is known by `token` and must have ended at `deadline`, or when `stop` is cancelled. Calls go to `calls`.
    pub(super) fn new(
        token: &str,
        (output, errors): (Taking, Taking),
        calls: Sender<Request>,
        stop: &Arc<Cancel>,
        deadline: Option<Instant>,
    ) -> Self {
        let (frames, told) = (Frames::new(token), Told::default());
        let heard = Heard { frames, output, errors, calls: Some(calls), told };
        Self {
            stop: Arc::clone(stop),
            deadline,
            is_up: AtomicBool::new(false),
            heard: Mutex::new(Some(heard)),
        }
    }

    /// Returns whether the launcher has come up.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::SeqCst)
    }

    /// Ends the hearing. None if that was done before.
    pub(super) fn finish(&self) -> Option<Result> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        heard.told.said = heard.frames.said();
        let (output, errors) = (heard.output.finish(), heard.errors.finish());
        Some(Result { output, errors, told: heard.told })
    }
}

impl Heard {
    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Begun => self.told.begun = true,
            Frame::Output(bytes) => drop(self.output.output(&bytes)),
            Frame::Errors(bytes) => drop(self.errors.output(&bytes)),
            Frame::Call(request) => {
                // Whoever answers may have ended, and then the script soon will.
                if let Some(calls) = &self.calls {
                    let _ = calls.send(request);
                }
            }
            Frame::Ended(exit_code) => {
                self.told.exit_code = Some(exit_code);
                self.calls = None;
            }
            Frame::Failed(why) => self.told.failed = Some(why),
        }
    }
}

impl ExecIo for Hearing {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = &mut *heard else { return Flow::Stop };
        for frame in heard.frames.take(bytes) {
            self.is_up.store(true, Ordering::SeqCst);
            // Behind its end there is nothing of the script's.
            if heard.told.exit_code.is_none() {
                heard.take(frame);
            }
        }
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stop.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
