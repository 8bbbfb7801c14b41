//! Lets a caller see what a process prints while it waits for its end.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::policy::redact::Secrets;
use crate::processes::{ProcessError, Processes};
use crate::tools::call::Call;
use crate::tools::live::Live;

/// A thread that follows the output of one process.
pub(super) struct Watching {
    thread: JoinHandle<()>,
    /// Ends the following when it is dropped.
    stop: PipeWriter,
}

impl Watching {
    /// Begins with the line that is being printed. None if nobody listens, or it cannot be followed: to wait is what was asked for.
    pub(super) fn start(
        processes: &Processes,
        id: &str,
        call: &Call,
        secrets: &Arc<Secrets>,
    ) -> Option<Self> {
        if !call.is_heard() {
            return None;
        }
        let begin = || -> Result<Self, ProcessError> {
            let mut follower = processes.follow_on(id)?;
            let failed = |error| ProcessError::io("failed to follow a process", error);
            let (stopped, stop) = io::pipe().map_err(failed)?;
            let (call, mut live) = (call.clone(), Live::new(secrets));
            let follow = move || {
                while let Ok(Some(piece)) = follower.next(Some(stopped.as_fd())) {
                    if piece.dropped > 0 {
                        call.printed(format!("[{} bytes left out]\n", piece.dropped).as_bytes());
                    }
                    pass(&call, &live.take(&piece.bytes));
                }
                pass(&call, &live.finish());
            };
            let thread = thread::Builder::new().name("watching".into()).spawn(follow).map_err(failed)?;
            Ok(Self { thread, stop })
        };
        begin().inspect_err(|error| tracing::debug!(%error, "a wait shows no output")).ok()
    }

    /// Ends it. Of a process that has ended all output is passed on before.
    pub(super) fn finish(self, has_ended: bool) {
        let Self { thread, stop } = self;
        if !has_ended {
            drop(stop);
        }
        // It has only passed on output.
        let _ = thread.join();
    }
}

fn pass(call: &Call, bytes: &[u8]) {
    if !bytes.is_empty() {
        call.printed(bytes);
    }
}
