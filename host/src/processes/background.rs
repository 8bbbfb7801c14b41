//! What the cleanup of an environment needs to know of background processes.

use hostel_plugin_api::{Error, ErrorKind};

use super::error::ProcessError;
use super::manager::Processes;
use super::record::Source;
use super::view::Fate;
use crate::environments::cleanup::{Background, Stopped};

impl Background for Processes {
    /// Where the processes cannot be listed, one may be running.
    fn live(&self, backend: &str, task: &str) -> usize {
        self.live_in(backend, task).unwrap_or(1)
    }

    fn end(&self, backend: &str, task: &str) -> Result<Stopped, Error> {
        let mut stopped = Stopped::default();
        for process in self.end_task(backend, task, Source::Cleanup)? {
            let id = process.session_id.to_string();
            match process.fate {
                Fate::Ended => stopped.ended.push(id),
                Fate::Left => stopped.left.push(id),
                Fate::AlreadyEnded => {}
            }
        }
        Ok(stopped)
    }
}

impl From<ProcessError> for Error {
    fn from(error: ProcessError) -> Self {
        let kind = match &error {
            ProcessError::Start(error) => return error.clone(),
            ProcessError::NotFound(_) | ProcessError::Ended(_) => ErrorKind::NOT_FOUND,
            ProcessError::Silent(_) => ErrorKind::TIMEOUT,
            ProcessError::Refused(_) => ErrorKind::INVALID_REQUEST,
            ProcessError::Io { .. } => ErrorKind::IO,
        };
        let made = Self::new(kind, error.to_string()).not_started();
        match error.hint() {
            Some(hint) => made.with_hint(hint),
            None => made,
        }
    }
}
