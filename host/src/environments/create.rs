//! What a provider is told of the environment that it is to make.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hostel_plugin_api::shell::StripList;
use hostel_plugin_api::{CreateEnvironment, Environment, Error, ErrorKind};

use super::call_id::calls_of;
use crate::config::declared;
use crate::registry::{Entry, Flags, Provider};
use crate::world::World;
use crate::{home, policy};

/// Returns the host's own directory for a provider whose commands run among the host's files. Others have no use for it, and
/// must not be led to mount it.
fn host_cwd(flags: &Flags) -> Result<Option<String>, Error> {
    if flags.is_remote || flags.is_container {
        return Ok(None);
    }
    let wrong = |reason: String| {
        let message = format!("the directory in which Hostel was started {reason}");
        Error::new(ErrorKind::BAD_CWD, message).with_hint("change to another one").not_started()
    };
    // One that is gone is looked for only where the session does not stand elsewhere, and no other is named.
    let dir = std::env::current_dir()
        .or_else(|error| gone().ok_or(error))
        .map_err(|error| wrong(format!("cannot be used: {error}")))?;
    dir.into_os_string()
        .into_string()
        .map(Some)
        .map_err(|_| wrong("has a name that is not valid UTF-8".into()))
}

/// Returns the path that this process's own directory had before it was removed.
fn gone() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/cwd").ok()?;
    path.as_os_str().as_bytes().strip_suffix(b" (deleted)").map(|path| OsStr::from_bytes(path).into())
}

/// Why an environment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To run commands in.
    Commands,
    /// To destroy what an earlier process has left.
    Cleanup,
}

pub(super) fn create(
    world: &World,
    entry: &Entry,
    task: &str,
    id: Option<&str>,
) -> Result<Box<dyn Environment>, Error> {
    let (provider, mut request) = request(world, entry, task, Purpose::Commands)?;
    if let Some(id) = id {
        request.extra.insert("calls".into(), calls_of(id).into());
    }
    tracing::debug!(backend = entry.name(), task, "making an environment");
    provider
        .create_environment(request)
        .map_err(|error| error.with_context(format_args!("backend `{}`", entry.name())).not_started())
}

/// Opens the provider of `entry`, and puts together all that it is told of the environment of `task`.
pub(super) fn request(
    world: &World,
    entry: &Entry,
    task: &str,
    purpose: Purpose,
) -> Result<(Provider, CreateEnvironment), Error> {
    let name = entry.name();
    let provider = entry.provider()?;
    let config = &world.config;
    let invalid = |error: crate::config::ConfigError| {
        Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started()
    };
    let section = config.section(&format!("terminal.backends.{name}"));
    let named = |error: Error| error.with_context(format_args!("backend `{name}`")).not_started();
    declared::check(&provider.config_schema(), &section).map_err(|reason| {
        let message = format!("`terminal.backends.{name}`: {reason}");
        Error::new(ErrorKind::INVALID_REQUEST, message).not_started()
    })?;
    let resolved = provider.resolve_config(section).map_err(named)?;
    provider.check_requirements(&resolved).map_err(|error| {
        // The default of it names the backend itself.
        let error = error.not_started();
        if error.message().contains(name) { error } else { named(error) }
    })?;
    let flags = Flags::read(&provider);
    let state_dir = world.home.task(name, task);
    home::make_private(&state_dir).map_err(|error| {
        let message = format!("failed to make `{}`: {error}", state_dir.display());
        Error::new(ErrorKind::IO, message).with_hint("check its permissions and the free space").not_started()
    })?;
    let mut request = CreateEnvironment::default();
    task.clone_into(&mut request.task_id);
    request.cwd = policy::cwd::start(config.text("terminal.cwd").map_err(invalid)?.as_deref(), &flags);
    request.timeout = config.seconds("terminal.timeout").map_err(invalid)?;
    request.host_cwd = match host_cwd(&flags) {
        // Nothing will run there.
        Err(_) if purpose == Purpose::Cleanup => None,
        found => found?,
    };
    request.config = resolved;
    request.state_dir = Some(state_dir.to_string_lossy().into_owned());
    // The setting speaks of containers; a session on this machine is always taken up again.
    request.persistent = purpose == Purpose::Commands
        && (!flags.is_container || config.flag("terminal.container_persistent").map_err(invalid)?);
    if purpose == Purpose::Cleanup {
        request.extra.insert("purpose".into(), "cleanup".into());
    }
    // What the provider names now may be more than what it named when it was enabled.
    let strip = world.registry.strip_env().into_iter().chain(flags.strip_env_keys.iter().cloned());
    request.strip_env = StripList::new(strip).patterns().to_vec();
    let files = config.list("terminal.shell_init_files").map_err(invalid)?;
    if !files.is_empty() {
        request.extra.insert("shell_init_files".into(), files.into());
    }
    if !config.flag("terminal.auto_source_bashrc").map_err(invalid)? {
        request.extra.insert("auto_source_bashrc".into(), false.into());
    }
    Ok((provider, request))
}
