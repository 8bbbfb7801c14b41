//! The tool `terminal`: one shell command, in the foreground or in the background.
//!
//! | file | holds |
//! | --- | --- |
//! | `tool.rs`, `input.rs`, `result.rs` | what an agent gives and gets |
//! | `foreground.rs`, `retry.rs`, `taking.rs`, `tidy.rs` | a command that is waited for, and its output |
//! | `background.rs` | a command that is not |
//! | `guidance.rs`, `servers.rs`, `called.rs`, `guess.rs`, `workdir.rs` | what is refused before anything runs |
//! | `meaning.rs` | what an exit code means that is no failure |
//! | `remembered.rs` | what one call leaves for the next |

mod background;
mod called;
mod foreground;
mod guess;
mod guidance;
mod input;
mod meaning;
mod remembered;
mod result;
mod retry;
mod servers;
mod taking;
mod tidy;
mod tool;
mod workdir;

pub(super) use remembered::Remembered;
pub(super) use retry::again;
pub(super) use taking::{Taken, Taking};
pub(super) use tool::Terminal;
