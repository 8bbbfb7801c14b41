//! `hostel exec`.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecRequest, Stdin};

use super::args::Exec;
use super::call::{FAILED, Io, Sink, failed, on_terminal, starting, undelivered};
use super::failure::Failure;
use super::print::{Out, say};
use super::sudo::sudo;
use crate::environments::{Environments, SharedIo, terminal};
use crate::exec::clean::Options;
use crate::exec::{Report, join};
use crate::world::{self, World};

/// Wrong usage.
const USAGE: u8 = 2;

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
            failed(error)
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
    let options = world::Options { home: None, backend: arguments.backend };
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
    let environments = Environments::with_sudo(sudo(arguments.stdin));
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
    // What a command leaves behind without a parent comes to us, and so to its end. Where that fails it is only found less often.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    // Made before the clock of the command starts to run.
    environments.get(&world, entry, &arguments.task)?;
    let sink =
        Sink::new(&world, arguments.json.then_some(arguments.max_output), arguments.raw || arguments.pty)?;
    let clean = Options { strip_ansi: arguments.strip_ansi, collapse_cr: arguments.collapse_progress };
    let io = Arc::new(Io::new(limit, sink, clean)?);
    io.cancel_on_signals()?;
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
