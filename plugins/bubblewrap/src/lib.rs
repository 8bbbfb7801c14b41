//! A sandbox on this machine: every command runs under `bwrap`, with a root of its own.
//!
//! Inside, `/usr` is the host's and cannot be written to, `/workspace` is the task's folder (or one that the user names),
//! `/tmp` is the task's own, and there is nothing else: no home directories, no network unless asked for, no capabilities.
//! Each command has process ids of its own, so whatever it leaves in the background ends with it.

mod sandbox;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hostel_plugin_api::shell::{SessionOptions, ShellEnvironment, find_program};
use hostel_plugin_api::{
    CreateEnvironment, Environment, Error, ErrorKind, PluginContext, Probe, TerminalEnvironmentProvider,
};
use sandbox::{Sandbox, WORKSPACE};
use serde_json::{Value, json};

const INSTALL: &str =
    "install it with `apt-get install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap` (Fedora)";

struct BubblewrapProvider;

fn program() -> Option<PathBuf> {
    find_program("bwrap", &std::env::var_os("PATH").unwrap_or_default())
}

/// Makes the smallest sandbox, since a program that is there may still not be allowed to make any.
fn works(program: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(["--unshare-all", "--ro-bind", "/", "/", "/bin/true"]).env_clear().stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or("it gives no reason").to_owned())
}

impl TerminalEnvironmentProvider for BubblewrapProvider {
    fn name(&self) -> &'static str {
        "bubblewrap"
    }

    fn display_name(&self) -> String {
        "Bubblewrap".into()
    }

    fn description(&self) -> String {
        "Run commands in a bubblewrap sandbox on this machine".into()
    }

    fn is_available(&self) -> bool {
        program().is_some()
    }

    fn probe(&self) -> Probe {
        match program() {
            Some(path) => match works(&path) {
                Ok(()) => Probe::ready(path.display().to_string()),
                Err(reason) => {
                    Probe::unavailable(format!("`{}` does not work here: {reason}", path.display()))
                }
            },
            None => Probe::needs_setup(format!("`bwrap` is not on the path; {INSTALL}")),
        }
    }

    fn setup_instructions(&self) -> Vec<String> {
        vec![INSTALL.into()]
    }

    fn is_remote(&self) -> bool {
        false
    }

    /// The workspace may be a folder of the user's own, which no sandbox protects: approval stays on.
    fn skip_container_guards(&self) -> bool {
        false
    }

    fn env_description(&self) -> String {
        "a bubblewrap sandbox on the machine that Hostel runs on".into()
    }

    fn default_cwd(&self) -> Option<String> {
        Some(WORKSPACE.into())
    }

    fn guest_home(&self) -> Option<String> {
        Some(WORKSPACE.into())
    }

    fn config_schema(&self) -> Value {
        json!({
            "network": {"type": "boolean", "default": false, "description": "whether commands have a network"},
            "workspace": {"type": "string", "description": "folder of the host that becomes `/workspace`"},
        })
    }

    fn resolve_config(&self, config: Value) -> Result<Value, Error> {
        let wrong = |message: &str| Err(Error::new(ErrorKind::INVALID_REQUEST, message).not_started());
        let network = config.get("network").cloned().unwrap_or(Value::Bool(false));
        if !network.is_boolean() {
            return wrong("`network` must be true or false");
        }
        let workspace = config.get("workspace").cloned().unwrap_or_default();
        match &workspace {
            Value::Null => {}
            Value::String(path) if Path::new(path).is_absolute() && Path::new(path).is_dir() => {}
            _ => return wrong("`workspace` must be the absolute path of a folder"),
        }
        Ok(json!({"network": network, "workspace": workspace}))
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        let program = program().ok_or_else(|| {
            Error::new(ErrorKind::NOT_CONFIGURED, "`bwrap` is not on the path")
                .with_hint(INSTALL)
                .not_started()
        })?;
        let sandbox = Sandbox::new(
            program,
            request.state_dir.as_deref().map(Path::new),
            request.config["workspace"].as_str().map(Path::new),
            request.config["network"] == true,
            request.persistent,
        )?;
        let options = SessionOptions::new(&request, variables(), Path::new(WORKSPACE));
        Ok(Box::new(sandbox::Session { session: ShellEnvironment::new(sandbox.clone(), options)?, sandbox }))
    }
}

/// What a command in the sandbox finds in its environment.
fn variables() -> Vec<(OsString, OsString)> {
    let fixed = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", WORKSPACE),
        ("USER", "sandbox"),
        ("LOGNAME", "sandbox"),
        ("SHELL", "/bin/bash"),
    ];
    let kept = ["LANG", "LC_ALL", "TERM"];
    let kept = kept.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    fixed.into_iter().map(|(name, value)| (OsStr::new(name).into(), value.into())).chain(kept).collect()
}

#[allow(clippy::unnecessary_wraps, reason = "the shape that `export_plugin!` wants")]
fn register(context: &mut PluginContext) -> Result<(), Error> {
    context.register_terminal_environment_provider(BubblewrapProvider);
    Ok(())
}

hostel_plugin_api::export_plugin!(register);
