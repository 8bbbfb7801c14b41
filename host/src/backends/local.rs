//! Commands on this machine, as this user.

use std::path::Path;

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment, Transport};
use hostel_plugin_api::{CreateEnvironment, Environment, Error, Probe, TerminalEnvironmentProvider};

/// The provider of `local`.
pub(super) struct Local;

impl TerminalEnvironmentProvider for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn display_name(&self) -> String {
        "Local".into()
    }

    fn description(&self) -> String {
        "Run commands on this machine, as this user".into()
    }

    fn is_available(&self) -> bool {
        LocalTransport.shell().is_ok()
    }

    fn probe(&self) -> Probe {
        match LocalTransport.shell() {
            Ok(shell) => Probe::ready(shell.path.display().to_string()),
            Err(error) => Probe::unavailable(error.to_string()),
        }
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn is_container(&self) -> bool {
        false
    }

    fn env_description(&self) -> String {
        "the machine that Hostel runs on".into()
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        let here = request.host_cwd.clone().unwrap_or_else(|| "/".into());
        let options = SessionOptions::new(&request, std::env::vars_os().collect(), Path::new(&here));
        Ok(Box::new(ShellEnvironment::new(LocalTransport, options)?))
    }
}
