//! Everything that crosses crates, with the real program, real plugins and real files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abi;
mod bubblewrap;
mod check;
mod config;
mod conformance;
mod documents;
mod env;
mod exec;
mod fuzzed;
mod hostile;
mod install;
mod killed;
mod limits;
mod manifests;
mod mcp;
mod permissions;
mod places;
mod plugins;
mod process_input;
mod process_lifetimes;
mod process_output;
mod processes;
mod providers;
mod road;
mod scaffold;
mod secrets;
mod shell;
mod sudo;
mod terminals;
mod tool_files;
mod tool_patch;
mod tool_process;
mod tool_search;
mod tool_terminal;
mod workers;
