//! `AcmeBox`: the smallest terminal environment provider, to be copied.
//!
//! A vendor's provider would talk to the vendor's service. This one makes a folder for each task, its box, and runs commands
//! in it on this machine, so that it can be tried without an account. It wants a token all the same, as a vendor would,
//! and hides it from the commands.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment};
use hostel_plugin_api::{
    CreateEnvironment, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, PluginContext,
    TerminalEnvironmentProvider,
};

/// The variable that holds the token.
const TOKEN: &str = "ACMEBOX_TOKEN";

struct AcmeBoxProvider;

impl TerminalEnvironmentProvider for AcmeBoxProvider {
    fn name(&self) -> &'static str {
        "acmebox"
    }

    fn display_name(&self) -> String {
        "AcmeBox".into()
    }

    fn description(&self) -> String {
        "Run commands in an AcmeBox folder on this machine".into()
    }

    fn is_available(&self) -> bool {
        std::env::var_os(TOKEN).is_some_and(|token| !token.is_empty())
    }

    fn setup_instructions(&self) -> Vec<String> {
        vec![format!("set `{TOKEN}` to your AcmeBox token; any text will do")]
    }

    /// A vendor whose commands run elsewhere leaves this at its default.
    fn is_remote(&self) -> bool {
        false
    }

    /// A folder is no wall: approval of dangerous commands stays on.
    fn skip_container_guards(&self) -> bool {
        false
    }

    fn env_description(&self) -> String {
        "an AcmeBox folder on the machine that Hostel runs on".into()
    }

    fn strip_env_keys(&self) -> Vec<String> {
        vec![TOKEN.into()]
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        let Some(state) = &request.state_dir else {
            let message = "nothing may be kept, so there is no place for a box";
            return Err(Error::new(ErrorKind::UNSUPPORTED, message).not_started());
        };
        let home = Path::new(state).join("box");
        fs::create_dir_all(&home).map_err(|error| {
            Error::new(ErrorKind::IO, format!("failed to make the box `{}`: {error}", home.display()))
                .not_started()
        })?;
        let options = SessionOptions::new(&request, variables(&home), &home);
        let session = ShellEnvironment::new(LocalTransport, options)?;
        Ok(Box::new(AcmeBox { session, home, keep: request.persistent }))
    }
}

/// What a command in a box finds in its environment: nothing of the host's but where programs are and how to speak.
fn variables(home: &Path) -> Vec<(OsString, OsString)> {
    let kept = ["PATH", "LANG", "LC_ALL", "TERM", "USER"];
    let kept = kept.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    kept.chain([("HOME".into(), home.into()), ("ACMEBOX".into(), "1".into())]).collect()
}

struct AcmeBox {
    session: ShellEnvironment<LocalTransport>,
    home: PathBuf,
    keep: bool,
}

impl Environment for AcmeBox {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        self.session.execute(request, io)
    }

    fn cleanup(&self) -> Result<(), Error> {
        self.session.cleanup()?;
        if self.keep {
            return Ok(());
        }
        match fs::remove_dir_all(&self.home) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("failed to remove the box `{}`: {error}", self.home.display());
                Err(Error::new(ErrorKind::IO, message))
            }
            _ => Ok(()),
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the shape that `export_plugin!` wants")]
fn register(context: &mut PluginContext) -> Result<(), Error> {
    context.register_terminal_environment_provider(AcmeBoxProvider);
    Ok(())
}

hostel_plugin_api::export_plugin!(register);
