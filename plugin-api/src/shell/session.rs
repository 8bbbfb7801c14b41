//! A task's shell session as an [`Environment`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::begin::{Begun, LOGIN_LOCK, ended_early};
use super::environ::{StripList, check_name, compose};
use super::launch::{Handed, Input, Kept, Plan, ended, random};
use super::login::Login;
use super::place::{Directory, Start, directory};
use super::record::prune;
use super::remember::{Given, is_identifier};
use super::session_cgroups::SessionCgroups;
use super::state::{Change, SessionState};
use super::store::{Store, make_dir};
use super::transport::{Shell, Transport};
use super::tree::end_calls;
use crate::environment::TERMINAL;
use crate::{
    CreateEnvironment, Ended, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Stdin,
};

/// What a session starts from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The environment of the place itself. A sandbox gives its own; `local` gives the host's.
    pub base_env: Vec<(OsString, OsString)>,
    /// Where the first command runs.
    pub cwd: PathBuf,
    /// Variables that no command may see, wherever they come from.
    pub strip: StripList,
    /// How long a command may run when its caller names no limit.
    pub timeout: Duration,
    /// Where the state is kept between processes of the host. None: in memory only.
    pub state_dir: Option<PathBuf>,
    /// Whether `cleanup` leaves the state for a later session.
    pub persistent: bool,
    /// Which files are read when the session begins.
    pub login: Login,
    /// How the ids of this session's calls begin, so that what they leave behind ends with it. Empty: nobody knows.
    pub calls: String,
}

impl SessionOptions {
    /// Makes the options that `request` asks for, for a place whose own environment is `base_env` and whose sessions start
    /// in `cwd` unless the request names another directory.
    #[must_use]
    pub fn new(request: &CreateEnvironment, base_env: Vec<(OsString, OsString)>, cwd: &Path) -> Self {
        Self {
            base_env,
            cwd: request.cwd.as_ref().map_or_else(|| cwd.to_owned(), PathBuf::from),
            strip: StripList::new(request.strip_env.iter().cloned()),
            timeout: request.timeout,
            state_dir: request.state_dir.as_ref().map(|dir| Path::new(dir).join("shell")),
            persistent: request.persistent,
            login: Login::of(request),
            calls: request.extra.get("calls").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }
    }
}

/// A session over any [`Transport`]: each command runs in a shell of its own that starts where the last one stood.
pub struct ShellEnvironment<T> {
    pub(super) transport: T,
    pub(super) options: SessionOptions,
    pub(super) shell: Shell,
    pub(super) store: Store,
    pub(super) channel: PathBuf,
    pub(super) kept: Arc<Mutex<Kept>>,
    /// Behind the resident, whose spare is in one until it is let go. Nothing is looked for before the first command.
    cgroups: OnceLock<Option<SessionCgroups>>,
    /// Whether its login files are not to be read any more, also where the state does not say so.
    pub(super) begun: AtomicBool,
    /// Whether a command has run in the directory in which the session starts, so that this was there.
    stood: AtomicBool,
    /// Holds the channel's directory where nothing is kept on disk.
    _scratch: Option<tempfile::TempDir>,
}

impl<T: Transport> ShellEnvironment<T> {
    /// Makes a session, or takes up the one whose state stands in the options' `state_dir`. The first command of a new one has the
    /// login files read.
    ///
    /// # Errors
    ///
    /// Fails if there is no shell, or the state's directory cannot be made.
    pub fn new(transport: T, options: SessionOptions) -> Result<Self, Error> {
        let shell = transport.shell()?;
        let make = || -> io::Result<(PathBuf, Option<tempfile::TempDir>)> {
            if let Some(dir) = &options.state_dir {
                let channel = dir.join("calls");
                make_dir(&channel)?;
                prune(&channel);
                return Ok((channel, None));
            }
            let scratch = tempfile::Builder::new().prefix("hostel-").tempdir()?;
            Ok((scratch.path().to_owned(), Some(scratch)))
        };
        let (channel, scratch) = make().map_err(|error| {
            let place = options.state_dir.clone().unwrap_or_else(std::env::temp_dir);
            let message = format!("failed to make the session's folder in `{}`: {error}", place.display());
            Error::new(ErrorKind::IO, message).not_started()
        })?;
        let store = Store::new(options.state_dir.clone());
        let (begun, stood) = (AtomicBool::new(false), AtomicBool::new(false));
        let kept = Arc::default();
        let cgroups = OnceLock::new();
        Ok(Self { transport, options, shell, store, channel, kept, cgroups, begun, stood, _scratch: scratch })
    }

    /// The cgroups of its calls. None where there can be none.
    pub(super) fn cgroups(&self) -> Option<&SessionCgroups> {
        self.cgroups.get_or_init(SessionCgroups::new).as_ref()
    }

    fn home(&self) -> Option<&Path> {
        let home = self.options.base_env.iter().find(|(name, _)| name == "HOME");
        home.map(|(_, home)| Path::new(home))
    }

    /// Forgets what the session has set that the system's loader obeys, after a shell has not come up: nothing else that a
    /// command can export keeps a shell from starting, and a session must not be lost for ever.
    fn drop_loader_variables(&self, state: &SessionState, error: Error) -> Error {
        let forget: std::collections::BTreeSet<OsString> =
            state.set.keys().filter(|name| name.as_encoded_bytes().starts_with(b"LD_")).cloned().collect();
        if forget.is_empty() {
            return error;
        }
        let names =
            forget.iter().map(|name| format!("`{}`", name.to_string_lossy())).collect::<Vec<_>>().join(", ");
        match self.store.update(Change { forget, ..Change::default() }) {
            Ok(()) => error.with_hint(format!("{names} was dropped from the session; try again")),
            Err(_) => error,
        }
    }
}

/// What is told of a command that has ended without its shell having come to the end of ours.
const LOST: &str = "what this command changed of the session (directory, variables, functions) was not kept: it replaced its shell (`exec`), \
                    called `exit` under an `EXIT` trap of its own, or left it no way to write (`ulimit`)";

/// Refuses what no shell or environment can hold, and what this session does not do.
fn check(request: &ExecRequest) -> Result<(), Error> {
    request.refuse_unknown(&[TERMINAL])?;
    let invalid = |message: String| Err(Error::new(ErrorKind::INVALID_REQUEST, message).not_started());
    if request.command.contains('\0') {
        return invalid("the command holds a NUL character, which no shell can run".into());
    }
    for (name, value) in &request.env {
        check_name(name)?;
        if value.contains('\0') {
            return invalid(format!("the value of `{name}` holds a NUL character"));
        }
    }
    if request.wants_terminal() && !matches!(request.stdin, Stdin::Fd(_)) {
        return invalid("a terminal was asked for and none was given".into());
    }
    Ok(())
}

/// Returns the host's own name for a call, or one that nobody else has.
pub(super) fn mark(call_id: Option<&str>) -> String {
    let given = call_id.filter(|id| is_identifier(OsStr::new(id)));
    given.map_or_else(|| format!("{:016x}{:08x}", random(), std::process::id()), str::to_owned)
}

impl<T: Transport> Environment for ShellEnvironment<T> {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        check(&request)?;
        let limit = Instant::now().checked_add(self.options.timeout);
        let deadline = io.deadline().or(limit).unwrap_or_else(Instant::now);
        let (mut state, damaged): (Arc<SessionState>, _) = self.store.load();
        let start = Start { path: &self.options.cwd, was_there: self.stood.load(Ordering::Relaxed) };
        let Directory { path: cwd, vanished } =
            directory(&self.transport, request.cwd.as_deref(), &state, start, self.home())?;
        self.stood.fetch_or(cwd == *start.path, Ordering::Relaxed);
        let mark = mark(Some(&request.call_id));
        let begun =
            if request.skips_login() { Begun::Before } else { self.begin(&state, &mark, io, deadline) };
        let remark = match begun {
            Begun::Before => None,
            Begun::Now(remark) => {
                state = self.store.load().0;
                remark
            }
            Begun::Ended(cause) => return Ok(ended_early(Some(cause), &cwd)),
            Begun::Gone => return Ok(ended_early(None, &cwd)),
        };
        let (variables, held_back) =
            compose(&self.options.base_env, &state, &request.env, &self.options.strip);
        let moved = vanished.is_some();
        let said = remark.into_iter().chain(damaged).chain(vanished);
        let mut warnings: Vec<String> = said.chain(held_back).collect();
        let plan = Plan {
            mark,
            cwd: &cwd,
            variables: &variables,
            early: Mutex::new(Some(Vec::new())),
            deadline,
            tell_start: request.tells_start(),
            fresh: false,
        };
        // What runs beside the session's commands changes nothing for them, whenever it ends.
        let forgets = request.runs_in_background() || request.keeps_nothing();
        let (terminal, own_cwd) = (request.wants_terminal(), request.cwd.is_some());
        let own_env: Vec<String> = request.env.into_iter().map(|(name, _)| name).collect();
        let input = match request.stdin {
            Stdin::Fd(fd) if terminal => Input::Terminal(fd),
            stdin => Input::Bytes(stdin),
        };
        let (finished, Handed { script, record }) =
            self.start((&state, &request.command), &plan, input, io)?;
        let has_room = record.has_room();
        if !has_room {
            warnings.push("there is no room to keep what this command changes of the session".into());
        }
        let mut outcome = ended(&finished)?;
        if finished.cause.is_none() && !script.was_read() {
            let said = plan.said();
            let message = format!(
                "the shell ended with exit code {} before it read the command{said}",
                outcome.exit_code
            );
            let error = Error::new(ErrorKind::UNAVAILABLE, message).not_started();
            return Err(self.drop_loader_variables(&state, error));
        }
        // A shell that was killed may or may not have come to it, which differs from place to place.
        let killed = finished.cause.is_some() || outcome.ended == Ended::SIGNAL;
        let recorded = match record.read() {
            Ok(None) if has_room && !killed && !forgets => {
                warnings.push(LOST.into());
                None
            }
            Ok(recorded) => recorded.filter(|_| !killed),
            Err(reason) => {
                warnings.push(format!("what the command changed of the session was not kept: {reason}"));
                None
            }
        };
        if let Some(recorded) = recorded.as_ref().filter(|_| !forgets) {
            let given = Given {
                state: &state,
                cwd: &cwd,
                variables: &variables,
                strip: &self.options.strip,
                own_cwd,
                moved,
                own_env: &own_env,
                // What cannot be passed to a command could never be unset by one.
                lost: state.set.keys().filter(|name| !variables.contains_key(*name)).cloned().collect(),
            };
            if let Err(error) = self.store.update(given.change(recorded)) {
                warnings.push(format!("the session's state could not be saved: {error}"));
            }
        }
        if finished.end.is_none() || finished.survivors > 0 {
            let count = finished.survivors.max(1);
            warnings.push(format!("{count} of the command's processes could not be killed"));
        }
        let ended_in = recorded.map_or(cwd, |recorded| recorded.cwd);
        outcome.cwd = Some(ended_in.to_string_lossy().into_owned());
        outcome.warnings = warnings;
        Ok(outcome)
    }

    fn cleanup(&self) -> Result<(), Error> {
        if self.options.persistent {
            return Ok(());
        }
        if let Some(dir) = &self.options.state_dir {
            // Before its reader is ended: neither that nor whoever waits for it may then run a command.
            let _ = std::fs::remove_file(dir.join(LOGIN_LOCK));
        }
        // What was started in the background on purpose has an id of another kind.
        let _ = end_calls(&self.options.calls);
        let Some(dir) = &self.options.state_dir else { return Ok(()) };
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::IO, format!("failed to remove `{}`: {error}", dir.display())))
            }
            _ => Ok(()),
        }
    }
}
