//! draft
pub mod abi;
mod context;
mod environment;
mod error;
mod export;
mod io;
mod provider;

pub use context::PluginContext;
pub use environment::{Ended, Environment, ExecOutcome, ExecRequest, Extra};
pub use error::{Error, ErrorKind};
pub use io::{ExecIo, Flow, Stdin};
pub use provider::{CreateEnvironment, DoctorCheck, Probe, ProbeStatus, TerminalEnvironmentProvider};
pub mod shell;
