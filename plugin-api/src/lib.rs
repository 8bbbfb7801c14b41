//! Write terminal environment providers for Hostel.
//!
//! Hostel runs shell commands for AI agents and people, in whatever place is selected. A *provider* adds such a place: a
//! vendor's cloud, a container engine, a sandbox. Providers come in plugins, which are folders with a `plugin.yaml` and a shared
//! library; this crate is all that the library's author needs.
//!
//! # A complete plugin
//!
//! ```
//! use std::process::{Command, Stdio};
//!
//! use hostel_plugin_api::{
//!     CreateEnvironment, Environment, Error, ExecIo, ExecOutcome, ExecRequest, PluginContext, TerminalEnvironmentProvider,
//! };
//!
//! /// Runs each command in a fresh shell, and remembers nothing. A vendor would call its service here.
//! struct PlainBox;
//!
//! impl Environment for PlainBox {
//!     fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
//!         let mut command = Command::new("sh");
//!         command.args(["-c", &request.command]).stdin(Stdio::null());
//!         // Nothing of the host's own environment, least of all its secrets.
//!         command.env_clear().env("PATH", "/usr/bin:/bin").envs(request.env);
//!         if let Some(cwd) = &request.cwd {
//!             command.current_dir(cwd);
//!         }
//!         let output = command.output().map_err(|error| Error::io("failed to start `sh`", &error).not_started())?;
//!         io.output(&output.stdout);
//!         io.output(&output.stderr);
//!         Ok(ExecOutcome::from(output.status))
//!     }
//!
//!     fn cleanup(&self) -> Result<(), Error> {
//!         Ok(())
//!     }
//! }
//!
//! struct PlainProvider;
//!
//! impl TerminalEnvironmentProvider for PlainProvider {
//!     fn name(&self) -> &str {
//!         "plainbox"
//!     }
//!
//!     fn is_available(&self) -> bool {
//!         true
//!     }
//!
//!     // The defaults are those of a vendor's cloud. This box is on the user's own machine, and no wall stands around it.
//!     fn is_remote(&self) -> bool {
//!         false
//!     }
//!
//!     fn is_container(&self) -> bool {
//!         false
//!     }
//!
//!     fn strip_env_keys(&self) -> Vec<String> {
//!         vec!["PLAINBOX_TOKEN".into()]
//!     }
//!
//!     fn create_environment(&self, _request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
//!         Ok(Box::new(PlainBox))
//!     }
//! }
//!
//! fn register(context: &mut PluginContext) -> Result<(), Error> {
//!     context.register_terminal_environment_provider(PlainProvider);
//!     Ok(())
//! }
//!
//! hostel_plugin_api::export_plugin!(register);
//! # fn main() {}
//! ```
//!
//! `Cargo.toml` makes the crate a library that can be loaded:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! hostel-plugin-api = "1"        # or { path = "…/plugin-api" } in a checkout
//! ```
//!
//! Beside the library, in the same folder, stands `plugin.yaml`:
//!
//! ```yaml
//! name: plainbox
//! version: 0.1.0
//! description: A fresh shell for each command
//! kind: backend
//! ```
//!
//! ```sh
//! cargo build --release
//! mkdir -p ~/.hostel/plugins/plainbox
//! cp plugin.yaml target/release/libplainbox.so ~/.hostel/plugins/plainbox/
//! hostel plugins enable plainbox
//! hostel config set terminal.backend plainbox
//! hostel exec -- 'echo hello'
//! ```
//!
//! # The shared shell session
//!
//! The example above forgets the working directory, does not stream, and cannot be interrupted. [`shell`] does all that for
//! any place that can start a process: see [`shell::ShellEnvironment`], and [`shell::Transport`] for the one thing to supply.
//!
//! # Compatibility
//!
//! A plugin built for interface 1.x ([`abi::root::API_VERSION`]) runs on every host that has interface 1.y. Fields that a later version adds
//! arrive in `extra`; methods that a later version adds have defaults. See [`abi`].

pub mod abi;
mod context;
mod environment;
mod error;
mod export;
mod io;
mod provider;
pub mod shell;
pub mod testing;

/// For the values of settings and later fields.
pub use serde_json;
/// For log records, which come out of the host's log.
pub use tracing;

pub use context::{PluginContext, Surroundings};
pub use environment::{Ended, Environment, ExecOutcome, ExecRequest, Extra};
pub use error::{Error, ErrorKind};
pub use io::{ExecIo, Flow, Stdin};
pub use provider::{CreateEnvironment, DoctorCheck, Probe, ProbeStatus, TerminalEnvironmentProvider};
