//! `hostel exec`.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::args::Exec;
use super::failure::Failure;
use super::print::{Out, say};
use super::tty;
use crate::environments::{Environments, SharedIo, terminal};
use crate::exec::{Cancel, Collector, Paced, Patience, Report, Screen, Terminal, join};
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
            say("error", &message);
            return USAGE;
        }
    };
    let start = Instant::now();
    let mut report = Report::new(&arguments.task);
    let json = arguments.json;
    let result = execute(arguments, env, &mut report);
    report.duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut code = match &result {
        Ok(code) => *code,
        Err(error) => {
            report.failed(error);
            FAILED
        }
    };
    if json && let Err(error) = Out::stdout().json(&report) {
        code = undelivered(&error);
    }
    if let Err(error) = &result {
        say("error", error.message());
        if let Some(hint) = error.hint() {
            say("hint", hint);
        }
    }
    for warning in &report.warnings {
        say("warning", warning);
    }
    code
}

/// Returns the exit code where our own output could not be written, and says why unless its reader has simply left.
fn undelivered(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CLOSED;
    }
    say("error", &format!("failed to write the output: {error}"));
    say("hint", "the command may have run only in part; see that there is room where its output goes");
    FAILED
}

/// Reads `K=V` and `K`.
pub(super) fn variables(words: &[String]) -> Result<Vec<(String, String)>, String> {
    let variable = |word: &String| match word.split_once('=') {
        Some(("", _)) => Err(format!("`--env {word}` names no variable")),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var(word) {
            Ok(value) => Ok((word.clone(), value)),
            Err(_) => Err(format!(
                "`--env {word}` takes its value from Hostel's environment, where it is not set or not valid UTF-8"
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
    report.warnings.extend(world.remarks.iter().cloned());
    let environments = Environments::default();
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
    if arguments.stdin && !arguments.pty {
        request.stdin = Stdin::Fd(stdin().map_err(|error| starting(&error))?);
    }
    // Made before the clock of the command starts to run.
    environments.get(&world, entry, &arguments.task)?;
    let raw = arguments.raw || arguments.pty;
    let io = Arc::new(Io::new(limit, sink(&world, arguments.json, raw, arguments.max_output))?);
    let shared: SharedIo = Arc::<Io>::clone(&io);
    let task = &arguments.task;
    let outcome = if arguments.pty {
        on_terminal(
            |on| terminal::execute(&environments, &world, entry, task, request, &shared, on),
            arguments.stdin,
        )
    } else {
        environments.execute(&world, entry, task, request, &shared)
    };
    let killed = [Ended::TIMEOUT, Ended::INTERRUPTED];
    let by_itself = outcome.as_ref().is_ok_and(|outcome| !killed.contains(&outcome.ended));
    let undelivered_because = io.finish(report, by_itself);
    report.warnings.extend(environments.close());
    let outcome = outcome?;
    report.ended(&outcome);
    if outcome.ended == Ended::TIMEOUT {
        say("note", &format!("the command was ended at its limit of {} s", limit.as_secs_f64()));
    }
    if let Some(error) = undelivered_because {
        return Ok(undelivered(&error));
    }
    Ok(u8::try_from(outcome.exit_code).unwrap_or(FAILED))
}

/// Makes a call on a terminal that is as large as ours, and passes on what is typed here.
fn on_terminal(
    call: impl FnOnce((&Terminal, OwnedFd)) -> Result<ExecOutcome, Error>,
    stdin: bool,
) -> Result<ExecOutcome, Error> {
    let (terminal, commands) = Terminal::open(tty::size()).map_err(|error| starting(&error))?;
    let raw = tty::Raw::begin().map_err(|error| starting(&error))?;
    tty::forward(&terminal, raw.is_some() || stdin).map_err(|error| starting(&error))?;
    tty::follow_size(&terminal).map_err(|error| starting(&error))?;
    call((&terminal, commands))
}

/// Returns what the command reads. A terminal is not handed over itself, since whoever may read it may also write to it, past all
/// that makes output safe for a person.
fn stdin() -> io::Result<OwnedFd> {
    let own = io::stdin();
    if !own.is_terminal() {
        return own.as_fd().try_clone_to_owned();
    }
    let (reader, mut writer) = io::pipe()?;
    // It ends with the process: a read from a terminal cannot be taken back.
    std::thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut writer));
    Ok(reader.into())
}

fn starting(error: &io::Error) -> Error {
    Error::new(ErrorKind::IO, format!("failed to start a command: {error}")).not_started()
}

/// Where the output goes.
enum Sink {
    /// Kept for the end.
    Keep(Collector),
    /// Passed on byte by byte.
    Raw(Paced),
    /// Passed on to a person.
    Screen(Paced, Screen),
}

fn sink(world: &World, json: bool, raw: bool, limit: u32) -> Sink {
    if json {
        return Sink::Keep(Collector::new(
            usize::try_from(limit).unwrap_or(usize::MAX),
            world.home.outputs(),
        ));
    }
    let out = Paced::stdout();
    if raw || !io::stdout().is_terminal() { Sink::Raw(out) } else { Sink::Screen(out, Screen::default()) }
}

/// The command line's side of a running call.
struct Io {
    cancel: Cancel,
    deadline: Option<Instant>,
    /// None once the call is over: a provider that did not come back may still write.
    sink: Mutex<Option<Sink>>,
    failed: Mutex<Option<io::Error>>,
}

impl Io {
    fn new(limit: Duration, sink: Sink) -> Result<Self, Error> {
        let cancel = Cancel::new().map_err(|error| starting(&error))?;
        cancel.on_signals(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(|error| starting(&error))?;
        let deadline = Instant::now().checked_add(limit);
        Ok(Self { cancel, deadline, sink: Mutex::new(Some(sink)), failed: Mutex::default() })
    }

    fn patience(&self) -> Patience<'_> {
        Patience { cancel: self.cancel.as_fd(), deadline: self.deadline }
    }

    /// Ends the taking of output, and adds what was kept to the report. Returns why some of it could not be passed on. What is
    /// left of the output of a command that ended by itself is waited for; that of a command that was killed is not.
    fn finish(&self, report: &mut Report, by_itself: bool) -> Option<io::Error> {
        let failed = lock(&self.failed).take();
        let deliver = |mut out: Paced| if by_itself { out.deliver(self.cancel.as_fd()).err() } else { None };
        let late = match lock(&self.sink).take() {
            Some(Sink::Keep(collector)) => {
                report.printed(collector.finish());
                None
            }
            Some(Sink::Screen(mut out, mut screen)) => {
                let last = out.write(&screen.finish(), self.patience()).err();
                last.or_else(|| deliver(out))
            }
            Some(Sink::Raw(out)) => deliver(out),
            None => None,
        };
        self.cancel.over();
        failed.or(late)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExecIo for Io {
    fn output(&self, bytes: &[u8]) -> Flow {
        let written = match &mut *lock(&self.sink) {
            Some(Sink::Keep(collector)) => {
                collector.take(bytes);
                Ok(())
            }
            Some(Sink::Raw(out)) => out.write(bytes, self.patience()),
            Some(Sink::Screen(out, screen)) => out.write(&screen.show(bytes), self.patience()),
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
