//! Files of the sandbox: reading one, and writing one whole.
//!
//! A shell and the standard programs are all that every sandbox has, so all of it is done by scripts. What they must get
//! right is what a write changes besides the contents: nothing.
//!
//! | file | holds |
//! | --- | --- |
//! | `read_file.rs`, `write_file.rs` | the tools |
//! | `access.rs` with `load.sh`, `store.sh`, `entry.sh`, `folders.sh`, `check.sh`, `unmake.sh` | reading, writing, removing and renaming files, for `patch` too |
//! | `anew.rs` | changes while others write |
//! | `look.rs` with `look.sh` | what a file is, and some of its lines |
//! | `resolve.sh`, `begin.sh` | what each script does first: finding out which file is meant |
//! | `rules.rs`, `protected.rs` | the files that are left alone |
//! | `answer.rs`, `error.rs` | what the scripts print, and why something was not done |
//! | `text.rs` | text apart from the form in which a file holds it |
//! | `numbered.rs`, `kinds.rs`, `notebook.rs`, `office.rs`, `archive.rs`, `similar.rs` | what is shown of a file, or instead of one |
//! | `reads.rs` | what the session has seen |
//! | `syntax.rs`, `lint.rs` with `python.sh` | whether what is written can be read |

mod access;
mod anew;
mod answer;
mod archive;
mod error;
mod kinds;
mod lint;
mod look;
mod notebook;
mod numbered;
mod office;
mod protected;
mod read_file;
mod reads;
mod rules;
mod similar;
mod syntax;
mod text;
mod write_file;

pub(super) use access::{Before, Digest, Files, Loaded, Need};
pub(super) use anew::anew;
pub(super) use error::FileError;
pub(super) use lint::{Lint, linted};
pub(super) use protected::{hidden_beside, own_home};
pub(super) use read_file::ReadFile;
pub(super) use reads::Reads;
pub(super) use text::{Edit, Text};
pub(super) use write_file::WriteFile;
