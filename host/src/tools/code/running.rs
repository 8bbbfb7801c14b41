//! One run of a script.
//!
//! It is one command of the session's. Three threads take part: one waits for the command, one makes the calls of the script and
//! writes the answers to the command's input, and one looks after the end. Calls run beside the script in the same
//! environment, which allows that; none outlives it.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ErrorKind, ExecOutcome, ExecRequest, Stdin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::answers::Answers;
use super::hearing::{Hearing, Told};
use super::launch::Language;
use super::left::{self, Note};
use super::limits::{ERRORS, OUTPUT, START, SWEEPING};
use crate::environments::SharedIo;
use crate::exec::{Cancel, Collector};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::terminal::{Taken, Taking};
use crate::{random, tools};

/// A script, and how it is to be run.
#[derive(Clone, Copy)]
pub(super) struct Script<'a> {
    pub(super) language: Language,
    pub(super) text: &'a str,
    pub(super) limit: Duration,
}

/// What came of it.
pub(super) struct Ran {
    /// What the environment says of the command.
    pub(super) outcome: Result<ExecOutcome, Error>,
    /// What the script has printed on standard output.
    pub(super) output: Option<Taken>,
    /// What it has printed on standard error.
    pub(super) errors: Option<Taken>,
    /// What its launcher has told.
    pub(super) told: Told,
    /// How many tools it has called.
    pub(super) calls: u32,
    /// How long it took.
    pub(super) took: Duration,
    /// Its launcher did not come up in time.
    pub(super) is_late: bool,
    /// The environment was there, and was asked to run it.
    pub(super) is_asked: bool,
}

impl Ran {
    /// Makes that of a script that was not run.
    pub(super) fn not(error: Error) -> Self {
        let (output, errors, told) = Default::default();
        let (outcome, took, calls) = (Err(error), Duration::ZERO, 0);
        Self { outcome, output, errors, told, calls, took, is_late: false, is_asked: false }
    }
}

impl Script<'_> {
    /// Runs it where the session stands.
    pub(super) fn run(self, session: &Session, call: &Call, shown: &Shown) -> Ran {
        self.begin(session, call, shown).unwrap_or_else(Ran::not)
    }

    fn begin(self, session: &Session, call: &Call, shown: &Shown) -> Result<Ran, Error> {
        let failed = |error: io::Error| {
            Error::new(ErrorKind::IO, format!("failed to start a script: {error}")).not_started()
        };
        session.prepare()?;
        let outputs = session.outputs()?;
        let token = random::hex::<16>().map_err(failed)?;
        let stop = Arc::new(Cancel::new().map_err(failed)?);
        let (reader, writer) = io::pipe().map_err(failed)?;
        let (end, alive) = io::pipe().map_err(failed)?;
        let (sender, receiver) = mpsc::channel();
        let answers =
            Answers::new(session, call.of_script().cancelled_by(&stop), &token, writer).map_err(failed)?;
        // Not the token, which a script that knows its own folder must not know.
        let folder = format!("hostel-code-{}", random::hex::<8>().map_err(failed)?);
        let first = self.language.input(&token, &folder, self.text);
        let (home, owner) = (&session.world().home, left::owner(session));
        for orphan in left::orphans(home, &owner) {
            look_after(session, orphan);
        }
        let note = Note::write(home, &owner, &folder).map_err(failed)?;

        let start = Instant::now();
        let deadline = start.checked_add(self.limit);
        let taking =
            |most| Taking::new(call, deadline, Collector::new(most, outputs.clone()), shown.secrets());
        let streams = (taking(OUTPUT), taking(ERRORS));
        let hearing = Arc::new(Hearing::new(&token, streams, sender, &stop, deadline));
        let shared: SharedIo = Arc::<Hearing>::clone(&hearing);
        let mut request = ExecRequest::new(self.language.command());
        // It becomes the launcher; what the script changes by `terminal` is kept all the same.
        request.keep_nothing();
        request.stdin = Stdin::Fd(reader.into());
        thread::scope(|scope| {
            let answering = thread::Builder::new().name("answers".into());
            let answering =
                answering.spawn_scoped(scope, move || answers.serve(&first, receiver)).map_err(failed)?;
            let watching = thread::Builder::new().name("watch".into());
            let watching = watching.spawn_scoped(scope, || watch(call, &hearing, &stop, &end));
            let watching = watching.map_err(|error| {
                hearing.finish();
                stop.cancel();
                failed(error)
            })?;
            let outcome = session.execute(request, &shared);
            let took = start.elapsed();
            drop(alive);
            let heard = hearing.finish();
            // A call that is still under way ends now.
            stop.cancel();
            let calls = answering.join().unwrap_or(0);
            let is_late = watching.join().unwrap_or(false);
            let (output, errors, told) =
                heard.map_or_else(Default::default, |heard| (heard.output, heard.errors, heard.told));
            if told.exit_code.is_some() || told.failed.is_some() {
                note.settle();
            } else {
                look_after(session, note);
            }
            Ok(Ran { outcome, output, errors, told, calls, took, is_late, is_asked: true })
        })
    }
}

/// Removes the folder of a launcher that has ended without a word. If that cannot be done now, it is tried the next time.
fn look_after(session: &Session, note: Note) {
    let Ok(call) = Call::new() else { return };
    let script = tools::script::Script::new(include_str!("sweep.sh")).var("HOSTEL_NAME", note.name());
    match script.limit(SWEEPING).without_login().run(session, &call) {
        Ok(_) => note.settle(),
        Err(error) => tracing::debug!(%error, folder = note.name(), "the folder of a launcher was left"),
    }
}

/// Cancels `stop` when the caller gives up, or the launcher does not come up; returns whether it was the latter. Comes back when `end` is
/// closed.
fn watch(call: &Call, hearing: &Hearing, stop: &Cancel, end: &impl AsFd) -> bool {
    let mut until = Some(Instant::now() + START);
    loop {
        let mut fds =
            [PollFd::new(end, PollFlags::IN), PollFd::from_borrowed_fd(call.cancel_fd(), PollFlags::IN)];
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => {}
            Ok(0) if hearing.is_up() => until = None,
            Ok(0) => {
                stop.cancel();
                return true;
            }
            Ok(_) if !fds[0].revents().is_empty() => return false,
            // Nobody can be waited for without descriptors.
            Ok(_) | Err(_) => {
                stop.cancel();
                return false;
            }
        }
    }
}
