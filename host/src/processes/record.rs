//! What is known of one background process.
//!
//! Whoever asks for it later may be another program, started after this one has ended, so all of it is in one file that is
//! replaced whole. Variables and input are not there: they may be secrets.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecOutcome};
use serde::{Deserialize, Serialize};

use super::id::ProcessId;
use crate::exec::Size;

/// Where a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has not ended.
    Running,
    /// It ended by itself.
    Exited,
    /// It was ended by one of ours.
    Killed,
    /// What became of it is unknown.
    Lost,
    /// It was not started after all.
    Failed,
}

impl Status {
    /// Returns the name that machine-readable output uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

/// What a process does not outlive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Its task: it ends when the task's environment is cleaned up.
    #[default]
    Task,
    /// The program that started it.
    Host,
    /// A time that can be prolonged.
    Lease,
    /// Nothing: it runs until somebody ends it.
    Detached,
}

/// Who ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Somebody who asked for just that.
    Kill,
    /// The end of the program that started it.
    Lifetime,
    /// The end of its lease.
    Lease,
    /// The cleanup of its task.
    Cleanup,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl From<Size> for PtySize {
    fn from(size: Size) -> Self {
        Self { rows: size.rows, columns: size.columns }
    }
}

impl From<PtySize> for Size {
    fn from(size: PtySize) -> Self {
        Self { rows: size.rows, columns: size.columns }
    }
}

/// A process's keeper, by number and start, since numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Its process id.
    pub pid: u32,
    /// When it was started, in the kernel's ticks since boot.
    pub started: u64,
}

impl Keeper {
    /// Names this process.
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        Self { pid, started: started(pid).unwrap_or(0) }
    }

    /// Returns whether it runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// Returns when a process was started: field 22 of `man 5 proc_pid_stat`.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Why a process has no exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordError {
    /// What sort of failure.
    pub kind: String,
    /// One line.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl From<&Error> for RecordError {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind().as_str().to_owned(),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// What is known of one background process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: ProcessId,
    /// Shell text.
    pub command: String,
    /// The backend that runs it.
    pub backend: String,
    /// The task in whose environment it runs.
    pub task: String,
    /// The directory in which it was started.
    pub cwd: Option<String>,
    /// The size of its terminal, if it has one.
    pub pty: Option<PtySize>,
    /// Whether it can be written to.
    pub stdin: bool,
    /// When it was started, in seconds since 1970.
    pub started_at: f64,
    /// What it does not outlive.
    pub lifetime: Lifetime,
    /// Seconds that a renewal of its lease gives.
    pub lease_s: Option<f64>,
    /// When its lease ends, in seconds since 1970.
    pub lease_until: Option<f64>,
    /// The process of ours that looks after it.
    pub keeper: Keeper,
    /// What its processes on this machine carry as `HOSTEL_CALL`.
    pub call_id: String,
    /// Where it stands.
    pub status: Status,
    /// Its exit code, once it has ended.
    pub exit_code: Option<i32>,
    /// The number of the signal that killed it.
    pub signal: Option<i32>,
    /// How its backend says that it ended.
    pub ended: Option<String>,
    /// When it ended, in seconds since 1970.
    pub ended_at: Option<f64>,
    /// `exited`, `signal`, `killed`, `lost` and the like.
    pub completion_reason: Option<String>,
    /// Who ended it, if one of ours did.
    pub termination_source: Option<Source>,
    /// Why there is no exit code.
    pub error: Option<RecordError>,
    /// What the user should know, a line each.
    pub warnings: Vec<String>,
    /// Whether its end is to be told.
    pub notify: bool,
    /// Texts in its output that are to be told.
    pub watch: Vec<String>,
}

impl Record {
    /// Returns whether it has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// Returns for how many seconds it has run, or ran.
    #[must_use]
    pub fn uptime(&self) -> f64 {
        (self.ended_at.unwrap_or_else(now) - self.started_at).max(0.0)
    }

    /// Writes down how it ended.
    pub(super) fn finish(&mut self, outcome: &Result<ExecOutcome, Error>, killed_by: Option<Source>) {
        self.ended_at = Some(now());
        self.termination_source = killed_by;
        let reason = match outcome {
            Ok(outcome) => {
                self.exit_code = Some(outcome.exit_code);
                self.signal = outcome.signal;
                self.status = Status::Exited;
                // Some were told when it was looked where it would run.
                let known = std::mem::take(&mut self.warnings);
                let new = outcome.warnings.iter().filter(|line| !known.contains(line)).cloned();
                self.warnings = known.iter().cloned().chain(new).collect();
                outcome.ended.as_str()
            }
            Err(error) => {
                self.error = Some(error.into());
                self.status = if error.may_have_started() { Status::Lost } else { Status::Failed };
                if error.may_have_started() { Ended::LOST.as_str() } else { "failed" }
            }
        };
        self.ended = Some(reason.to_owned());
        // A call that was taken back before it began is an error to the caller, and what was wanted here.
        let taken_back = outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::CANCELLED);
        if killed_by.is_some() && (outcome.is_ok() || taken_back) {
            self.status = Status::Killed;
        }
        let killed = self.status == Status::Killed;
        self.completion_reason = Some(if killed { "killed" } else { reason }.to_owned());
    }

    /// Writes down that its keeper has died.
    pub(super) fn lose(&mut self) {
        let message = "the process that looked after it has ended";
        let error = Error::new(ErrorKind::LOST, message)
            .with_hint("what was left of it on this machine was killed; start it again");
        self.finish(&Err(error), None);
    }
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> f64 {
    UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64())
}

/// Returns when a time that begins now and takes so long is over, in seconds since 1970.
pub(super) fn after(time: Duration) -> f64 {
    now() + time.as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sample() -> Record {
        Record {
            id: ProcessId::random().unwrap(),
            command: "sleep 1".into(),
            backend: "local".into(),
            task: "default".into(),
            cwd: None,
            pty: None,
            stdin: false,
            started_at: now(),
            lifetime: Lifetime::Task,
            lease_s: None,
            lease_until: None,
            keeper: Keeper::this(),
            call_id: "call".into(),
            status: Status::Running,
            exit_code: None,
            signal: None,
            ended: None,
            ended_at: None,
            completion_reason: None,
            termination_source: None,
            error: None,
            warnings: Vec::new(),
            notify: false,
            watch: Vec::new(),
        }
    }

    fn finished(outcome: &Result<ExecOutcome, Error>, by: Option<Source>) -> Record {
        let mut record = sample();
        record.finish(outcome, by);
        record
    }

    #[test]
    fn the_end_is_told_honestly() {
        let told = |record: &Record| {
            (record.status, record.exit_code, record.signal, record.completion_reason.clone().unwrap())
        };
        assert_eq!(
            told(&finished(&Ok(ExecOutcome::exited(9)), None)),
            (Status::Exited, Some(9), None, "exited".into())
        );
        assert_eq!(
            told(&finished(&Ok(ExecOutcome::signalled(11)), None)),
            (Status::Exited, Some(139), Some(11), "signal".into())
        );
        assert_eq!(
            told(&finished(&Ok(ExecOutcome::signalled(15)), Some(Source::Lease))),
            (Status::Killed, Some(143), Some(15), "killed".into())
        );
        let gone = Err(Error::new(ErrorKind::CRASHED, "gone"));
        assert_eq!(
            told(&finished(&gone, Some(Source::Kill))),
            (Status::Lost, None, None, "lost".into()),
            "nobody knows whether the kill came through"
        );
        let refused = Err(Error::new(ErrorKind::CANCELLED, "taken back").not_started());
        assert_eq!(finished(&refused, Some(Source::Kill)).status, Status::Killed);
        assert_eq!(finished(&refused, None).status, Status::Failed);
    }

    #[test]
    fn a_keeper_is_known_by_its_start_too() {
        let keeper = Keeper::this();
        assert!(keeper.is_alive());
        assert!(!Keeper { started: keeper.started + 1, ..keeper }.is_alive());
    }

    #[test]
    fn the_file_form_survives_the_round_trip() {
        let record = finished(&Ok(ExecOutcome::exited(0)), Some(Source::Cleanup));
        let text = serde_json::to_string(&record).unwrap();
        let again: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
