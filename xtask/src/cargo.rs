//! Runs cargo, and knows where it puts things.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Returns the workspace's folder.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Returns the folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns cargo with these arguments, in the workspace.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs cargo to its end.
pub(crate) fn run(arguments: &[&str], more: &[String]) -> Result<()> {
    let status = command(arguments).args(more).status().context("failed to start cargo")?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}
