//! The one call on an environment that a background process is.
//!
//! It runs on a thread of its own, as long as it takes, and the keeper's loop must hear of its start and its end among all
//! else that it waits for. So both are written down here, and a bell is rung.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, mem};

use hostel_plugin_api::{Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow};

use super::bell::Bell;
use super::log::LogWriter;
use super::notices::Event;
use super::watch::{Notice, Watch};
use crate::environments::{Aside, Environments, SharedIo, terminal};
use crate::exec::clean::{self, Clean};
use crate::exec::{Cancel, Terminal};
use crate::registry::Entry;
use crate::world::World;

/// Long enough for any process. Without a deadline the default one would hold.
const DEADLINE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How long it may take to look where the command will run: a session that begins reads its login files then.
const LOOKING: Duration = Duration::from_secs(60);

/// What is needed to make the call.
pub(super) struct Call {
    pub(super) environments: Arc<Environments>,
    pub(super) world: World,
    pub(super) entry: Arc<Entry>,
    pub(super) task: String,
    pub(super) request: ExecRequest,
    pub(super) terminal: Option<(Terminal, OwnedFd)>,
}

impl Call {
    /// Makes the environment and then the call, and tells `io` of both.
    pub(super) fn begin(self, io: Arc<CallIo>) -> io::Result<()> {
        let ending = Ending(Arc::clone(&io));
        let run = move || {
            let outcome = self.run(&io);
            ending.0.end(outcome);
        };
        thread::Builder::new().name("call".into()).spawn(run).map(drop)
    }

    fn run(self, io: &Arc<CallIo>) -> Result<ExecOutcome, Error> {
        let Self { environments, world, entry, task, request, terminal } = self;
        let looking = Aside::within(LOOKING, Arc::<CallIo>::clone(io));
        // Before anybody waits for the command to start. Login files are read now, too, and a wrong directory is found.
        let mut look = ExecRequest::new(":");
        look.cwd.clone_from(&request.cwd);
        look.run_in_background();
        let place = environments.execute(&world, &entry, &task, look, &looking)?;
        if io.cancelled() {
            return Err(Error::new(ErrorKind::CANCELLED, "it was ended before it began").not_started());
        }
        io.calling(place);
        let shared: SharedIo = Arc::<CallIo>::clone(io);
        match terminal {
            Some((ours, commands)) => {
                terminal::execute(&environments, &world, &entry, &task, request, &shared, (&ours, commands))
            }
            None => environments.execute(&world, &entry, &task, request, &shared),
        }
    }
}

/// Tells of an end also where the call panics.
struct Ending(Arc<CallIo>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(Err(Error::new(ErrorKind::PANICKED, "the call panicked")));
    }
}

/// The keeper's side of the call.
pub(super) struct CallIo {
    cancel: Cancel,
    deadline: Option<Instant>,
    output: Mutex<Output>,
    progress: Mutex<Progress>,
    bell: Arc<Bell>,
}

struct Output {
    log: LogWriter,
    /// Colours must not come between the characters of a pattern.
    clean: Clean,
    watch: Watch,
    /// What is to be told and was not yet taken from here.
    events: Vec<Event>,
    complained: bool,
}

impl Output {
    fn look(&mut self, bytes: &[u8]) -> Option<Notice> {
        if !self.watch.is_on() {
            return None;
        }
        let text = self.clean.take(bytes);
        self.watch.take(&text, Instant::now())
    }
}

/// How far the call is.
#[derive(Default)]
struct Progress {
    calling: Option<Instant>,
    /// What came of looking where it will run.
    place: Option<ExecOutcome>,
    started: bool,
    ended: bool,
    outcome: Option<Result<ExecOutcome, Error>>,
}

impl CallIo {
    pub(super) fn new(log: LogWriter, patterns: Vec<String>, bell: Arc<Bell>) -> io::Result<Self> {
        let options = clean::Options { strip_ansi: true, collapse_cr: false };
        let (clean, watch) = (Clean::new(options), Watch::new(patterns));
        let output = Output { log, clean, watch, events: Vec::new(), complained: false };
        Ok(Self {
            cancel: Cancel::new()?,
            deadline: Instant::now().checked_add(DEADLINE),
            output: Mutex::new(output),
            progress: Mutex::default(),
            bell,
        })
    }

    /// Ends the command, for certain.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns whether the command has started, and since when the call has been made.
    pub(super) fn started(&self) -> (bool, Option<Instant>) {
        let progress = lock(&self.progress);
        (progress.started, progress.calling)
    }

    /// Takes the outcome, once there is one.
    pub(super) fn take_outcome(&self) -> Option<Result<ExecOutcome, Error>> {
        lock(&self.progress).outcome.take()
    }

    /// Takes what is to be told.
    pub(super) fn take_events(&self) -> Vec<Event> {
        mem::take(&mut lock(&self.output).events)
    }

    /// Says what of the output is missing from the log.
    pub(super) fn complaint(&self) -> Option<String> {
        lock(&self.output).log.complaint()
    }

    /// Takes what came of looking where the command runs, once that is known.
    pub(super) fn take_place(&self) -> Option<ExecOutcome> {
        lock(&self.progress).place.take()
    }

    fn calling(&self, place: ExecOutcome) {
        let mut progress = lock(&self.progress);
        (progress.calling, progress.place) = (Some(Instant::now()), Some(place));
        drop(progress);
        self.bell.ring();
    }

    fn start(&self) {
        if !mem::replace(&mut lock(&self.progress).started, true) {
            self.bell.ring();
        }
    }

    /// Only the first end counts.
    fn end(&self, outcome: Result<ExecOutcome, Error>) {
        if mem::replace(&mut lock(&self.progress).ended, true) {
            return;
        }
        let mut output = lock(&self.output);
        let rest = output.clean.finish();
        let now = Instant::now();
        let last = [output.watch.take(&rest, now), output.watch.finish(now)];
        output.events.extend(last.into_iter().flatten().map(Event::from));
        drop(output);
        // Last: whoever finds it there takes the events too.
        lock(&self.progress).outcome = Some(outcome);
        self.bell.ring();
    }
}

impl ExecIo for CallIo {
    /// Never waits: a log costs the process nothing.
    fn output(&self, bytes: &[u8]) -> Flow {
        self.start();
        if bytes.is_empty() {
            return Flow::Continue;
        }
        let mut output = lock(&self.output);
        output.log.append(bytes);
        let notice = output.look(bytes);
        let complains = output.log.complaint().is_some();
        let news = notice.is_some() || (complains && !output.complained);
        output.complained = complains;
        output.events.extend(notice.map(Event::from));
        drop(output);
        if news {
            self.bell.ring();
        }
        Flow::Continue
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(dir: &std::path::Path, patterns: &[&str]) -> CallIo {
        let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        CallIo::new(LogWriter::new(dir, 1000), patterns, Arc::new(Bell::new().unwrap())).unwrap()
    }

    #[test]
    fn the_start_is_told_by_an_output_of_nothing_or_of_something() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [b"".as_slice(), b"x"] {
            let io = io(dir.path(), &[]);
            assert!(!io.started().0);
            io.output(bytes);
            assert!(io.started().0);
        }
    }

    #[test]
    fn only_the_first_end_counts_and_it_is_there_once() {
        let dir = tempfile::tempdir().unwrap();
        let io = io(dir.path(), &["up"]);
        io.output(b"it is up");
        assert!(io.take_events().is_empty(), "the line has not ended");
        io.end(Ok(ExecOutcome::exited(3)));
        io.end(Err(Error::new(ErrorKind::PANICKED, "late")));
        assert_eq!(io.take_events().len(), 1);
        assert_eq!(io.take_outcome().unwrap().unwrap().exit_code, 3);
        assert!(io.take_outcome().is_none());
    }
}
