//! One call on an environment, whoever made it.
//!
//! A provider is trusted to end a command in time and to hide what it is told to hide, and neither can be left to trust
//! alone. So the call runs on a thread of its own, which is left behind if the provider does not come back; secrets are
//! taken out before the request is handed over; and an answer that cannot be true is an error. What is built in comes back, by its own
//! tests, and is spared the thread: waking that, and being woken by it, is a tenth of a short command.

use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::threads;
use crate::registry::ENDED_BY_FORCE;
use hostel_plugin_api::shell::StripList;
use hostel_plugin_api::{Ended, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a provider may take to end a command whose time is up, or that was cancelled. The shared shell session needs
/// three seconds at the most, and one in a worker is killed after four, which takes a moment.
const SLACK: Duration = Duration::from_secs(8);

/// The caller's side of a call, which may have to outlive the caller.
pub type SharedIo = Arc<dyn ExecIo + Send + Sync>;

/// What became of a call.
pub(super) enum Ran {
    /// The provider answered.
    Answered(Result<ExecOutcome, Error>),
    /// It did not come back, and was left to itself.
    Abandoned(ExecOutcome),
}

/// Takes out of a request what no command may see, and returns a line for each.
pub(super) fn withhold(request: &mut ExecRequest, strip: &StripList) -> Vec<String> {
    let mut lines = Vec::new();
    request.env.retain(|(name, _)| {
        let secret = strip.matches(name.as_ref());
        if secret {
            lines.push(format!("`{name}` was not passed: it is a provider's secret"));
        }
        !secret
    });
    lines
}

fn failed(error: &io::Error) -> Error {
    Error::new(ErrorKind::IO, format!("failed to start a command: {error}"))
}

/// Runs one command, and waits for it no longer than its deadline and its cancellation allow; that of a built-in backend
/// (`ours`) for as long as it takes.
pub(super) fn run(
    environment: Arc<dyn Environment>,
    request: ExecRequest,
    io: &SharedIo,
    ours: bool,
) -> Result<Ran, Error> {
    if ours {
        let call = AssertUnwindSafe(|| environment.execute(request, io.as_ref()));
        // Whatever it has left half done is used no more.
        let answer = catch_unwind(call).unwrap_or_else(|_| Err(panicked()));
        return Ok(Ran::Answered(answer.and_then(honest)));
    }
    let (end, alive) = io::pipe().map_err(|error| failed(&error).not_started())?;
    let (sender, receiver) = mpsc::channel();
    let theirs = Arc::clone(io);
    let call = move || {
        // The waiter may have gone.
        let _ = sender.send(environment.execute(request, theirs.as_ref()));
        drop(environment);
        // Wakes the waiter, also where the call panics.
        drop(alive);
    };
    threads::run(call).map_err(|error| {
        Error::new(ErrorKind::IO, format!("failed to start a thread: {error}")).not_started()
    })?;
    let mut until = io.deadline().and_then(|deadline| deadline.checked_add(SLACK));
    let mut cancelled = false;
    loop {
        let mut fds = vec![PollFd::new(&end, PollFlags::IN)];
        let cancel = io.cancel_fd().filter(|_| !cancelled);
        if let Some(cancel) = &cancel {
            fds.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed(&error.into())),
            Ok(0) => {
                let outcome = if cancelled { ExecOutcome::interrupted() } else { ExecOutcome::timed_out() };
                return Ok(Ran::Abandoned(outcome));
            }
            Ok(_) => {}
        }
        if !fds[0].revents().is_empty() {
            break;
        }
        cancelled = true;
        let limit = Instant::now() + SLACK;
        until = Some(until.map_or(limit, |until| until.min(limit)));
    }
    let answer = receiver.recv().unwrap_or_else(|_| Err(panicked()));
    Ok(Ran::Answered(answer.and_then(honest)))
}

fn panicked() -> Error {
    Error::new(ErrorKind::PANICKED, "`execute` panicked")
}

/// What became of a command whose provider had to be taken down to end it.
pub(super) fn ended_by_force(error: &Error) -> Option<ExecOutcome> {
    let ended = error.extra().get(ENDED_BY_FORCE)?.as_u64();
    let interrupted = ended == Some(u64::from(Ended::INTERRUPTED.0));
    Some(if interrupted { ExecOutcome::interrupted() } else { ExecOutcome::timed_out() })
}

/// Refuses an answer that cannot be true, and holds the exit codes of ours to what they mean.
fn honest(mut outcome: ExecOutcome) -> Result<ExecOutcome, Error> {
    match outcome.ended {
        Ended::EXITED | Ended::SIGNAL => {}
        Ended::TIMEOUT => outcome.exit_code = ExecOutcome::timed_out().exit_code,
        Ended::INTERRUPTED => outcome.exit_code = ExecOutcome::interrupted().exit_code,
        _ => return Err(Error::new(ErrorKind::LOST, "the provider lost track of the command")),
    }
    if (0..=255).contains(&outcome.exit_code) {
        return Ok(outcome);
    }
    let message = format!("it reported exit code {}, which no command has", outcome.exit_code);
    Err(Error::new(ErrorKind::LOST, message))
}
