//! How a process is started in the place where a session lives.

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::spawn::{self, Spawn, SpawnError};
use crate::{Error, ErrorKind};

/// The shell that runs a session's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// Its path, inside.
    pub path: PathBuf,
    /// Whether it is bash. Any other is taken for a POSIX shell.
    pub is_bash: bool,
}

impl Shell {
    /// Returns the best shell below `root`: bash where there is one, else `sh`.
    #[must_use]
    pub fn find_below(root: &Path) -> Option<Self> {
        let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].map(|path| (path, true));
        let all = bash.into_iter().chain([("/bin/sh", false), ("/usr/bin/sh", false)]);
        all.map(|(path, is_bash)| Self { path: path.into(), is_bash })
            .find(|shell| is_executable(&root.join(shell.path.strip_prefix("/").unwrap_or(&shell.path))))
    }
}

/// Returns the full path of the program `name`, searched in `path` (the value of a `PATH` variable).
#[must_use]
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    path.as_bytes()
        .split(|byte| *byte == b':')
        .filter(|part| part.starts_with(b"/"))
        .map(|part| Path::new(OsStr::from_bytes(part)).join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// One process to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Program and arguments; the program by its path inside.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Directory in which it starts, inside.
    pub cwd: &'a Path,
    /// Becomes its standard input.
    pub stdin: BorrowedFd<'a>,
    /// Becomes its standard output and standard error.
    pub output: BorrowedFd<'a>,
    /// Becomes its descriptor 3.
    pub script: BorrowedFd<'a>,
    /// A file of this machine that the process must be able to write to, under the path that
    /// [`record_path`](Transport::record_path) gives. It exists already.
    pub record: &'a Path,
    /// Become its descriptors from 4 on. Empty, unless a transport puts a program in front that reads some.
    pub extra: Vec<BorrowedFd<'a>>,
    /// Whether `stdin` is a terminal, which becomes its controlling terminal and its output too.
    pub terminal: bool,
    /// The cgroup of this machine that it is born in: as [`Spawn::cgroup`].
    pub cgroup: Option<BorrowedFd<'a>>,
}

/// A process that was started. Its end shows on `pidfd`, and it stays a zombie until the session has reaped it.
#[derive(Debug)]
pub struct Process {
    /// Its id on this machine.
    pub pid: Pid,
    /// Becomes readable when it ends.
    pub pidfd: OwnedFd,
}

/// The way to start processes in one place.
pub trait Transport: Send + Sync {
    /// Returns the shell there.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    fn shell(&self) -> Result<Shell, Error>;

    /// Returns the path, inside, of a file that is at `outside` on this machine: the one into which the shell writes its state.
    fn record_path(&self, outside: &Path) -> PathBuf {
        outside.to_owned()
    }

    /// Returns whether `path` is a directory there that can be entered.
    fn is_directory(&self, path: &Path) -> bool;

    /// Returns whether [`start`](Self::start) starts processes on this machine just as they are asked for, with nothing in front of
    /// them. A session may then take a shell that it keeps for the purpose instead. Default: false.
    fn is_plain(&self) -> bool {
        false
    }

    /// Returns whether what [`start`](Self::start) returns is not the process that was asked for but a program in front of it, which lets
    /// no signal through and ends everything with itself. It is then killed, and not asked to end. Default: false.
    fn is_front(&self) -> bool {
        false
    }

    /// Starts a process in a session of its own, with default signal dispositions and no descriptors but those named.
    ///
    /// # Errors
    ///
    /// Fails if the process did not start.
    fn start(&self, launch: Launch<'_>) -> Result<Process, Error>;
}

/// Starts processes on this machine, as this user.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTransport;

impl LocalTransport {
    /// Starts `launch` on this machine. For transports that put another program in front.
    ///
    /// # Errors
    ///
    /// Fails if the process did not start.
    pub fn spawn(launch: &Launch<'_>) -> Result<Process, Error> {
        let program = launch.argv.first().map_or(Path::new(""), Path::new);
        let output = if launch.terminal { launch.stdin } else { launch.output };
        let spawn = Spawn {
            program,
            argv: &launch.argv,
            env: &launch.env,
            cwd: launch.cwd,
            descriptors: [launch.stdin, output, output, launch.script]
                .into_iter()
                .chain(launch.extra.iter().copied())
                .collect(),
            terminal: launch.terminal,
            cgroup: launch.cgroup,
        };
        spawn::spawn(&spawn).map_err(|SpawnError { error, started }| {
            let program =
                launch.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
            let error = Error::new(ErrorKind::IO, format!("failed to start `{program}`: {error}"));
            if started { error } else { error.not_started() }
        })
    }
}

impl Transport for LocalTransport {
    fn shell(&self) -> Result<Shell, Error> {
        Shell::find_below(Path::new("/")).ok_or_else(|| {
            Error::new(ErrorKind::UNAVAILABLE, "there is neither `bash` nor `sh` on this machine")
                .not_started()
        })
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn start(&self, launch: Launch<'_>) -> Result<Process, Error> {
        Self::spawn(&launch)
    }
}
