//! The interface between Hostel and its plugins as it was in version 1.0, frozen.
//!
//! A copy of `plugin-api` without the shared shell session, which does not cross, and without tests. Plugins that were built
//! with it stand for all those that exist: they must run on every host of interface 1.x. So nothing here is ever changed; a
//! later version gets a folder or a patch of its own.

pub mod abi;
mod context;
mod environment;
mod error;
mod export;
mod io;
mod provider;

/// For the values of settings and later fields.
pub use serde_json;
/// For log records, which come out of the host's log.
pub use tracing;

pub use context::{PluginContext, Surroundings};
pub use environment::{Ended, Environment, ExecOutcome, ExecRequest, Extra};
pub use error::{Error, ErrorKind};
pub use io::{ExecIo, Flow, Stdin};
pub use provider::{CreateEnvironment, DoctorCheck, Probe, ProbeStatus, TerminalEnvironmentProvider};
