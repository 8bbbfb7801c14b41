//! A plugin that is built for each version of the interface, and says what reached it.
//!
//! Before each command's own output it prints one line: the later fields that the host has sent, whether or not this version
//! knows them.

use std::io::Read;
use std::process::{Command, Stdio};

use hostel_plugin_api::{
    CreateEnvironment, Environment, Error, ExecIo, ExecOutcome, ExecRequest, Extra, Flow, PluginContext,
    TerminalEnvironmentProvider,
};

struct Probe;

impl TerminalEnvironmentProvider for Probe {
    fn name(&self) -> &str {
        "abiprobe"
    }

    fn is_available(&self) -> bool {
        true
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn is_container(&self) -> bool {
        false
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        Ok(Box::new(Place { region: field(&request.extra, "region") }))
    }

    #[cfg(feature = "v1_1")]
    fn region(&self) -> String {
        "north".into()
    }
}

/// Returns a later field as JSON, or `none`.
fn field(extra: &Extra, key: &str) -> String {
    extra.get(key).map_or_else(|| "none".to_owned(), ToString::to_string)
}

struct Place {
    /// What the host said of the region.
    region: String,
}

impl Environment for Place {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        let failed = |error: std::io::Error| Error::io("failed to run `sh`", &error);
        let heard = format!("region={} trace={}\n", self.region, field(&request.extra, "trace"));
        io.output(heard.as_bytes());
        let (mut output, merged) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &request.command]).stdin(Stdio::null());
        command.stdout(merged.try_clone().map_err(failed)?).stderr(merged);
        // Nothing of the host's own environment, least of all its secrets.
        command.env_clear().env("PATH", "/usr/bin:/bin").envs(request.env);
        command.env("HOSTEL_CALL", &request.call_id);
        if let Some(cwd) = &request.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn().map_err(failed)?;
        // It holds the pipe's other end, so there would be no end of the output.
        drop(command);
        let mut chunk = [0; 4096];
        loop {
            let length = output.read(&mut chunk).map_err(failed)?;
            if length == 0 || io.output(&chunk[..length]) == Flow::Stop {
                break;
            }
        }
        // No reader any more: whoever still writes ends by that.
        drop(output);
        let outcome = ExecOutcome::from(child.wait().map_err(failed)?);
        #[cfg(feature = "v1_1")]
        let outcome = with_region(outcome);
        Ok(outcome)
    }

    fn cleanup(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Adds a later field, which only hosts of interface 1.1 know.
#[cfg(feature = "v1_1")]
fn with_region(mut outcome: ExecOutcome) -> ExecOutcome {
    outcome.extra.insert("region".into(), "north".into());
    outcome
}

fn register(context: &mut PluginContext) -> Result<(), Error> {
    context.register_terminal_environment_provider(Probe);
    Ok(())
}

hostel_plugin_api::export_plugin!(register);
