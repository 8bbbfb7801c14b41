//! The values of the plugin interface as they stand in the JSON frames, under the names that they have there.

use std::time::Duration;

use hostel_plugin_api::{
    CreateEnvironment, DoctorCheck, Ended, ExecOutcome, ExecRequest, Extra, Probe, ProbeStatus, Stdin,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// [`CreateEnvironment`] on its way.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the members are those of `CreateEnvironment`")]
pub struct Creation {
    pub task_id: String,
    pub cwd: Option<String>,
    pub timeout_ms: u64,
    pub image: Option<String>,
    pub host_cwd: Option<String>,
    pub config: Value,
    pub state_dir: Option<String>,
    pub persistent: bool,
    pub strip_env: Vec<String>,
    #[serde(default)]
    pub extra: Extra,
}

impl From<CreateEnvironment> for Creation {
    fn from(request: CreateEnvironment) -> Self {
        Self {
            task_id: request.task_id,
            cwd: request.cwd,
            timeout_ms: u64::try_from(request.timeout.as_millis()).unwrap_or(u64::MAX),
            image: request.image,
            host_cwd: request.host_cwd,
            config: request.config,
            state_dir: request.state_dir,
            persistent: request.persistent,
            strip_env: request.strip_env,
            extra: request.extra,
        }
    }
}

impl From<Creation> for CreateEnvironment {
    fn from(request: Creation) -> Self {
        let mut creation = Self::default();
        creation.task_id = request.task_id;
        creation.cwd = request.cwd;
        creation.timeout = Duration::from_millis(request.timeout_ms);
        creation.image = request.image;
        creation.host_cwd = request.host_cwd;
        creation.config = request.config;
        creation.state_dir = request.state_dir;
        creation.persistent = request.persistent;
        creation.strip_env = request.strip_env;
        creation.extra = request.extra;
        creation
    }
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// There is none.
    Empty,
    /// The data that was sent before the call.
    Data,
    /// The descriptor that came with the call.
    Descriptor,
}

/// [`ExecRequest`] on its way.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the members are those of `ExecRequest`")]
pub struct Execution {
    pub command: String,
    pub cwd: Option<String>,
    pub env: Vec<(String, String)>,
    pub stdin: Input,
    pub call_id: String,
    /// Time left until the deadline, in microseconds.
    pub remaining_us: Option<u64>,
    #[serde(default)]
    pub extra: Extra,
}

impl Execution {
    /// Takes a request apart: what is said of it, and what its command reads.
    pub(super) fn of(request: ExecRequest, remaining: Option<Duration>) -> (Self, Stdin) {
        let ExecRequest { command, cwd, env, stdin, call_id, extra, .. } = request;
        let input = match &stdin {
            Stdin::Empty => Input::Empty,
            Stdin::Bytes(_) => Input::Data,
            Stdin::Fd(_) => Input::Descriptor,
        };
        let remaining_us = remaining.map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX));
        (Self { command, cwd, env, stdin: input, call_id, remaining_us, extra }, stdin)
    }

    pub(super) fn into_request(self, stdin: Stdin) -> ExecRequest {
        let mut request = ExecRequest::new(self.command);
        request.cwd = self.cwd;
        request.env = self.env;
        request.call_id = self.call_id;
        request.extra = self.extra;
        request.stdin = stdin;
        request
    }
}

/// [`ExecOutcome`] on its way.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the members are those of `ExecOutcome`")]
pub struct Outcome {
    pub exit_code: i32,
    pub ended: u32,
    pub signal: Option<i32>,
    pub cwd: Option<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default)]
    pub extra: Extra,
}

impl From<ExecOutcome> for Outcome {
    fn from(outcome: ExecOutcome) -> Self {
        let ExecOutcome { exit_code, ended, signal, cwd, warnings, extra, .. } = outcome;
        Self { exit_code, ended: ended.0, signal, cwd, warnings, extra }
    }
}

impl From<Outcome> for ExecOutcome {
    fn from(outcome: Outcome) -> Self {
        let mut made = Self::exited(outcome.exit_code);
        made.ended = Ended(outcome.ended);
        made.signal = outcome.signal;
        made.cwd = outcome.cwd;
        made.warnings = outcome.warnings;
        made.extra = outcome.extra;
        made
    }
}

/// [`Probe`] on its way.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the members are those of `Probe`")]
pub struct Verdict {
    pub status: u32,
    pub detail: String,
}

impl From<Probe> for Verdict {
    fn from(probe: Probe) -> Self {
        Self { status: probe.status.0, detail: probe.detail }
    }
}

impl From<Verdict> for Probe {
    fn from(verdict: Verdict) -> Self {
        let mut probe = Self::unavailable(verdict.detail);
        probe.status = ProbeStatus(verdict.status);
        probe
    }
}

/// [`DoctorCheck`] on its way.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the members are those of `DoctorCheck`")]
pub struct Check {
    pub ok: bool,
    pub label: String,
    pub detail: String,
}

impl From<DoctorCheck> for Check {
    fn from(check: DoctorCheck) -> Self {
        Self { ok: check.ok, label: check.label, detail: check.detail }
    }
}

impl From<Check> for DoctorCheck {
    fn from(check: Check) -> Self {
        if check.ok { Self::ok(check.label, check.detail) } else { Self::fail(check.label, check.detail) }
    }
}
