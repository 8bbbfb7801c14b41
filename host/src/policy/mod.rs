//! Rules that every face obeys. Each asks the registry, and none knows a backend by its name.

pub mod approvals;
pub mod commands;
pub mod cwd;
mod expansion;
mod grammar;
pub mod hints;
pub mod lexer;
pub mod redact;
pub mod secrets;
pub mod sudo;
pub mod token;
