//! Starts a worker, behind its keeper.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use hostel_plugin_api::shell::{Process, Spawn, find_program, spawn};

use super::super::load::Discovered;
use super::keeper::KEEPER_COMMAND;

/// Variables of the host's environment that every worker gets.
const ALLOWED: [&str; 16] = [
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
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
];

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

/// The program that can be a keeper and a worker.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that this program itself handles the two hidden commands, so that workers are made of it.
pub fn this_program_serves_workers() {
    if let Ok(path) = std::env::current_exe() {
        let _ = PROGRAM.set(path);
    }
}

/// Returns the program to start. Where it was replaced since, its file is still there for those who run it.
fn program() -> io::Result<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    match PROGRAM.get() {
        Some(path) if path.exists() => Ok(path.clone()),
        Some(_) => Ok(own),
        None => {
            // A program that uses this crate as a library.
            let beside = std::env::current_exe().ok().and_then(|path| {
                path.ancestors().skip(1).take(2).map(|dir| dir.join("hostel")).find(|path| path.is_file())
            });
            let path = std::env::var_os("PATH").unwrap_or_default();
            let missing = "there is no `hostel` beside this program or in `PATH`, which runs plugins in a process of their own";
            beside
                .or_else(|| find_program("hostel", &path))
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, missing))
        }
    }
}

/// Returns the worker's environment: what its plugin has named, and a few that say where things are.
pub(super) fn environment(found: &Discovered, secrets: &[String]) -> Vec<(OsString, OsString)> {
    let manifest = &found.manifest;
    let named = manifest.requires_env.iter().map(|required| &required.name);
    let named: Vec<&String> = named.chain(&manifest.permissions.env).chain(secrets).collect();
    let wanted = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            ALLOWED.contains(&name)
                || name.starts_with(ALLOWED_PREFIX)
                || named.iter().any(|wanted| match wanted.strip_suffix('*') {
                    Some(prefix) => !prefix.is_empty() && name.starts_with(prefix),
                    None => *wanted == name,
                })
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
    let argv = [program()?.into_os_string(), KEEPER_COMMAND.into(), plugin.into()];
    let descriptors = vec![keepers.as_fd(), workers.as_fd(), said.as_fd()];
    let keeper =
        spawn(&Spawn { argv: &argv, env, cwd: Path::new("/"), descriptors }).map_err(|error| error.error)?;
    Ok(Started { keeper, line, socket, errors })
}
