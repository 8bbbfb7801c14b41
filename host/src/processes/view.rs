//! What is shown of background processes, to programs and to agents.

use serde::Serialize;

use super::id::ProcessId;
use super::record::{Lifetime, Record, RecordError, Source, Status};
use super::text::first;

/// The most characters of a command in a list.
const COMMAND: usize = 200;

/// One process.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// Its name.
    pub session_id: ProcessId,
    /// Its command, in a list only the beginning of it.
    pub command: String,
    /// Where it stands.
    pub status: Status,
    /// The number of its keeper, which ends it on SIGTERM.
    pub pid: u32,
    /// The backend that runs it.
    pub backend: String,
    /// The task in whose environment it runs.
    pub task: String,
    /// The directory in which it was started.
    pub cwd: Option<String>,
    /// When it was started, in seconds since 1970.
    pub started_at: f64,
    /// When it ended, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<f64>,
    /// For how many seconds it has run, or ran.
    pub uptime_seconds: f64,
    /// What it does not outlive.
    pub lifetime: Lifetime,
    /// The end of its output.
    pub output_preview: String,
    /// Its exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The name of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// `exited`, `signal`, `killed`, `lost` and the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_reason: Option<String>,
    /// Who ended it, if one of ours did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_source: Option<Source>,
    /// When its lease ends, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<f64>,
    /// Texts in its output that are told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watch_patterns: Vec<String>,
    /// Whether its end is told.
    #[serde(skip_serializing_if = "is_false")]
    pub notify_on_complete: bool,
    /// Whether it runs until somebody ends it.
    #[serde(skip_serializing_if = "is_false")]
    pub detached: bool,
    /// Why there is no exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// What the user should know, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl View {
    /// Shows a process, with the end of its output.
    pub(super) fn new(record: Record, output_preview: String) -> Self {
        Self {
            uptime_seconds: record.uptime(),
            session_id: record.id,
            command: record.command,
            status: record.status,
            pid: record.keeper.pid,
            backend: record.backend,
            task: record.task,
            cwd: record.cwd,
            started_at: record.started_at,
            ended_at: record.ended_at,
            lifetime: record.lifetime,
            output_preview,
            exit_code: record.exit_code,
            signal: record.signal.map(crate::signals::signal_name),
            completion_reason: record.completion_reason,
            termination_source: record.termination_source,
            lease_until: record.lease_until,
            watch_patterns: record.watch,
            notify_on_complete: record.notify,
            detached: record.lifetime == Lifetime::Detached,
            error: record.error,
            warnings: record.warnings,
        }
    }

    /// Shortens the command for a list.
    pub(super) fn shortened(mut self) -> Self {
        self.command = first(&self.command, COMMAND).to_owned();
        self
    }
}

/// Some lines of a process's output.
#[derive(Debug, Clone, Serialize)]
pub struct LogView {
    /// The process.
    pub session_id: ProcessId,
    /// Where it stands.
    pub status: Status,
    /// The lines as text; a character that is not all there yet is left for the next time.
    pub output: String,
    /// The lines, byte by byte.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// The byte of the whole output that follows `bytes`.
    #[serde(skip)]
    pub end_bytes: u64,
    /// How many lines it has printed.
    pub total_lines: u64,
    /// How many of them these are.
    pub showing: String,
    /// The byte of the whole output that follows what `output` shows.
    pub next_offset_bytes: u64,
    /// How many bytes at the beginning of the output are not kept any more.
    pub dropped_bytes: u64,
}

/// Some bytes of a process's output.
#[derive(Debug, Clone, Serialize)]
pub struct BytesView {
    /// The process.
    pub session_id: ProcessId,
    /// Where it stands.
    pub status: Status,
    /// The bytes as text; a character that is not all there yet is left for the next time.
    pub output: String,
    /// The bytes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// The byte of the whole output at which they begin. It is larger than what was asked for if that is not kept any more.
    pub offset_bytes: u64,
    /// The byte that follows what `output` shows.
    pub next_offset_bytes: u64,
    /// How many bytes at the beginning of the output are not kept any more.
    pub dropped_bytes: u64,
}

/// How waiting has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitStatus {
    /// The process has ended.
    Exited,
    /// It has not, and the time is up.
    Timeout,
    /// It has not, and the caller has given up.
    Interrupted,
}

/// What waiting has come to.
#[derive(Debug, Clone, Serialize)]
pub struct WaitView {
    /// How it has ended.
    pub status: WaitStatus,
    /// The process.
    pub session_id: ProcessId,
    /// The end of its output.
    pub output: String,
    /// Its exit code, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The name of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// As [`View::completion_reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_reason: Option<String>,
    /// Who ended it, if one of ours did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_source: Option<Source>,
    /// Why there is no exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
}

/// What killing has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KillStatus {
    /// It was ended.
    Killed,
    /// It had ended before.
    AlreadyExited,
}

/// A process that was to be ended.
#[derive(Debug, Clone, Serialize)]
pub struct KillView {
    /// What came of it.
    pub status: KillStatus,
    /// The process.
    pub session_id: ProcessId,
    /// Its exit code, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The name of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// What became of a process at the end of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was ended.
    Ended,
    /// It had ended before.
    AlreadyEnded,
    /// It does not depend on the task, and runs on.
    Left,
}

/// A process at the end of its task.
#[derive(Debug, Clone, Serialize)]
pub struct TaskEnd {
    /// The process.
    pub session_id: ProcessId,
    /// Its command.
    pub command: String,
    /// What became of it.
    pub fate: Fate,
}
