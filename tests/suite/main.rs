//! Everything that crosses crates, with the real program, real plugins and real files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abi;
mod bubblewrap;
mod check;
mod config;
mod documents;
mod exec;
mod fuzzed;
mod hostile;
mod install;
mod limits;
mod manifests;
mod permissions;
mod places;
mod plugins;
mod providers;
mod road;
mod scaffold;
mod secrets;
mod shell;
mod sudo;
mod workers;
