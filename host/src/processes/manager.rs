//! What can be done with the background processes of a home.
//!
//! Every face does it through here: the command line in a program that ends at once, a server in one that stays. Nothing is
//! kept between two calls, so what any of them did, and that the machine was started again in between, is always seen.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::end_call;

use super::client::{Waited, ask, until_gone};
use super::control::{Answer, LARGEST_WRITE, Request};
use super::error::ProcessError;
use super::folder::Folder;
use super::follow::Follower;
use super::id::ProcessId;
use super::notices::{self, Notice};
use super::record::{PtySize, Record, Source, Status};
use super::settings::Settings;
use super::start::{StartRequest, Started, start};
use super::view::{KillStatus, KillView, View, WaitStatus, WaitView};
use super::{list, output};
use crate::config::Config;
use crate::home::Home;
use crate::signals::signal_name;

/// Characters of output that are shown of one process, in a list, and of one that was waited for.
const PREVIEW: usize = 1000;
const LIST_PREVIEW: usize = 200;
const WAIT_TAIL: usize = 2000;

/// How long a keeper whose process has ended may take to let go of its environment.
pub(super) const LETTING_GO: Duration = Duration::from_secs(20);

/// How often it is tried to wait for a process that neither runs nor has ended.
const TRIES: usize = 3;

/// The background processes of one home.
#[derive(Debug, Clone)]
pub struct Processes {
    pub(super) home: Home,
}

impl Processes {
    /// Speaks of the processes of `home`.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    /// Starts a process, and returns once it runs.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started, or too many run.
    pub fn start(&self, request: &StartRequest) -> Result<Started, ProcessError> {
        start(&self.home, request, None)
    }

    /// As [`start`](Self::start), for a caller who may give up: nothing runs if `given_up` could be read before it began.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and if the caller gave up.
    pub fn start_unless(
        &self,
        request: &StartRequest,
        given_up: BorrowedFd<'_>,
    ) -> Result<Started, ProcessError> {
        start(&self.home, request, Some(given_up))
    }

    /// Returns all processes, the oldest first. Those that ended long ago are forgotten.
    ///
    /// # Errors
    ///
    /// Fails if their folder cannot be read.
    pub fn list(&self) -> Result<Vec<View>, ProcessError> {
        let config = Config::load(&self.home, None).ok();
        // A configuration that cannot be used is told by what runs commands.
        if let Some(settings) = config.and_then(|config| Settings::read(&config).ok()) {
            list::prune(&self.home, &settings);
        }
        let view = |record: Record| {
            let preview = output::preview(&Folder::of(&self.home, &record.id), &record, LIST_PREVIEW);
            View::new(record, preview).shortened()
        };
        Ok(self.records()?.into_iter().map(view).collect())
    }

    /// Returns what is known of a process.
    ///
    /// # Errors
    ///
    /// Fails with [`ProcessError::NotFound`] if there is none of that name.
    pub fn get(&self, id: &str) -> Result<Record, ProcessError> {
        Ok(self.find(id)?.1)
    }

    /// Returns how a process is, with the end of its output.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub fn poll(&self, id: &str) -> Result<View, ProcessError> {
        let (folder, record) = self.find(id)?;
        let preview = output::preview(&folder, &record, PREVIEW);
        Ok(View::new(record, preview))
    }

    /// Follows the output of a process from byte `from` on.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if the kernel has no watches left.
    pub fn follow(&self, id: &str, from: u64) -> Result<Follower, ProcessError> {
        let (folder, record) = self.find(id)?;
        Follower::new(folder, record.id, from)
    }

    /// Follows the output of a process from the line on that it is printing.
    ///
    /// # Errors
    ///
    /// As [`Self::follow`], and if the log cannot be read.
    pub fn follow_on(&self, id: &str) -> Result<Follower, ProcessError> {
        let (folder, record) = self.find(id)?;
        let from = output::last_line(&folder).map_err(|error| output::unreadable(id, error))?;
        Follower::new(folder, record.id, from)
    }

    /// Waits until a process has ended, but no longer than this, nor than until `cancel` becomes readable.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if the keeper does not answer.
    pub fn wait(
        &self,
        id: &str,
        timeout: Option<Duration>,
        cancel: Option<BorrowedFd<'_>>,
    ) -> Result<WaitView, ProcessError> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (folder, mut record) = self.find(id)?;
        let mut status = WaitStatus::Exited;
        let mut tries = 0;
        while record.is_running() {
            if tries == TRIES {
                return Err(ProcessError::Silent(record.id));
            }
            tries += 1;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let waited = ask(&folder, &record.id, Request::Wait, b"").and_then(|asked| {
                let waited = asked.wait(left, cancel)?;
                // It may be a no, and else it says nothing that the record does not.
                if matches!(waited, Waited::Over) { asked.answer().map(|_| waited) } else { Ok(waited) }
            });
            status = match waited {
                Ok(Waited::Over) | Err(ProcessError::Ended(_)) => WaitStatus::Exited,
                Ok(Waited::Timeout) => WaitStatus::Timeout,
                Ok(Waited::Cancelled) => WaitStatus::Interrupted,
                Err(error) => return Err(error),
            };
            record = self.find(id)?.1;
            if status != WaitStatus::Exited {
                break;
            }
        }
        // It may have ended just as the time was up.
        if !record.is_running() {
            status = WaitStatus::Exited;
            notices::consume_completion(&folder);
        }
        let most = if status == WaitStatus::Exited { WAIT_TAIL } else { PREVIEW };
        Ok(WaitView {
            status,
            output: output::preview(&folder, &record, most),
            session_id: record.id,
            exit_code: record.exit_code,
            signal: record.signal.map(signal_name),
            completion_reason: record.completion_reason,
            termination_source: record.termination_source,
            error: record.error,
        })
    }

    /// Gives a process something to read. Returns how much it was given. All of it waits for the process at the most; 1 MiB does.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if it has ended, reads nothing, or has not read what it was given before.
    pub fn write(&self, id: &str, data: &[u8]) -> Result<usize, ProcessError> {
        let (folder, record) = self.running(id)?;
        for part in data.chunks(LARGEST_WRITE) {
            ask(&folder, &record.id, Request::Write { bytes: part.len() }, part)?.answer()?;
        }
        Ok(data.len())
    }

    /// Ends the input of a process; on a terminal by typing Ctrl-D.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn close_stdin(&self, id: &str) -> Result<(), ProcessError> {
        self.request(id, Request::CloseStdin).map(drop)
    }

    /// Changes the size of a process's terminal.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if it has ended or has no terminal.
    pub fn resize(&self, id: &str, size: PtySize) -> Result<(), ProcessError> {
        self.request(id, Request::Resize(size)).map(drop)
    }

    /// Sends a signal to everything that a process has started on this machine. Returns how many processes that were.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if it has ended or runs elsewhere.
    pub fn signal(&self, id: &str, signal: i32) -> Result<usize, ProcessError> {
        match self.request(id, Request::Signal { signal })? {
            Answer::Signalled { processes } => Ok(processes),
            _ => Ok(0),
        }
    }

    /// Prolongs the lease of a process: by so many seconds from now, or as many as it was given before. Returns when it ends, in
    /// seconds since 1970.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if it has ended or has no lease.
    pub fn renew(&self, id: &str, lease_s: Option<f64>) -> Result<f64, ProcessError> {
        self.request(id, Request::Renew { lease_s })?;
        Ok(self.get(id)?.lease_until.unwrap_or_default())
    }

    /// Ends a process and everything that it has started, and returns once that is done.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if the keeper does not answer. A process that has ended is no error.
    pub fn kill(&self, id: &str) -> Result<KillView, ProcessError> {
        let (folder, mut record) = self.find(id)?;
        let ran = record.is_running();
        if ran {
            let asked = ask(&folder, &record.id, Request::Kill { source: Source::Kill }, b"");
            let answer = asked.and_then(|asked| {
                // As long as its grace lasts, whatever that is.
                asked.wait(None, None)?;
                asked.answer()
            });
            match answer {
                Ok(_) | Err(ProcessError::Ended(_)) => {}
                Err(error) => return Err(error),
            }
            record = self.find(id)?.1;
            if record.is_running() {
                return Err(ProcessError::Silent(record.id));
            }
        } else {
            // Its main part has ended; what that left in the background is meant as well.
            end_call(&record.call_id);
        }
        notices::consume_completion(&folder);
        let killed = ran && record.status == Status::Killed;
        Ok(KillView {
            status: if killed { KillStatus::Killed } else { KillStatus::AlreadyExited },
            session_id: record.id,
            exit_code: record.exit_code,
            signal: record.signal.map(signal_name),
        })
    }

    /// Returns what there is to tell of the processes of `task`, or of all, the oldest first, and forgets it if it is consumed.
    ///
    /// # Errors
    ///
    /// Fails if the folder of the processes cannot be read.
    pub fn notices(&self, task: Option<&str>, consume: bool) -> Result<Vec<Notice>, ProcessError> {
        notices::all(&self.home, task, consume)
            .map_err(|error| ProcessError::io("failed to read the notices of processes", error))
    }

    pub(super) fn records(&self) -> Result<Vec<Record>, ProcessError> {
        list::all(&self.home).map_err(|error| ProcessError::io("failed to list the processes", error))
    }

    /// Finds a process, and brings its record up to date.
    pub(super) fn find(&self, id: &str) -> Result<(Folder, Record), ProcessError> {
        let unknown = || ProcessError::NotFound(id.to_owned());
        let name = ProcessId::parse(id).ok_or_else(unknown)?;
        let folder = Folder::of(&self.home, &name);
        match list::current(&folder) {
            Ok(Some(record)) => Ok((folder, record)),
            Ok(None) => Err(unknown()),
            Err(error) => {
                Err(ProcessError::io(format!("failed to read the record of process `{id}`"), error))
            }
        }
    }

    fn running(&self, id: &str) -> Result<(Folder, Record), ProcessError> {
        let (folder, record) = self.find(id)?;
        if record.is_running() { Ok((folder, record)) } else { Err(ProcessError::Ended(record.id)) }
    }

    fn request(&self, id: &str, request: Request) -> Result<Answer, ProcessError> {
        let (folder, record) = self.running(id)?;
        ask(&folder, &record.id, request, b"")?.answer()
    }
}

/// Waits until the keeper of a process that has ended is gone.
pub(super) fn let_go(record: &Record) -> bool {
    until_gone(record.keeper, LETTING_GO)
}
