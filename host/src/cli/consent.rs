//! Shows what a plugin asks for beyond what it was granted before, and has it agreed to.
//!
//! Whoever enables a new version wants the version, and may not know that it wants more. A person on a terminal is asked. A script that
//! enables a plugin by its name has been written to do that, and goes on; one that only brings it up to date has not.

use std::io;

use super::failure::Failure;
use super::print::say;
use super::question;
use crate::plugins::{Discovered, Record};

/// Where a grant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The plugin is enabled by its name.
    Enabling,
    /// It is enabled since it was installed or updated.
    Replacing,
}

/// Says what is new in `found` as against what was granted before, and returns if that is agreed to. `yes` agrees to all.
pub(super) fn agree(found: &Discovered, before: Option<&Record>, act: Act, yes: bool) -> Result<(), Failure> {
    let Some(before) = before else { return Ok(()) };
    let more = found.manifest.asked().beyond(&before.permissions);
    for line in &more {
        say("new", &format!("it may {line}"));
    }
    if more.is_empty() || yes {
        return Ok(());
    }
    let name = &found.manifest.name;
    let refused =
        || Failure::new(format!("plugin `{name}` asks for more than was granted; nothing was changed"));
    if !question::somebody_is_there() {
        return match act {
            Act::Enabling => Ok(()),
            Act::Replacing => Err(refused().with_hint("if it may have that, add `--yes`")),
        };
    }
    let answer = question::ask("grant that? [y/N] ", false).map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => Failure::interrupted(),
        _ => Failure::new(format!("failed to read an answer: {error}")),
    })?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(refused()),
    }
}
