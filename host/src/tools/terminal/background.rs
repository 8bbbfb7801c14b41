//! A command that is not waited for.

use std::time::Duration;

use hostel_plugin_api::ErrorKind;

use super::result::Outcome;
use crate::exec::Size;
use crate::exec::exit_code_of;
use crate::processes::{Lifetime, ProcessError, StartRequest, Started};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// A command, and how it is to be run.
#[derive(Debug, Default)]
pub(super) struct Background<'a> {
    pub(super) command: &'a str,
    pub(super) workdir: Option<&'a str>,
    pub(super) pty: bool,
    pub(super) stdin: bool,
    pub(super) notify: bool,
    pub(super) watch: Vec<String>,
    /// It is ended after this time.
    pub(super) limit: Option<Duration>,
}

impl Background<'_> {
    /// Starts the command, unless the caller gives up before it has begun.
    pub(super) fn start(self, session: &Session, call: &Call) -> Outcome {
        if call.is_cancelled() {
            let failure = Failure::new("the call was cancelled before the process began");
            return Outcome::failed("error", failure);
        }
        let lease_s = self.limit.map(|limit| limit.as_secs_f64());
        let request = StartRequest {
            command: self.command.to_owned(),
            backend: Some(session.entry().name().to_owned()),
            task: session.task().to_owned(),
            cwd: self.workdir.map(str::to_owned),
            env: Vec::new(),
            stdin: self.stdin,
            pty: self.pty.then(|| Size::default().into()),
            lifetime: if lease_s.is_some() { Lifetime::Lease } else { Lifetime::Task },
            lease_s,
            notify: self.notify,
            watch: self.watch,
        };
        match session.processes().start_unless(&request, call.cancel_fd()) {
            Ok(started) => told(started),
            Err(error) => {
                let mut outcome = Outcome::failed("error", refused(&error));
                if let ProcessError::Start(error) = &error {
                    outcome.exit_code = exit_code_of(error).unwrap_or(outcome.exit_code);
                }
                outcome
            }
        }
    }
}

fn told(started: Started) -> Outcome {
    let Started { record, warnings, .. } = started;
    Outcome {
        output: format!("started in the background as `{}`", record.id),
        session_id: Some(record.id.to_string()),
        pid: Some(record.keeper.pid),
        notify_on_complete: record.notify,
        watch_patterns: record.watch,
        warnings,
        ..Outcome::default()
    }
}

fn refused(error: &ProcessError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        // What is said to people is of no use to an agent.
        ProcessError::Start(error) if error.kind() == ErrorKind::QUOTA => {
            failure.with_hint("see what runs by `process` with the action `list`, and end what is not needed")
        }
        _ => match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        },
    }
}
