//! The conformance kit: holds a provider to what this crate's documentation asks of it.
//!
//! A plugin's own tests run it over its provider, and a host runs it over a plugin that somebody has written:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use hostel_plugin_api::TerminalEnvironmentProvider;
//! use hostel_plugin_api::testing::{Options, check};
//!
//! # fn the_provider_keeps_the_rules(provider: Arc<dyn TerminalEnvironmentProvider>) {
//! // In a test of the plugin's own:
//! check(&provider, &Options::default()).assert();
//! # }
//! ```
//!
//! Each rule is one row of the [`Report`]. A failed row is a breach of the interface, and says how to see it without the kit.
//! Where a rule cannot be tried, or tries what the interface leaves open, its row is skipped and says why. No provider can hang the
//! kit or end it by a panic: every rule runs on a thread of its own, which is left behind when its time is up.
//!
//! The kit makes about twenty environments, most of them one after the other, under task ids that nobody has used before, and cleans
//! them up: with a provider whose environments cost money, so does the kit. The commands that it runs in them are harmless, and
//! need the tools that every POSIX system has.
//!
//! The rules below `leaks.` count what the whole process holds. A test that runs them stands in a test binary of its own, or
//! runs while no other does.

mod bench;
mod commands;
mod declares;
mod ends;
mod held;
mod hides;
mod inputs;
mod kit;
mod leaks;
mod life;
mod limit;
mod options;
mod processes;
mod recorder;
mod report;
mod rule;

pub use kit::{check, check_with};
pub use options::Options;
pub use recorder::Recorder;
pub use report::{Report, Row, Verdict};
