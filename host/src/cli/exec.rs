//! `hostel exec`.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::args::Exec;
use super::failure::Failure;
use super::print::Out;
use crate::environments::Environments;
use crate::exec::{Cancel, Collector, Report, Screen, join};
use crate::registry::Entry;
use crate::world::{Options, World};

/// Hostel itself failed.
const FAILED: u8 = 125;
/// Wrong usage.
const USAGE: u8 = 2;
/// Nobody reads our output any more: what a shell reports of a program in that place (128 + `SIGPIPE`).
const CLOSED: u8 = 141;

/// Runs the command, prints what came of it, and returns the exit code.
pub(super) fn run(arguments: Exec) -> u8 {
    let env = match variables(&arguments.env) {
        Ok(env) => env,
        Err(message) => {
            eprintln!("error: {message}");
            return USAGE;
        }
    };
    let start = Instant::now();
    let mut report = Report::new(&arguments.task);
    let json = arguments.json;
    let result = execute(arguments, env, &mut report);
    report.duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let code = match &result {
        Ok(code) => *code,
        Err(error) => {
            report.failed(error);
            FAILED
        }
    };
    if json && let Err(error) = Out::stdout().json(&report) {
        return Failure::from(error).print();
    }
    if let Err(error) = &result {
        eprintln!("error: {error}");
        if let Some(hint) = error.hint() {
            eprintln!("hint: {hint}");
        }
    }
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    code
}

/// Reads `K=V` and `K`.
fn variables(words: &[String]) -> Result<Vec<(String, String)>, String> {
    let variable = |word: &String| match word.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var(word) {
            Ok(value) => Ok((word.clone(), value)),
            Err(_) => Err(format!(
                "`--env {word}` takes the value from our own environment, where it is not set as text"
            )),
        },
    };
    words.iter().map(variable).collect()
}

fn execute(arguments: Exec, env: Vec<(String, String)>, report: &mut Report) -> Result<u8, Error> {
    let options = Options { home: None, backend: arguments.backend };
    let world = World::open(options).map_err(|error| {
        let failure = Failure::from(error);
        let error = Error::new(ErrorKind::NOT_CONFIGURED, failure.message).not_started();
        match failure.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })?;
    let entry = world.selected()?;
    report.backend = Some(entry.name().to_owned());
    let environments = Environments::default();
    let environment = environments.get(&world, entry, &arguments.task)?;
    let limit = match arguments.timeout {
        Some(limit) => limit,
        None => world
            .config
            .seconds("terminal.timeout")
            .map_err(|error| Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started())?,
    };
    let mut request = ExecRequest::new(join(&arguments.command));
    request.cwd = arguments.cwd;
    request.env = env;
    if arguments.stdin {
        request.stdin = Stdin::Fd(
            io::stdin().as_fd().try_clone_to_owned().map_err(|error| Error::from(error).not_started())?,
        );
    }
    let io = Io::new(limit, sink(&world, arguments.json, arguments.raw, arguments.max_output))?;
    let outcome = environment.execute(request, &io);
    if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::PANICKED) {
        environments.discard(entry.name(), &arguments.task);
    }
    let closed = io.finish(report);
    let outcome = outcome.and_then(honest).map_err(|error| named(error, entry));
    drop(environment);
    report.warnings.extend(environments.close());
    let outcome = outcome?;
    report.ended(&outcome);
    if outcome.ended == Ended::TIMEOUT {
        eprintln!("note: the command was ended at its limit of {} s", limit.as_secs_f64());
    }
    if closed {
        return Ok(CLOSED);
    }
    Ok(u8::try_from(outcome.exit_code).unwrap_or(FAILED))
}

/// Refuses an exit code that no command can have.
fn honest(outcome: ExecOutcome) -> Result<ExecOutcome, Error> {
    if (0..=255).contains(&outcome.exit_code) {
        return Ok(outcome);
    }
    let message = format!("it reported exit code {}, which no command has", outcome.exit_code);
    Err(Error::new(ErrorKind::LOST, message))
}

fn named(error: Error, entry: &Entry) -> Error {
    error.with_context(format_args!("backend `{}`", entry.name()))
}

/// Where the output goes.
enum Sink {
    /// Kept for the end.
    Keep(Collector),
    /// Passed on byte by byte.
    Raw(io::Stdout),
    /// Passed on to a person.
    Screen(Screen<io::Stdout>),
}

fn sink(world: &World, json: bool, raw: bool, limit: u32) -> Sink {
    if json {
        return Sink::Keep(Collector::new(
            usize::try_from(limit).unwrap_or(usize::MAX),
            world.home.outputs(),
        ));
    }
    let stdout = io::stdout();
    if raw || !stdout.is_terminal() { Sink::Raw(stdout) } else { Sink::Screen(Screen::new(stdout)) }
}

/// The command line's side of a running call.
struct Io {
    cancel: Cancel,
    deadline: Option<Instant>,
    sink: Mutex<Sink>,
    closed: Mutex<bool>,
}

impl Io {
    fn new(limit: Duration, sink: Sink) -> Result<Self, Error> {
        let cancel = Cancel::new()?;
        cancel.on_signals(&[SIGINT, SIGTERM, SIGHUP])?;
        Ok(Self {
            cancel,
            deadline: Instant::now().checked_add(limit),
            sink: Mutex::new(sink),
            closed: Mutex::new(false),
        })
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Adds what was kept to the report. Returns whether our own output was closed from outside.
    fn finish(self, report: &mut Report) -> bool {
        let sink = self.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut closed = self.closed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match sink {
            Sink::Keep(collector) => report.printed(collector.finish()),
            Sink::Screen(mut screen) => closed |= screen.finish().is_err(),
            Sink::Raw(_) => {}
        }
        closed
    }
}

impl ExecIo for Io {
    fn output(&self, bytes: &[u8]) -> Flow {
        let written = match &mut *self.sink() {
            Sink::Keep(collector) => {
                collector.take(bytes);
                Ok(())
            }
            Sink::Raw(stdout) => stdout.write_all(bytes).and_then(|()| stdout.flush()),
            Sink::Screen(screen) => screen.write(bytes),
        };
        if let Ok(()) = written {
            Flow::Continue
        } else {
            self.close();
            Flow::Stop
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
