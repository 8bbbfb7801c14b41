//! `hostel shell`: commands, one after the other, in a task's session.
//!
//! What is typed is read here and run there: the backend may be anywhere, and each command is a call of its own. So that programs
//! which draw, ask or page work as they do at home, each call of a person's has a terminal where the backend can give one.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hostel_plugin_api::{Ended, Error, ErrorKind, ExecOutcome, ExecRequest};

use super::args::seconds;
use super::call::{FAILED, Io, Sink, failed, on_terminal, undelivered};
use super::failure::Failure;
use super::print::{Out, say};
use super::shell_input::{Input, Told};
use super::shell_prompt::Place;
use super::shell_signals::{Signals, leave};
use crate::environments::idle::{Idle, Watch};
use crate::environments::{Environments, SharedIo, terminal};
use crate::exec::Report;
use crate::exec::clean::Options as Clean;
use crate::processes::Processes;
use crate::registry::Entry;
use crate::world::{Options, World};

/// How long a person's command may take: they end it themselves. An editor is open for days.
const PERSONS_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long finding out where the session stands may take: one that begins reads its login files then.
const LOOK_LIMIT: Duration = Duration::from_secs(60);

/// More than any path has, in bytes.
const LONGEST_PATH: u32 = 64 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "Ctrl-C interrupts the command; Ctrl-D, or `exit` by itself, leaves. A line that begins with a space is not kept in\n\
    the history. Without a terminal, commands are read from standard input, and there is no prompt.\n\n\
    Examples:\n  hostel shell\n  hostel shell --backend acmebox --task build\n  \
    printf 'cd /\\npwd\\n' | hostel shell\n\n\
    Exit codes: that of the last command; 125 Hostel failed, 128+N ended by signal N, 2 wrong usage"
)]
pub(super) struct Shell {
    /// Use this backend instead of `terminal.backend`
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Name the session whose directory and variables are kept
    #[arg(long, value_name = "NAME", default_value = "default")]
    task: String,
    /// Give commands no terminal: they read nothing, and control characters are escaped
    #[arg(long)]
    no_pty: bool,
    /// Kill each command after this many seconds (otherwise: at a terminal never, elsewhere after `terminal.timeout`)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

/// Runs commands until there are no more, and returns the exit code.
pub(super) fn run(arguments: Shell) -> u8 {
    open(arguments).unwrap_or_else(|failure| {
        failure.print();
        FAILED
    })
}

fn open(arguments: Shell) -> Result<u8, Failure> {
    let world = World::open(Options { home: None, backend: arguments.backend })?;
    let entry = world.selected()?;
    for remark in &world.remarks {
        say("warning", remark);
    }
    let is_person = io::stdin().is_terminal() && io::stdout().is_terminal();
    let limit = match arguments.timeout {
        Some(limit) => limit,
        None if is_person => PERSONS_LIMIT,
        None => world.config.seconds("terminal.timeout")?,
    };
    let lifetime = world.config.seconds("terminal.lifetime_seconds")?;
    let failed = |error: io::Error| Failure::new(format!("failed to start the shell: {error}"));
    let mut input = if is_person { Input::person(&world.home).map_err(failed)? } else { Input::Script };
    let environments = Arc::new(Environments::default());
    let background = Box::new(Processes::new(world.home.clone()));
    let idle = Idle::watch(&environments, background, lifetime).map_err(failed)?;
    // Made before anything is asked for, so that whoever cannot use it learns of it first.
    environments.get(&world, entry, &arguments.task)?;
    let signals = Signals::hear(is_person, leave(&environments)).map_err(failed)?;
    let place = Place { backend: entry.name().to_owned(), task: arguments.task, ..Place::default() };
    let mut session = Session {
        world: &world,
        entry,
        environments: &environments,
        idle: &idle,
        signals: &signals,
        limit,
        is_person,
        pty: is_person && !arguments.no_pty,
        place,
        code: 0,
    };
    let code = session.run(&mut input);
    signals.over();
    for line in environments.close() {
        say("warning", &line);
    }
    Ok(code)
}

/// One shell.
struct Session<'a> {
    world: &'a World,
    entry: &'a Entry,
    environments: &'a Environments,
    idle: &'a Watch,
    signals: &'a Signals,
    limit: Duration,
    is_person: bool,
    /// Whether commands get a terminal.
    pty: bool,
    place: Place,
    /// The exit code of the last command.
    code: u8,
}

impl Session<'_> {
    /// Runs all commands. Returns the exit code of the shell.
    fn run(&mut self, input: &mut Input) -> u8 {
        if self.is_person
            && let Err(error) = self.look_around()
        {
            Failure::from(error).print();
        }
        loop {
            if let Some(code) = self.signals.waiting() {
                return code;
            }
            self.idle.made();
            let command = match input.next(&self.place.prompt(self.code)) {
                Ok(Told::Command(command)) => command,
                Ok(Told::Nothing) => continue,
                Ok(Told::End) => return self.code,
                Err(error) => {
                    say("error", &format!("failed to read a command: {error}"));
                    return FAILED;
                }
            };
            if let Some(code) = exits(&command, self.code).or_else(|| self.command(&command)) {
                return code;
            }
        }
    }

    /// Finds out what the prompt shows.
    fn look_around(&mut self) -> Result<(), Error> {
        let io = Arc::new(Io::new(
            LOOK_LIMIT,
            Sink::new(self.world, Some(LONGEST_PATH), false)?,
            Clean::default(),
        )?);
        self.signals.running(&io);
        let shared: SharedIo = Arc::<Io>::clone(&io);
        let request = ExecRequest::new("printf '%s' \"$HOME\"");
        let outcome = self.environments.execute(self.world, self.entry, &self.place.task, request, &shared);
        let mut report = Report::new(&self.place.task);
        io.finish(&mut report, true);
        let outcome = outcome?;
        for warning in &outcome.warnings {
            say("warning", warning);
        }
        self.place.cwd = outcome.cwd;
        self.place.home = Some(report.output).filter(|home| home.starts_with('/') && !home.contains('\n'));
        Ok(())
    }

    /// Runs one command and says what came of it. Returns the exit code if it was the last one.
    fn command(&mut self, command: &str) -> Option<u8> {
        let command = &told_of(command, self.code);
        let mut ran = self.call(command);
        if let Err(error) = &ran
            && self.pty
            && error.kind() == ErrorKind::UNSUPPORTED
            && !error.may_have_started()
        {
            self.pty = false;
            let name = self.entry.name();
            say(
                "note",
                &format!("backend `{name}` has no terminals; commands run without, and read nothing"),
            );
            ran = self.call(command);
        }
        let (outcome, lost) = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.code = failed(&error);
                Failure::from(error).print();
                return None;
            }
        };
        self.code = u8::try_from(outcome.exit_code).unwrap_or(FAILED);
        if self.is_person && outcome.exit_code == ExecOutcome::interrupted().exit_code {
            // Its terminal has shown a `^C`, and nothing after that.
            let _ = Out::stdout().line("");
        }
        if outcome.ended == Ended::TIMEOUT {
            say("note", &format!("the command was ended at its limit of {} s", self.limit.as_secs_f64()));
        }
        for warning in &outcome.warnings {
            say("warning", warning);
        }
        self.place.cwd = outcome.cwd.or(self.place.cwd.take());
        // There is nobody to run another one for.
        lost.map(|error| undelivered(&error))
    }

    /// Makes the call of one command. Returns also why some of its output was lost.
    fn call(&self, command: &str) -> Result<(ExecOutcome, Option<io::Error>), Error> {
        let Self { world, entry, environments, .. } = self;
        let task = &self.place.task;
        let io = Arc::new(Io::new(self.limit, Sink::new(world, None, self.pty)?, Clean::default())?);
        self.signals.running(&io);
        let shared: SharedIo = Arc::<Io>::clone(&io);
        let request = ExecRequest::new(command);
        let outcome = if self.pty {
            on_terminal(|on| terminal::execute(environments, world, entry, task, request, &shared, on), false)
        } else {
            environments.execute(world, entry, task, request, &shared)
        };
        let killed = [Ended::TIMEOUT, Ended::INTERRUPTED];
        let by_itself = outcome.as_ref().is_ok_and(|outcome| !killed.contains(&outcome.ended));
        let lost = io.finish(&mut Report::new(task), by_itself);
        if io.is_mid_line() && io::stdout().is_terminal() {
            // The prompt would be drawn over it.
            let _ = Out::stdout().bytes(b"\n");
        }
        Ok((outcome?, lost))
    }
}

/// Returns a command before which the last one's exit code is `last`, if it asks for that: each runs in a shell of its own.
fn told_of(command: &str, last: u8) -> String {
    let asks = ["$?", "${?"].iter().any(|word| command.contains(word));
    if asks && last != 0 { format!("(exit {last}); {command}") } else { command.to_owned() }
}

/// Returns the exit code of the shell if `command` leaves it: the one that it names, or else `last`.
fn exits(command: &str, last: u8) -> Option<u8> {
    let mut words = command.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("exit"), None, None) => Some(last),
        (Some("exit"), Some(code), None) => code.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exit_code_is_told_to_whoever_asks() {
        assert_eq!(told_of("echo $?", 3), "(exit 3); echo $?");
        assert_eq!(told_of("echo ${?}", 130), "(exit 130); echo ${?}");
        assert_eq!(told_of("echo $?", 0), "echo $?");
        assert_eq!(told_of("ls", 3), "ls");
    }

    #[test]
    fn only_exit_by_itself_leaves() {
        assert_eq!(exits(" exit ", 7), Some(7));
        assert_eq!(exits("exit 3", 7), Some(3));
        for command in ["exit; ls", "exit x", "exit 300", "exit 1 2", "exited", "(exit 3)", ""] {
            assert_eq!(exits(command, 7), None, "{command}");
        }
    }
}
