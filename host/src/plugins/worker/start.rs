//! Starts a worker, behind its keeper.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostel_plugin_api::shell::{Process, Spawn, find_program, spawn};

use super::super::load::Discovered;
use super::super::permissions::Network;
use super::keeper::WORKER_COMMAND;

/// Variables of the host's environment that every worker gets.
const ALLOWED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// And those that one gets which may use the network.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"];

/// All names that begin so are allowed as well.
const ALLOWED_PREFIX: &str = "LC_";

/// How long the socket may be full before the worker counts as hung: it always reads.
const WRITING: Duration = Duration::from_secs(5);

/// The ends of what connects us to a keeper and its worker.
pub(super) struct Started {
    pub(super) keeper: Process,
    pub(super) line: UnixStream,
    pub(super) socket: UnixStream,
    pub(super) errors: PipeReader,
}

/// The file of the program that runs, also where an update has replaced it since: host, keeper and worker are of one version.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// What the two processes are called, for whoever lists processes.
pub(super) const OWN_NAME: &str = "hostel";

/// Whether this program itself can be a keeper and a worker.
static SERVES: AtomicBool = AtomicBool::new(false);

/// Says that this program itself handles the two hidden commands, so that workers are made of it.
pub fn this_program_serves_workers() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Returns the program that is started for Hostel's own hidden commands.
///
/// # Errors
///
/// Fails if this program is not Hostel's, and there is none beside it.
pub(crate) fn program() -> io::Result<PathBuf> {
    if SERVES.load(Ordering::Relaxed) {
        return Ok(OWN_PROGRAM.into());
    }
    // A program that uses this crate as a library.
    let beside = std::env::current_exe().ok().and_then(|path| {
        path.ancestors().skip(1).take(2).map(|dir| dir.join(OWN_NAME)).find(|path| path.is_file())
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing =
        "there is no `hostel` beside this program or in `PATH`, which runs plugins in a process of their own";
    let missing = || io::Error::new(io::ErrorKind::NotFound, missing);
    beside.or_else(|| find_program(OWN_NAME, &path)).ok_or_else(missing)
}

/// Returns the worker's environment: what its plugin has named, and a few that say where things are.
pub(super) fn environment(found: &Discovered, secrets: &[String]) -> Vec<(OsString, OsString)> {
    let manifest = &found.manifest;
    let asked = manifest.asked().env;
    // Only what is named in full: by a pattern a library could ask for everything.
    let named: Vec<&String> = asked.iter().chain(secrets).collect();
    let online = manifest.permissions.network != Network::None;
    let wanted = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            ALLOWED.contains(&name)
                || (online && PROXIES.contains(&name))
                || name.starts_with(ALLOWED_PREFIX)
                || named.iter().any(|wanted| *wanted == name)
        })
    };
    let limits = manifest.permissions.exec.then(super::limits::for_commands);
    std::env::vars_os().filter(|(name, _)| wanted(name)).chain(limits).collect()
}

pub(super) fn start(plugin: &str, env: &[(OsString, OsString)]) -> io::Result<Started> {
    let (line, keepers) = UnixStream::pair()?;
    let (socket, workers) = UnixStream::pair()?;
    socket.set_write_timeout(Some(WRITING))?;
    let (errors, said) = io::pipe()?;
    let program = program()?;
    let argv = [OWN_NAME.into(), WORKER_COMMAND.into(), plugin.into()];
    let descriptors = vec![keepers.as_fd(), workers.as_fd(), said.as_fd()];
    let keeper = spawn(&Spawn {
        program: &program,
        argv: &argv,
        env,
        cwd: Path::new("/"),
        descriptors,
        terminal: false,
        cgroup: None,
    })
    .map_err(|error| error.error)?;
    Ok(Started { keeper, line, socket, errors })
}
