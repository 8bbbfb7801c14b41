//! Installing, updating and removing plugins.
//!
//! What is installed was made by somebody else: names that lead out of their folder, links, archives that never end. And it
//! takes the place of something that may be in use. So nothing is put where it will be used before all of it has been looked
//! at: a source is brought into a folder of its own beside the plugins (`stage`), under one set of rules whatever it came as
//! (`tree`), and checked as `plugins list` would check it; only then one rename puts it in place (`place`). A library that a
//! running host has loaded is never written to, and until the very end the old one can be put back.
//!
//! | file | what |
//! | --- | --- |
//! | `source`, `address` | what the user may name: a folder, an archive, an address, a git repository |
//! | `fetch`, `git`, `git_run` | getting it |
//! | `unpack`, `tarball`, `zipfile`, `folder` | reading it, entry by entry |
//! | `tree` | the rules for entries: names, links, sizes, modes |
//! | `stage` | from a source to a checked folder |
//! | `place` | into place, and back |
//! | `receipt` | where a plugin came from |
//! | `add`, `update`, `remove` | the three commands |

mod add;
mod address;
mod error;
mod fetch;
mod folder;
mod git;
mod git_run;
mod place;
mod receipt;
mod remove;
mod source;
mod stage;
mod tarball;
mod tree;
mod unpack;
mod update;
mod zipfile;

#[cfg(test)]
mod tests;

pub use add::{InstallOptions, Installed, Placed, Then, install, install_then};
pub use error::InstallError;
pub use fetch::{Progress, Silent};
pub use receipt::Receipt;
pub use remove::{Removed, remove};
pub use source::{ArchiveKind, Source, SourceError};
pub use tree::Flaw;
pub use update::{Updated, update, update_then};
