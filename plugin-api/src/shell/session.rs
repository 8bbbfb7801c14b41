//! A task's shell session as an [`Environment`].

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::WaitIdStatus;

use super::boot;
use super::call::{Call, Cause, End, Feed, Finished};
use super::channel::{Record, Recorded, Script, prune};
use super::environ::{MARK, StripList, Variables, check_name, compose, lasts};
use super::state::{Change, SessionState, Store, make_dir};
use super::transport::{Launch, Transport};
use super::tree::Tree;
use super::watched::Watched;
use crate::{CreateEnvironment, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Stdin};

/// Room for output between the command and us: the most that an unprivileged user may have.
const PIPE_SIZE: usize = 1024 * 1024;

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
        }
    }
}

/// A session over any [`Transport`]: each command runs in a shell of its own that starts where the last one stood.
pub struct ShellEnvironment<T> {
    transport: T,
    options: SessionOptions,
    store: Store,
    channel: PathBuf,
    /// Holds the channel's directory where nothing is kept on disk.
    _scratch: Option<tempfile::TempDir>,
}

impl<T: Transport> ShellEnvironment<T> {
    /// Makes a session, or takes up the one whose state stands in the options' `state_dir`.
    ///
    /// # Errors
    ///
    /// Fails if there is no shell, or the state's directory cannot be made.
    pub fn new(transport: T, options: SessionOptions) -> Result<Self, Error> {
        transport.shell()?;
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
        Ok(Self { transport, options, store, channel, _scratch: scratch })
    }

    /// Finds the directory for a call. A named one must exist; one that vanished under the session gives way to the nearest
    /// directory above it, with a warning.
    fn directory(
        &self,
        request: &ExecRequest,
        state: &SessionState,
    ) -> Result<(PathBuf, Option<String>), Error> {
        let stands = state.cwd.as_ref().unwrap_or(&self.options.cwd);
        if let Some(cwd) = &request.cwd {
            if cwd.contains('\0') {
                let message = "the working directory holds a NUL character";
                return Err(Error::new(ErrorKind::BAD_CWD, message).not_started());
            }
            let path = clean(&stands.join(self.expand_home(cwd)));
            if self.transport.is_directory(&path) {
                return Ok((path, None));
            }
            let message =
                format!("the working directory `{}` does not exist or cannot be entered", path.display());
            let error = Error::new(ErrorKind::BAD_CWD, message).not_started();
            return Err(error.with_hint("name a directory that exists where the command runs"));
        }
        if state.cwd.is_none() && !self.transport.is_directory(stands) {
            let message = format!(
                "the directory `{}`, in which the session starts, does not exist or cannot be entered",
                stands.display()
            );
            let error = Error::new(ErrorKind::BAD_CWD, message).not_started();
            return Err(error.with_hint("name another one, such as with `terminal.cwd`"));
        }
        let found = stands.ancestors().find(|path| self.transport.is_directory(path));
        let found = found.unwrap_or(Path::new("/")).to_owned();
        let warning = (found != *stands).then(|| {
            format!("the directory `{}` is gone; this command ran in `{}`", stands.display(), found.display())
        });
        Ok((found, warning))
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        let home =
            self.options.base_env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
        match (home, path.strip_prefix('~')) {
            (Some(home), Some("")) => home.to_owned(),
            (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(path),
        }
    }

    fn start(
        &self,
        script: &Script,
        record: &Record,
        at: &Place<'_>,
        stdin: Stdin,
        io: &dyn ExecIo,
    ) -> Result<Finished, Error> {
        let failed =
            |error: io::Error| Error::new(ErrorKind::IO, format!("failed to start a command: {error}"));
        let (output, output_end) = std::io::pipe().map_err(|error| failed(error).not_started())?;
        // A smaller pipe is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE_SIZE);
        let (stdin, feed) = input(stdin).map_err(|error| failed(error).not_started())?;
        let mark =
            at.call_id.clone().unwrap_or_else(|| format!("{:016x}{:08x}", random(), std::process::id()));
        let variables = at.variables.iter().filter(|(name, _)| *name != MARK);
        let mut env: Vec<(OsString, OsString)> =
            variables.map(|(name, value)| (name.clone(), value.clone())).collect();
        env.push(("PWD".into(), at.cwd.into()));
        // A call within a call belongs to both.
        let outer =
            self.options.base_env.iter().find(|(name, _)| name == MARK).map(|(_, marks)| marks.as_os_str());
        let marks =
            outer.map(OsStr::as_bytes).into_iter().chain([mark.as_bytes()]).collect::<Vec<_>>().join(&b':');
        env.push((MARK.into(), OsString::from_vec(marks)));
        let process = self.transport.start(Launch {
            argv: boot::argv(&self.transport.shell()?, &self.transport.record_path(record.path())),
            env,
            cwd: at.cwd,
            stdin: stdin.as_fd(),
            output: output_end.as_fd(),
            script: script.as_fd(),
            record: record.path(),
            extra: Vec::new(),
        })?;
        drop((output_end, stdin));
        let tree = Tree::new(&mark, process.pid);
        let deadline = io.deadline().or_else(|| Instant::now().checked_add(self.options.timeout));
        let io = &Watched { io, deadline, script, early: &at.early };
        Call { process, tree, output, feed, io }.run().map_err(|error| {
            let message = format!("lost track of the command: {error}");
            Error::new(ErrorKind::LOST, message)
        })
    }

    /// Forgets what the session has set that the system's loader obeys, after a shell has not come up: nothing else that a
    /// command can export keeps a shell from starting, and a session must not be lost for ever.
    fn drop_loader_variables(&self, state: &SessionState, error: Error) -> Error {
        let forget: BTreeSet<OsString> =
            state.set.keys().filter(|name| name.as_bytes().starts_with(b"LD_")).cloned().collect();
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

    /// Works out what the command changed, and keeps it.
    fn remember(&self, at: &Place<'_>, request: &Named, recorded: &Recorded) -> Result<(), String> {
        let mut change = Change { forget: at.lost.clone(), ..Change::default() };
        if !request.cwd && (recorded.cwd != *at.cwd || at.moved) {
            change.cwd = Some(recorded.cwd.clone());
        }
        for (name, value) in &recorded.exported {
            if lasts(name, &self.options.strip) && at.variables.get(name) != Some(value) {
                change.set.insert(name.clone(), value.clone());
            }
        }
        for name in at.variables.keys() {
            // What is no identifier is not the shell's to list, and a variable of this call only is not the session's.
            let listed = is_identifier(name) && !request.env.iter().any(|named| name == OsStr::new(named));
            if listed && lasts(name, &self.options.strip) && !recorded.exported.contains_key(name) {
                change.unset.insert(name.clone());
            }
        }
        self.store.update(change).map_err(|error| format!("the session's state could not be saved: {error}"))
    }
}

/// Where a command runs, and with what.
struct Place<'a> {
    /// The host's name for the call, if it has given one.
    call_id: Option<String>,
    cwd: &'a Path,
    /// Whether that is not where the session stood.
    moved: bool,
    variables: &'a Variables,
    /// Variables of the session's that could not be passed.
    lost: BTreeSet<OsString>,
    /// What was printed before the command was read; none once it was.
    early: Mutex<Option<Vec<u8>>>,
}

/// What the caller named for this call only.
struct Named {
    cwd: bool,
    env: Vec<String>,
}

impl<T: Transport> Environment for ShellEnvironment<T> {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        if request.command.contains('\0') {
            let message = "the command holds a NUL character, which no shell can run";
            return Err(Error::new(ErrorKind::INVALID_REQUEST, message).not_started());
        }
        for (name, value) in &request.env {
            check_name(name)?;
            if value.contains('\0') {
                let message = format!("the value of `{name}` holds a NUL character");
                return Err(Error::new(ErrorKind::INVALID_REQUEST, message).not_started());
            }
        }
        let (state, damaged) = self.store.load();
        let (cwd, vanished) = self.directory(&request, &state)?;
        let (variables, held_back) =
            compose(&self.options.base_env, &state, &request.env, &self.options.strip);
        // What cannot be passed to a command could never be unset by one.
        let lost = state.set.keys().filter(|name| !variables.contains_key(*name)).cloned().collect();
        let moved = vanished.is_some();
        let mut warnings: Vec<String> = damaged.into_iter().chain(vanished).chain(held_back).collect();
        let prepare =
            || -> io::Result<_> { Ok((Script::new(&request.command)?, Record::new_in(&self.channel)?)) };
        let (script, record) = prepare().map_err(|error| {
            Error::new(ErrorKind::IO, format!("failed to hand over the command: {error}")).not_started()
        })?;
        if !record.has_room() {
            warnings.push("there is no room to keep what this command changes of the session".into());
        }
        let named = Named {
            cwd: request.cwd.is_some(),
            env: request.env.into_iter().map(|(name, _)| name).collect(),
        };
        let call_id = Some(request.call_id).filter(|id| is_identifier(OsStr::new(id)));
        let place = Place {
            call_id,
            cwd: &cwd,
            moved,
            variables: &variables,
            lost,
            early: Mutex::new(Some(Vec::new())),
        };
        let finished = self.start(&script, &record, &place, request.stdin, io)?;
        let mut outcome = outcome(&finished)?;
        if finished.cause.is_none() && !script.was_read() {
            let early = place.early.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
            let said = String::from_utf8_lossy(&early);
            let said = said.lines().next().map_or_else(String::new, |line| format!(": {line}"));
            let code = outcome.exit_code;
            let message = format!("the shell ended with exit code {code} before it read the command{said}");
            let error = Error::new(ErrorKind::UNAVAILABLE, message).not_started();
            return Err(self.drop_loader_variables(&state, error));
        }
        let recorded = match record.read() {
            Ok(recorded) => recorded,
            Err(reason) => {
                warnings.push(format!("what the command changed of the session was not kept: {reason}"));
                None
            }
        };
        if let Some(recorded) = &recorded {
            warnings.extend(self.remember(&place, &named, recorded).err());
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
        let Some(dir) = self.options.state_dir.as_ref().filter(|_| !self.options.persistent) else {
            return Ok(());
        };
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::IO, format!("failed to remove `{}`: {error}", dir.display())))
            }
            _ => Ok(()),
        }
    }
}

/// Returns what becomes the command's standard input, and what is left to send.
fn input(stdin: Stdin) -> io::Result<(OwnedFd, Option<Feed>)> {
    Ok(match stdin {
        Stdin::Empty => (std::fs::File::open("/dev/null")?.into(), None),
        Stdin::Fd(fd) => (fd, None),
        Stdin::Bytes(bytes) => {
            let (reader, pipe) = std::io::pipe()?;
            (reader.into(), Some(Feed { pipe, bytes, sent: 0 }).filter(|feed| !feed.bytes.is_empty()))
        }
    })
}

fn outcome(finished: &Finished) -> Result<ExecOutcome, Error> {
    match (finished.cause, &finished.end) {
        (Some(Cause::Timeout), _) => Ok(ExecOutcome::timed_out()),
        (Some(Cause::Interrupt), _) => Ok(ExecOutcome::interrupted()),
        (None, Some(End::Status(status))) => from_status(status),
        (None, Some(End::Unknown) | None) => {
            let message =
                "the command has ended, but its exit code was lost: something else has waited for it";
            Err(Error::new(ErrorKind::LOST, message))
        }
    }
}

fn from_status(status: &WaitIdStatus) -> Result<ExecOutcome, Error> {
    let code = status.exit_status().map(ExecOutcome::exited);
    code.or_else(|| status.terminating_signal().map(ExecOutcome::signalled))
        .ok_or_else(|| Error::new(ErrorKind::LOST, "the kernel gave no exit code for the command"))
}

/// Takes `.` out of a path, and nothing else: `..` after a symbolic link is the kernel's to resolve.
fn clean(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn is_identifier(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        // Unique is enough: the mark is no secret.
        _ => std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos().into()),
    }
}
