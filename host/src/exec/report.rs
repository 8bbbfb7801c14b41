//! What `hostel exec --json` prints.

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecOutcome};
use serde::Serialize;

use super::collect::Kept;
use crate::signals::signal_name;

/// The exit code of a command whose working directory is missing: it cannot be executed there.
const NO_DIRECTORY: i32 = 126;

/// Returns the exit code that a failure of Hostel's has as if it were a shell's, if there is one.
#[must_use]
pub fn exit_code_of(error: &Error) -> Option<i32> {
    (error.kind() == ErrorKind::BAD_CWD).then_some(NO_DIRECTORY)
}

/// One object for one command.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Standard output and standard error, merged.
    pub output: String,
    /// The command's exit code; none where Hostel itself failed, but for a working directory that is missing: 126.
    pub exit_code: Option<i32>,
    /// `exited`, `signal`, `timeout`, `interrupted` or `lost`; none where nothing was started.
    pub ended: Option<&'static str>,
    /// The name of the signal that killed the command.
    pub signal: Option<String>,
    /// Where the session stands now.
    pub cwd: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Bytes that were printed.
    pub output_bytes: u64,
    /// Bytes that are not in `output`.
    pub omitted_bytes: u64,
    /// Where the whole output is, if `output` is not.
    pub full_output_path: Option<String>,
    /// The backend that ran it.
    pub backend: Option<String>,
    /// The task.
    pub task: String,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// `sudo` refused the password.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sudo_auth_failed: bool,
    /// The password that was typed has been forgotten.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sudo_cache_cleared: bool,
    /// Why there is no exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportError>,
}

/// A failure of Hostel itself.
#[derive(Debug, Clone, Serialize)]
pub struct ReportError {
    /// What sort of failure.
    pub kind: String,
    /// One line.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Report {
    /// Makes the report of a command on `task` of which nothing is known yet.
    #[must_use]
    pub fn new(task: &str) -> Self {
        Self {
            output: String::new(),
            exit_code: None,
            ended: None,
            signal: None,
            cwd: None,
            duration_ms: 0,
            output_bytes: 0,
            omitted_bytes: 0,
            full_output_path: None,
            backend: None,
            task: task.to_owned(),
            warnings: Vec::new(),
            sudo_auth_failed: false,
            sudo_cache_cleared: false,
            error: None,
        }
    }

    /// Adds what was printed.
    pub fn printed(&mut self, kept: Kept) {
        self.output = kept.text;
        self.output_bytes = kept.total;
        self.omitted_bytes = kept.omitted;
        self.full_output_path = kept.path.map(|path| path.to_string_lossy().into_owned());
        self.warnings.extend(kept.warnings);
    }

    /// Adds how the command ended.
    pub fn ended(&mut self, outcome: &ExecOutcome) {
        let said = |key: &str| outcome.extra.get(key).is_some_and(|value| value == true);
        self.sudo_auth_failed = said("sudo_auth_failed");
        self.sudo_cache_cleared = said("sudo_cache_cleared");
        self.exit_code = Some(outcome.exit_code);
        self.ended = Some(outcome.ended.as_str());
        self.signal = outcome.signal.map(signal_name);
        self.cwd.clone_from(&outcome.cwd);
        self.warnings.extend(outcome.warnings.iter().cloned());
    }

    /// Adds why there is no exit code.
    pub fn failed(&mut self, error: &Error) {
        self.exit_code = exit_code_of(error);
        self.ended = error.may_have_started().then_some(Ended::LOST.as_str());
        self.error = Some(ReportError {
            kind: error.kind().as_str().to_owned(),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        });
    }
}
