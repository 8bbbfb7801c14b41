//! The beginning of a session: its first command has the login files read.
//!
//! That happens within the call and not when the session is made, because a login file can do anything: whoever waits for it must
//! be able to give up, and the call's own time limit must hold. What such a call has read is lost, and the next one begins anew; but
//! all of them together may take no longer than one, so that files which never end do not keep a session from ever working.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::call::Cause;
use super::environ::compose;
use super::launch::{Input, Plan, ended};
use super::login::{self, Heard, LIMIT, Login};
use super::remember::of_login;
use super::session::{ShellEnvironment, mark};
use super::state::SessionState;
use super::transport::Transport;
use super::turn;
use crate::{ExecIo, ExecOutcome, Stdin};

/// The file that is locked while login files are read, and says how long that has taken in vain.
pub(super) const LOGIN_LOCK: &str = "login.lock";

/// Whether a session has begun.
pub(super) enum Begun {
    /// It had, or has nothing to read.
    Before,
    /// It has now, and this is what its caller should know.
    Now(Option<String>),
    /// The call was ended meanwhile.
    Ended(Cause),
    /// The session is no more: it was cleaned up meanwhile, by force.
    Gone,
}

impl Begun {
    fn failed(reason: impl std::fmt::Display) -> Self {
        let warning = format!("the login files could not be read: {reason}; the session has a plain shell");
        Self::Now(Some(warning))
    }
}

/// Says how a call ended whose command was not started; without a cause, since the session is gone.
pub(super) fn ended_early(cause: Option<Cause>, cwd: &Path) -> ExecOutcome {
    let (mut outcome, how) = match cause {
        Some(Cause::Timeout) => (ExecOutcome::timed_out(), "its time was up"),
        Some(Cause::Interrupt) => (ExecOutcome::interrupted(), "it was interrupted"),
        None => (ExecOutcome::interrupted(), "its environment was cleaned up"),
    };
    outcome.cwd = Some(cwd.to_string_lossy().into_owned());
    outcome.warnings.push(format!(
        "the command was not started: the session's login files were still being read when {how}"
    ));
    outcome
}

impl<T: Transport> ShellEnvironment<T> {
    /// Sees to it that the login files of a session in `state` have been read. The call of `io`, whose processes carry `call`, ends at
    /// `deadline`.
    pub(super) fn begin(
        &self,
        state: &SessionState,
        call: &str,
        io: &dyn ExecIo,
        deadline: Instant,
    ) -> Begun {
        if state.started || self.begun.load(Ordering::SeqCst) {
            return Begun::Before;
        }
        let Some(command) = self.options.login.command(&self.shell) else { return Begun::Before };
        let path = self.options.state_dir.as_ref().unwrap_or(&self.channel).join(LOGIN_LOCK);
        let begun = match turn::take(&path, io, deadline, LIMIT) {
            Ok(Ok(turn)) if is_removed(&turn) => Begun::Gone,
            Ok(Ok(turn)) => {
                // Who comes second finds it done.
                if self.begun.load(Ordering::SeqCst) || self.store.load().0.started {
                    return Begun::Now(None);
                }
                let reading = Reading { command: &command, mark: self.mark_of_login(call), turn: &turn };
                let (begun, took) = self.read_files(&reading, io, deadline, spent(&turn));
                if matches!(begun, Begun::Ended(_)) {
                    // At the worst the next one has more time.
                    let _ = spend(&turn, spent(&turn) + took);
                }
                begun
            }
            Ok(Err(cause)) => Begun::Ended(cause),
            Err(error) => Begun::failed(error),
        };
        if matches!(begun, Begun::Now(_)) {
            self.begun.store(true, Ordering::SeqCst);
        }
        begun
    }

    fn names_files(&self) -> bool {
        matches!(self.options.login, Login::Files(_))
    }

    /// What the files leave behind ends with the session, and not with its first command. It carries the call that has read them as well:
    /// whoever ends one reading must not end another, nor what an earlier one has left.
    fn mark_of_login(&self, call: &str) -> String {
        match self.options.calls.as_str() {
            "" => mark(None),
            calls => format!("{calls}{}_{call}", login::MARK),
        }
    }

    /// Reads them, and keeps what they leave behind. Returns how long that took, too. Earlier ones have `spent` so much time on it.
    fn read_files(
        &self,
        reading: &Reading<'_>,
        io: &dyn ExecIo,
        deadline: Instant,
        spent: Duration,
    ) -> (Begun, Duration) {
        let start = Instant::now();
        let until = start + LIMIT.saturating_sub(spent);
        let strip = &self.options.strip;
        let (variables, _) = compose(&self.options.base_env, &SessionState::default(), &[], strip);
        let plan = Plan {
            mark: reading.mark.clone(),
            cwd: Path::new("/"),
            variables: &variables,
            early: Mutex::default(),
            deadline: until.min(deadline),
            tell_start: false,
            fresh: true,
        };
        let state = Arc::default();
        let heard = Heard::of(io);
        let finished = self.start((&state, reading.command), &plan, Input::Bytes(Stdin::Empty), &heard);
        let (finished, recorded) = match finished {
            Ok((finished, handed)) => (Ok(finished), handed.record.read().unwrap_or_default()),
            Err(error) => (Err(error), None),
        };
        let took = start.elapsed();
        let cause = finished.as_ref().map_or(None, |finished| finished.cause);
        let ends_call = match cause {
            Some(Cause::Timeout) => deadline < until,
            Some(Cause::Interrupt) => true,
            None => false,
        };
        if let Some(cause) = cause.filter(|_| ends_call) {
            return (Begun::Ended(cause), took);
        }
        // Before anything of it is made anew.
        if is_removed(reading.turn) {
            return (Begun::Gone, took);
        }
        let change = of_login(&variables, strip, recorded.as_ref().filter(|_| cause.is_none()));
        // It is not tried again: a session that is slow each time is worse than one without.
        if let Err(error) = self.store.update(change) {
            return (Begun::failed(error), took);
        }
        let begun = match (cause, finished.and_then(|finished| ended(&finished))) {
            (Some(_), _) => Begun::failed(format_args!("they took longer than {} s", LIMIT.as_secs())),
            (None, Ok(outcome)) if outcome.exit_code == 0 && recorded.is_none() => {
                Begun::failed("one of them replaced the shell (`exec`), or ended it in a trap of its own")
            }
            (None, Ok(outcome)) if outcome.exit_code == 0 => {
                let files = login::not_understood(&heard.bytes());
                Begun::Now((!files.is_empty()).then(|| {
                    format!(
                        "the shell does not understand `{}`: what stands behind the mistake was not read",
                        files.join("`, `")
                    )
                }))
            }
            (None, Ok(outcome)) if outcome.exit_code == login::MISSING && self.names_files() => {
                Begun::Now(Some(
                    "a login file that was named does not exist or cannot be read: neither it nor those behind it were read"
                        .into(),
                ))
            }
            (None, Ok(outcome)) if recorded.is_some() => Begun::Now(Some(format!(
                "one of the login files ended the shell with exit code {}: what stands behind that was not read",
                outcome.exit_code
            ))),
            (None, Ok(outcome)) => Begun::failed(format_args!(
                "one of them ended the shell with exit code {}",
                outcome.exit_code
            )),
            (None, Err(error)) => Begun::failed(error),
        };
        (begun, took)
    }
}

/// One reading of the files.
struct Reading<'a> {
    command: &'a str,
    /// What its processes carry.
    mark: String,
    /// The file that is locked for it.
    turn: &'a File,
}

/// Returns whether a cleanup has removed an open file. It does so before it ends anything: so whoever was ended by it, or had to wait
/// for that, can tell.
fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.nlink() == 0)
}

/// Returns how much time calls that were ended have spent on it, by the file that is locked for it.
fn spent(mut turn: &File) -> Duration {
    let mut text = String::new();
    let read = turn.rewind().and_then(|()| turn.take(LONGEST).read_to_string(&mut text));
    read.ok().and_then(|_| text.parse().ok()).map_or(Duration::ZERO, Duration::from_millis)
}

/// Writes that down.
fn spend(mut turn: &File, spent: Duration) -> io::Result<()> {
    turn.set_len(0)?;
    turn.write_all(spent.as_millis().to_string().as_bytes())
}

/// More is no number of milliseconds.
const LONGEST: u64 = 32;
