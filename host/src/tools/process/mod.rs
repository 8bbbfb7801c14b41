//! The tool `process`: what an agent does with its background processes.
//!
//! It sees those of its own task and no others. `actions.rs` does what is asked for, `log.rs` shows output, `seen.rs` a process, and
//! `watching.rs` what it prints while somebody waits for it; `input.rs` and `result.rs` are what an agent gives and gets.

mod actions;
mod input;
mod log;
mod result;
mod seen;
mod tool;
mod watching;

pub(super) use tool::Process;
