//! `~/.hostel/.env`: secrets that Hostel finds without having them in the environment that it is started from.
//!
//! The form is what shells and `docker --env-file` have in common: lines of `KEY=VALUE`, `export` in front or not, comments
//! after `#`. In double quotes `\n`, `\r`, `\t`, `\"`, `\\`, `\$` and `` \` `` stand for one character each; in single quotes
//! everything stands for itself; both may go over several lines. Nothing is ever substituted. What cannot be understood is an
//! error that names its line and never shows what is there.

mod error;
mod file;
mod text;

pub use error::DotenvError;
pub use file::{Variables, load, set};
