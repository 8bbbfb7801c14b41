//! One live place where commands run.

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::{Error, ErrorKind, ExecIo, Flow, Stdin};

/// Fields that a later version of this interface may add, under their names.
///
/// A provider ignores what it does not know: that is what lets the host grow without breaking it.
pub type Extra = Map<String, Value>;

/// One command to run to its end.
#[derive(Default)]
#[non_exhaustive]
pub struct ExecRequest {
    /// Shell text, whole and unchanged. Holds no NUL.
    pub command: String,
    /// Working directory for this call only. None: where the session stands.
    pub cwd: Option<String>,
    /// Variables for this call only.
    pub env: Vec<(String, String)>,
    /// Standard input.
    pub stdin: Stdin,
    /// The host's own name for this call, of letters, digits and `_`: a provider that starts processes on the host's machine
    /// gives it to them as `HOSTEL_CALL`, so that the host can find them if the provider crashes. May be empty.
    pub call_id: String,
    /// Later fields. A key that begins with `!` must be understood: the code around a plugin refuses those it does not know, and
    /// a provider that does not do what it asks for refuses the request with [`ErrorKind::UNSUPPORTED`]. `!pty`: see
    /// [`wants_terminal`](Self::wants_terminal). `tell_start`: see [`tells_start`](Self::tells_start).
    /// `background`: see [`runs_in_background`](Self::runs_in_background). `no_login`: see [`skips_login`](Self::skips_login).
    /// `no_state`: see [`keeps_nothing`](Self::keeps_nothing).
    pub extra: Extra,
}

/// The later field that asks for a terminal.
pub(crate) const TERMINAL: &str = "!pty";

/// The later field that says that a command runs beside the session's.
const BACKGROUND: &str = "background";

/// The later field that asks for word of the start.
const TELL_START: &str = "tell_start";

/// The later field that says that a command does not wait for login files.
const NO_LOGIN: &str = "no_login";

/// The later field that says that a command changes nothing that lasts.
const NO_STATE: &str = "no_state";

/// Shows neither the values of variables nor what is fed: either may be a secret.
impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        let Self { command, cwd, call_id, .. } = self;
        f.debug_struct("ExecRequest")
            .field("command", command)
            .field("cwd", cwd)
            .field("env", &names)
            .field("call_id", call_id)
            .finish_non_exhaustive()
    }
}

impl ExecRequest {
    /// Makes a request that runs `command` where the session stands, with nothing on its standard input.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// Lets the command run on `terminal`: the end of a pseudo-terminal that a program has, whose other end the caller reads and
    /// writes.
    pub fn run_on(&mut self, terminal: OwnedFd) {
        self.stdin = Stdin::Fd(terminal);
        self.extra.insert(TERMINAL.into(), true.into());
    }

    /// Returns whether the standard input is a terminal that is to become the command's controlling terminal, and its standard
    /// output and error as well. [`ExecIo::output`] then gets nothing: whoever made the terminal reads its other end.
    #[must_use]
    pub fn wants_terminal(&self) -> bool {
        self.extra.contains_key(TERMINAL)
    }

    /// Says that the command runs beside those of the session, for as long as it likes.
    pub fn run_in_background(&mut self) {
        self.extra.insert(BACKGROUND.into(), true.into());
    }

    /// Returns whether the command runs beside those of the session: where a session has state, it leaves that alone.
    #[must_use]
    pub fn runs_in_background(&self) -> bool {
        self.extra.contains_key(BACKGROUND)
    }

    /// Asks for word of the start.
    pub fn tell_start(&mut self) {
        self.extra.insert(TELL_START.into(), true.into());
    }

    /// Returns whether the caller wants to know when the command has started: by [`ExecIo::output`] with no bytes.
    #[must_use]
    pub fn tells_start(&self) -> bool {
        self.extra.contains_key(TELL_START)
    }

    /// Says that the command is not worth reading login files for.
    pub fn skip_login(&mut self) {
        self.extra.insert(NO_LOGIN.into(), true.into());
    }

    /// Returns whether the command runs without them where the session has not read its login files yet.
    #[must_use]
    pub fn skips_login(&self) -> bool {
        self.extra.contains_key(NO_LOGIN)
    }

    /// Says that nothing is to be kept of what the command changes of its session.
    pub fn keep_nothing(&mut self) {
        self.extra.insert(NO_STATE.into(), true.into());
    }

    /// Returns whether nobody misses what the command changes of its session, so that it is no loss where it cannot be kept.
    #[must_use]
    pub fn keeps_nothing(&self) -> bool {
        self.extra.contains_key(NO_STATE)
    }

    /// Refuses a request that asks for something which must be understood and is not among `known`.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::UNSUPPORTED`], which names what was asked for.
    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), Error> {
        let asked = self.extra.keys().find(|key| key.starts_with('!') && !known.contains(&key.as_str()));
        asked.map_or(Ok(()), |key| {
            let message = format!("the backend cannot do what is asked of it (`{key}`)");
            Err(Error::new(ErrorKind::UNSUPPORTED, message).not_started())
        })
    }
}

/// How a command ended.
///
/// A newtype over a number for the reason that [`ErrorKind`] is one. An unknown value reads as [`Ended::LOST`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ended(pub u32);

impl Ended {
    /// The shell returned an exit code.
    pub const EXITED: Self = Self(0);
    /// A signal killed the shell.
    pub const SIGNAL: Self = Self(1);
    /// The deadline passed and the command was killed; exit code 124.
    pub const TIMEOUT: Self = Self(2);
    /// The caller cancelled and the command was killed; exit code 130.
    pub const INTERRUPTED: Self = Self(3);
    /// The connection was lost; what became of the command is unknown.
    pub const LOST: Self = Self(4);

    /// Returns the name that machine-readable output uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EXITED => "exited",
            Self::SIGNAL => "signal",
            Self::TIMEOUT => "timeout",
            Self::INTERRUPTED => "interrupted",
            _ => "lost",
        }
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExecOutcome {
    /// The command's exit code, as a shell would report it in `$?`.
    pub exit_code: i32,
    /// How it ended.
    pub ended: Ended,
    /// The number of the signal that killed the shell.
    pub signal: Option<i32>,
    /// Where the session stood at the end of the call.
    pub cwd: Option<String>,
    /// What the user should know although the command ran, one line each.
    pub warnings: Vec<String>,
    /// Later fields.
    pub extra: Extra,
}

impl ExecOutcome {
    /// Makes the outcome of a command that returned `exit_code`.
    #[must_use]
    pub fn exited(exit_code: i32) -> Self {
        Self {
            exit_code,
            ended: Ended::EXITED,
            signal: None,
            cwd: None,
            warnings: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// Makes the outcome of a command that `signal` killed: exit code 128 + `signal`.
    #[must_use]
    pub fn signalled(signal: i32) -> Self {
        Self { ended: Ended::SIGNAL, signal: Some(signal), ..Self::exited(128 + signal) }
    }

    /// Makes the outcome of a command that was killed at its deadline: exit code 124.
    #[must_use]
    pub fn timed_out() -> Self {
        Self { ended: Ended::TIMEOUT, ..Self::exited(124) }
    }

    /// Makes the outcome of a command that was killed because the caller asked for it: exit code 130.
    #[must_use]
    pub fn interrupted() -> Self {
        Self { ended: Ended::INTERRUPTED, ..Self::exited(130) }
    }
}

/// What the kernel says of a process is what a shell would say of it.
impl From<ExitStatus> for ExecOutcome {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::exited(code),
            (None, Some(signal)) => Self::signalled(signal),
            // A process that was waited for has ended in one of the two ways.
            (None, None) => Self::exited(255),
        }
    }
}

/// One live place where commands run: the object that [`create_environment`] returns.
///
/// Several calls may run at once. Implement [`execute`](Self::execute) and [`cleanup`](Self::cleanup); the rest has
/// defaults that stand on `execute`.
///
/// [`create_environment`]: crate::TerminalEnvironmentProvider::create_environment
pub trait Environment: Send + Sync {
    /// Runs one command to its end and passes its output to `io` as it comes.
    ///
    /// The end is the command's own: what a child in the background still holds open is not waited for. At
    /// [`ExecIo::deadline`], which the host always sets, and on cancellation, everything that the command has started is killed,
    /// and the outcome is [`ExecOutcome::timed_out`] or [`ExecOutcome::interrupted`]. A provider that takes six seconds longer is
    /// left behind. The variables of the request hold no secrets any more; what else goes into the environment of a process on
    /// this machine must leave out [`CreateEnvironment::strip_env`](crate::CreateEnvironment::strip_env). A relative
    /// [`cwd`](ExecRequest::cwd) starts where the session stands.
    ///
    /// # Errors
    ///
    /// Fails only where no honest exit code exists: the command could not be started, or what became of it is unknown.
    /// A command that ran and failed is `Ok` with its exit code. Mark the error [`not_started`](Error::not_started) where
    /// that is certain.
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error>;

    /// Releases what this object holds. Called at the end of a session and when an environment was idle for long;
    /// may be called twice, and returns within 15 s.
    ///
    /// An environment that was created [`persistent`](crate::CreateEnvironment::persistent) detaches, so that a later one
    /// with the same task id finds everything as it was. Any other takes down what it made.
    ///
    /// # Errors
    ///
    /// Fails if something was left behind that still costs money or space.
    fn cleanup(&self) -> Result<(), Error>;

    /// Saves what must outlive this process, where that does not happen by itself.
    ///
    /// # Errors
    ///
    /// Fails if the state could not be saved.
    fn persist(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the bytes of the file at `path` inside the environment.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Error> {
        let sink = Collect::new();
        // What stands before the mark is not the file's: a shell may greet or warn when it starts.
        let mut request = ExecRequest::new(r#"printf %s "$HOSTEL_MARK"; exec cat < "$HOSTEL_FILE""#);
        request.env.push(("HOSTEL_FILE".into(), path.into()));
        request.env.push(("HOSTEL_MARK".into(), BEGINNING.into()));
        let outcome = self.execute(request, &sink)?;
        let bytes = sink.into_bytes();
        let mark = BEGINNING.as_bytes();
        let begins = bytes.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len());
        let contents = bytes.get(begins.unwrap_or(0)..).unwrap_or_default();
        if outcome.exit_code == 0 && begins.is_some() {
            Ok(contents.to_vec())
        } else {
            Err(file_error("read", path, contents))
        }
    }

    /// Writes `contents` to the file at `path` inside the environment, replacing what it held.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), Error> {
        let sink = Collect::new();
        let mut request = ExecRequest::new(r#"cat > "$HOSTEL_FILE""#);
        request.env.push(("HOSTEL_FILE".into(), path.into()));
        request.stdin = Stdin::Bytes(contents.to_vec());
        let outcome = self.execute(request, &sink)?;
        if outcome.exit_code == 0 { Ok(()) } else { Err(file_error("write", path, &sink.into_bytes())) }
    }
}

/// Stands between what a shell says when it starts and the contents of a file.
const BEGINNING: &str = "\u{1}hostel:file\u{2}";

fn file_error(verb: &str, path: &str, output: &[u8]) -> Error {
    let reason = String::from_utf8_lossy(output);
    let reason = reason.lines().next().unwrap_or("no reason was given");
    Error::new(ErrorKind::IO, format!("failed to {verb} `{path}`: {reason}"))
}

/// How long a file operation built on `execute` may take.
const FILE_TIMEOUT: Duration = Duration::from_secs(60);

/// Collects the output of an internal command.
struct Collect {
    bytes: Mutex<Vec<u8>>,
    deadline: Instant,
}

impl Collect {
    fn new() -> Self {
        Self { bytes: Mutex::new(Vec::new()), deadline: Instant::now() + FILE_TIMEOUT }
    }

    fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ExecIo for Collect {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }
}
