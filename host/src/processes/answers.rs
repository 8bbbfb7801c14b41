//! How a keeper answers what it is asked.

use std::time::{Duration, Instant};

use hostel_plugin_api::shell::signal_call;

use super::connection::{Come, Connection, Stage};
use super::control::{Answer, Request};
use super::error::Refusal;
use super::input::Pushed;
use super::keeper::lease_of;
use super::record::{PtySize, after};
use super::serve::Service;

/// How long a write waits while the process reads nothing.
const READING: Duration = Duration::from_secs(2);

/// When a kill that uses no force is answered at the latest.
const ENDING: Duration = Duration::from_secs(2);

/// The most connections that wait for the end at once.
const MOST_WAITING: usize = 512;

impl Service {
    /// Returns how many wait for the end.
    pub(super) fn waiting(&self) -> usize {
        let waits = |connection: &&Connection| matches!(connection.stage, Stage::Waiting(_));
        self.connections.iter().filter(waits).count()
    }

    /// Reads from a connection, and answers if there is something to answer.
    pub(super) fn serve(&mut self, index: usize) {
        let come = self.connections[index].read();
        let answer = match come {
            // The bytes of a write come first.
            Come::Nothing | Come::Question(Request::Write { .. }) => return,
            Come::Write => {
                self.write(index);
                return;
            }
            Come::Question(Request::Wait) if self.waiting() < MOST_WAITING => {
                self.connections[index].stage = Stage::Waiting(None);
                return;
            }
            Come::Question(Request::Wait) => {
                Err(Refusal::new("busy", format!("{MOST_WAITING} others wait for the end of this process")))
            }
            Come::Question(Request::Kill { source }) => {
                self.kill(source);
                let patient = self.parts.grace.is_zero().then(|| Instant::now() + ENDING);
                self.connections[index].stage = Stage::Waiting(patient);
                return;
            }
            Come::Question(Request::CloseStdin) => self.close_stdin(),
            Come::Question(Request::Resize(size)) => self.resize(size),
            Come::Question(Request::Signal { signal }) => self.signal(signal),
            Come::Question(Request::Renew { lease_s }) => self.renew(lease_s),
        };
        self.connections[index].answer(&answer.unwrap_or_else(Answer::Refused));
    }

    /// Queues what a connection has brought, or lets it wait for room.
    fn write(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(input) = &self.parts.input else { return connection.refuse(no_input()) };
        match input.push(&connection.bytes) {
            Pushed::Queued => connection.answer(&Answer::Done),
            Pushed::Closed => {
                connection.refuse(Refusal::new("stdin_closed", "the process reads no input any more"));
            }
            Pushed::Full => {
                // What it has waited for so far counts.
                if !matches!(connection.stage, Stage::Parked(_)) {
                    connection.stage = Stage::Parked(Instant::now());
                }
            }
        }
    }

    /// Tries the writes again that wait for room, and gives up those for which nobody makes any; answers kills that have no end.
    pub(super) fn retry_writes(&mut self) {
        let now = Instant::now();
        for index in 0..self.connections.len() {
            if matches!(self.connections[index].stage, Stage::Parked(_)) {
                self.write(index);
            }
            let due = self.due(index).is_some_and(|at| now >= at);
            let connection = &mut self.connections[index];
            match connection.stage {
                Stage::Parked(_) if due => {
                    let refusal = Refusal::new("stdin_full", "the process does not read its input");
                    connection.refuse(refusal.with_hint("1 MiB waits for it; none of this was added"));
                }
                Stage::Waiting(Some(_)) if due => {
                    let refusal = Refusal::new("still_running", "the process has not ended on SIGTERM");
                    connection.refuse(refusal.with_hint(
                        "`terminal.daemon_term_grace_seconds` is 0, so no force is used; \
                         `hostel process signal ID KILL` does",
                    ));
                }
                _ => {}
            }
        }
    }

    /// Returns when a connection must be answered at the latest.
    pub(super) fn next_answer(&self) -> Option<Instant> {
        (0..self.connections.len()).filter_map(|index| self.due(index)).min()
    }

    fn due(&self, index: usize) -> Option<Instant> {
        match self.connections[index].stage {
            Stage::Parked(since) => {
                let moved = self.parts.input.as_ref().map_or(since, |input| input.moved().max(since));
                Some(moved + READING)
            }
            Stage::Waiting(until) => until,
            _ => None,
        }
    }

    fn close_stdin(&self) -> Result<Answer, Refusal> {
        self.parts.input.as_ref().ok_or_else(no_input)?.close();
        Ok(Answer::Done)
    }

    fn resize(&mut self, size: PtySize) -> Result<Answer, Refusal> {
        let Some(terminal) = &self.parts.terminal else {
            let refusal = Refusal::new("no_terminal", "the process runs on no terminal");
            return Err(refusal.with_hint("start it with `--pty`"));
        };
        let failed =
            |error: std::io::Error| Refusal::new("io", format!("failed to resize the terminal: {error}"));
        terminal.resize(size.into()).map_err(failed)?;
        self.parts.record.pty = Some(size);
        self.save();
        Ok(Answer::Done)
    }

    fn signal(&self, signal: i32) -> Result<Answer, Refusal> {
        match signal_call(&self.parts.record.call_id, signal) {
            0 => Err(Refusal::new("unreachable", "none of its processes run on this machine")
                .with_hint("`hostel process kill` ends it wherever it runs")),
            processes => Ok(Answer::Signalled { processes }),
        }
    }

    fn renew(&mut self, lease_s: Option<f64>) -> Result<Answer, Refusal> {
        let record = &mut self.parts.record;
        let (Some(_), Some(before)) = (self.parts.lease, record.lease_s) else {
            let refusal = Refusal::new("no_lease", "the process has no lease");
            return Err(refusal.with_hint("it runs until its task ends or somebody ends it"));
        };
        if self.killing.is_some() {
            return Err(Refusal::new("already_exited", "the process is being ended"));
        }
        let seconds = lease_s.unwrap_or(before);
        let lease = lease_of(seconds).map_err(|error| Refusal::new("invalid_request", error.message()))?;
        record.lease_s = Some(seconds);
        record.lease_until = Some(after(lease));
        self.parts.lease = Instant::now().checked_add(lease);
        self.save();
        Ok(Answer::Done)
    }
}

fn no_input() -> Refusal {
    Refusal::new("stdin_closed", "the process reads no input")
        .with_hint("start it with `--stdin`, or with `--pty`")
}
