//! `hostel process logs`.
//!
//! A pipe gets the process's output byte by byte; a person's terminal gets what is safe to show.

use std::io::{self, IsTerminal};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::failure::Failure;
use super::print::{Out, say};
use super::process::fail;
use crate::exec::{Cancel, Screen};
use crate::processes::{Lines, ProcessError, Processes};

/// The most that `--json` shows of the bytes from an offset on, and that is read at once.
const PIECE: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct Logs {
    /// The process
    id: String,
    /// Pass over so many lines (default: show the last ones)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "bytes_from"
    )]
    offset: u64,
    /// Show at most so many lines
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with = "bytes_from")]
    limit: u64,
    /// Go on with what the process prints, until it has ended
    #[arg(long, conflicts_with = "json")]
    follow: bool,
    /// Show everything from this byte of the whole output on
    #[arg(long, value_name = "N")]
    bytes_from: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command, and returns the exit code.
pub(super) fn run(processes: &Processes, logs: &Logs, out: &mut Out) -> Result<u8, Failure> {
    match show(processes, logs, out) {
        Ok(()) => Ok(0),
        Err(Trouble::Process(error)) => fail(error, logs.json, out),
        Err(Trouble::Other(failure)) => Err(failure),
    }
}

/// What can go wrong: a process's trouble has a JSON form, and that of our own output has not.
enum Trouble {
    Process(ProcessError),
    Other(Failure),
}

impl From<ProcessError> for Trouble {
    fn from(error: ProcessError) -> Self {
        Self::Process(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

fn show(processes: &Processes, logs: &Logs, out: &mut Out) -> Result<(), Trouble> {
    let Logs { id, json, .. } = logs;
    let mut screen = Printer::new();
    let lines = Lines { offset: logs.offset, limit: logs.limit };
    let mut position = match logs.bytes_from {
        Some(from) if *json => {
            out.json(&processes.log_bytes(id, from, PIECE)?)?;
            return Ok(());
        }
        Some(from) => from,
        None => {
            let view = processes.log(id, lines)?;
            if *json {
                out.json(&view)?;
                return Ok(());
            }
            if view.end_bytes - view.bytes.len() as u64 == view.dropped_bytes {
                tell_dropped(view.dropped_bytes);
            }
            screen.print(&view.bytes, out)?;
            view.end_bytes
        }
    };
    if logs.follow {
        return follow(processes, id, position, &mut screen, out);
    }
    while logs.bytes_from.is_some() {
        let view = processes.log_bytes(id, position, PIECE)?;
        if view.bytes.is_empty() {
            break;
        }
        tell_dropped(view.offset_bytes.saturating_sub(position));
        position = view.offset_bytes + view.bytes.len() as u64;
        screen.print(&view.bytes, out)?;
    }
    screen.finish(out)?;
    Ok(())
}

fn follow(
    processes: &Processes,
    id: &str,
    from: u64,
    screen: &mut Printer,
    out: &mut Out,
) -> Result<(), Trouble> {
    // A pipe can hold us up in a write, where only the usual effect of a signal helps.
    let cancel = screen.0.is_some().then(cancel).transpose()?;
    let signalled = cancel.as_ref().map(Cancel::as_fd);
    let mut follower = processes.follow(id, from)?;
    while let Some(piece) = follower.next(signalled)? {
        tell_dropped(piece.dropped);
        screen.print(&piece.bytes, out)?;
    }
    screen.finish(out)?;
    if cancel.is_some_and(|cancel| cancel.is_cancelled()) {
        return Err(Trouble::Other(Failure::interrupted()));
    }
    Ok(())
}

fn tell_dropped(bytes: u64) {
    if bytes > 0 {
        say("note", &format!("{bytes} bytes of the output are not kept any more"));
    }
}

/// Returns what the signals that end a program cancel from now on.
pub(super) fn cancel() -> Result<Cancel, Failure> {
    let make = || -> io::Result<Cancel> {
        let cancel = Cancel::new()?;
        cancel.on_signals(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        Ok(cancel)
    };
    make().map_err(|error| Failure::new(format!("failed to prepare for signals: {error}")))
}

/// Makes output safe where a person reads it.
struct Printer(Option<Screen>);

impl Printer {
    fn new() -> Self {
        Self(io::stdout().is_terminal().then(Screen::default))
    }

    fn print(&mut self, bytes: &[u8], out: &mut Out) -> io::Result<()> {
        match &mut self.0 {
            Some(screen) => out.bytes(&screen.show(bytes)),
            None => out.bytes(bytes),
        }
    }

    fn finish(&mut self, out: &mut Out) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |screen| out.bytes(&screen.finish()))
    }
}

/// Returns output as it may be shown on standard output: safe for a person's terminal, unchanged for a pipe.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut safe = Vec::new();
    if io::stdout().is_terminal() {
        let mut screen = Screen::default();
        safe.extend(screen.show(bytes));
        safe.extend(screen.finish());
    } else {
        safe.extend_from_slice(bytes);
    }
    String::from_utf8_lossy(&safe).into_owned()
}
