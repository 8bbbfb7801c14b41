//! Everything that crosses crates, with the real program, real plugins and real files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abi;
mod bubblewrap;
mod config;
mod documents;
mod exec;
mod limits;
mod manifests;
mod places;
mod plugins;
mod providers;
mod road;
mod secrets;
