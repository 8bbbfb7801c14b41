//! Does what the tool `process` is asked for.

use std::time::Duration;

use super::input::{Action, Input};
use super::log::show;
use super::result::Reply;
use super::seen::{Seen, source};
use super::watching::Watching;
use crate::processes::{KillStatus, ProcessError, Processes, Status, WaitStatus, WaitView};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::told::exit_code_of;
use crate::tools::tool::Failure;

/// What an agent is told of a process that was killed: a signal, as a negative number.
const KILLED: i32 = -15;

/// Why something could not be done.
pub(super) enum Trouble {
    /// What was asked for cannot be meant.
    Wrong(Failure),
    /// It cannot be done with the process.
    Process(ProcessError),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Wrong(failure)
    }
}

impl From<ProcessError> for Trouble {
    fn from(error: ProcessError) -> Self {
        Self::Process(error)
    }
}

/// One call.
pub(super) struct Asked<'a> {
    pub(super) session: &'a Session,
    pub(super) input: &'a Input,
    pub(super) call: &'a Call,
    pub(super) shown: &'a Shown,
}

impl Asked<'_> {
    /// Does it.
    pub(super) fn answer(&self) -> Result<Reply, Trouble> {
        match self.input.action {
            Action::List => self.list(),
            Action::Notices => Ok(Reply::default()),
            action => self.act(action, self.input.id()?),
        }
    }

    fn list(&self) -> Result<Reply, Trouble> {
        let views = self.processes().list()?;
        let own = views.into_iter().filter(|view| view.task == self.session.task());
        let seen = own.map(|view| Seen::of(view, self.shown)).collect();
        Ok(Reply { processes: Some(seen), ..Reply::default() })
    }

    /// Does it with one process, which must be this task's.
    fn act(&self, action: Action, id: &str) -> Result<Reply, Trouble> {
        let processes = self.processes();
        if processes.get(id)?.task != self.session.task() {
            return Err(ProcessError::NotFound(id.to_owned()).into());
        }
        let done = || Seen::acted("ok", id.to_owned());
        let ok = || Reply::from(done());
        Ok(match action {
            Action::List | Action::Notices => Reply::default(),
            Action::Poll => Seen::of(processes.poll(id)?, self.shown).into(),
            Action::Log => {
                let lines = self.input.lines();
                let most = self.whole("tool_output.max_bytes")?;
                show(processes.log(id, lines)?, lines, most, self.shown)
            }
            Action::Wait => self.wait(id)?,
            Action::Kill => self.kill(id)?,
            Action::Write | Action::Submit => {
                let mut data = self.input.data()?.as_bytes().to_vec();
                if action == Action::Submit {
                    data.push(b'\n');
                }
                Reply { bytes_written: Some(processes.write(id, &data)?), ..ok() }
            }
            Action::Close => {
                processes.close_stdin(id)?;
                ok()
            }
            Action::Resize => {
                processes.resize(id, self.input.size()?)?;
                ok()
            }
            Action::Signal => {
                let reached = processes.signal(id, self.input.signal()?)?;
                Reply { processes_signalled: Some(reached), ..ok() }
            }
            Action::Renew => {
                let lease_until = Some(processes.renew(id, self.input.lease)?);
                Seen { lease_until, ..done() }.into()
            }
        })
    }

    fn wait(&self, id: &str) -> Result<Reply, Trouble> {
        let most = self.seconds("terminal.timeout")?;
        let (patience, is_less) = self.input.patience(most)?;
        let watching = Watching::start(self.processes(), id, self.call, self.shown.secrets());
        let waited = self.processes().wait(id, Some(patience), Some(self.call.cancel_fd()));
        if let Some(watching) = watching {
            watching.finish(waited.as_ref().is_ok_and(|view| view.status == WaitStatus::Exited));
        }
        let view = waited?;
        let killed = view.completion_reason.as_deref() == Some("killed");
        let status = match view.status {
            WaitStatus::Exited => "exited",
            WaitStatus::Timeout => "timeout",
            WaitStatus::Interrupted => "interrupted",
        };
        let timeout_note = (is_less && view.status == WaitStatus::Timeout).then(|| {
            let most = most.as_secs_f64();
            format!("waited {most} s, which is the most that a call waits (`terminal.timeout`); wait again")
        });
        let WaitView { session_id, output, exit_code, signal, completion_reason, error, .. } = view;
        let standing = match view.status {
            WaitStatus::Exited if killed => Status::Killed,
            WaitStatus::Exited => Status::Exited,
            WaitStatus::Timeout | WaitStatus::Interrupted => Status::Running,
        };
        let seen = Seen {
            exit_code: exit_code_of(standing, exit_code),
            signal,
            completion_reason,
            termination_source: view.termination_source.map(source),
            reason: error.map(|error| self.shown.text(&error.message)),
            ..Seen::acted(status, session_id.to_string())
        };
        Ok(Reply { seen, output: Some(self.shown.output(&output)), timeout_note, ..Reply::default() })
    }

    fn kill(&self, id: &str) -> Result<Reply, Trouble> {
        let view = self.processes().kill(id)?;
        let (status, exit_code) = match view.status {
            KillStatus::Killed => ("killed", Some(KILLED)),
            KillStatus::AlreadyExited => {
                let record = self.processes().get(id)?;
                ("already_exited", exit_code_of(record.status, view.exit_code))
            }
        };
        Ok(Seen { exit_code, signal: view.signal, ..Seen::acted(status, view.session_id.to_string()) }.into())
    }

    fn processes(&self) -> &Processes {
        self.session.processes()
    }

    fn seconds(&self, key: &str) -> Result<Duration, Failure> {
        self.session.world().config.seconds(key).map_err(|error| Failure::new(error.to_string()))
    }

    fn whole(&self, key: &str) -> Result<usize, Failure> {
        let whole =
            self.session.world().config.whole(key).map_err(|error| Failure::new(error.to_string()))?;
        Ok(usize::try_from(whole).unwrap_or(usize::MAX))
    }
}
