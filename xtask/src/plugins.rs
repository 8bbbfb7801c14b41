//! Builds the shipped plugins into ready folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// The shipped plugins, which are crates of these names below `plugins/`.
pub(crate) const NAMES: [&str; 2] = ["acmebox", "bubblewrap"];

/// Builds the plugins and returns the folder in which their folders are.
pub(crate) fn run(words: &[String]) -> Result<PathBuf> {
    let profile = match words {
        [] => "release",
        [word] if word == "--debug" => "dev",
        _ => bail!("usage: cargo xtask plugins [--debug]"),
    };
    let packages = NAMES.iter().flat_map(|name| ["--package", name]);
    let arguments: Vec<&str> = ["build", "--profile", profile].into_iter().chain(packages).collect();
    cargo::run(&arguments, &[])?;
    let built = cargo::target().join(if profile == "dev" { "debug" } else { profile });
    let folders = cargo::target().join("plugins");
    for name in NAMES {
        let folder = folders.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        let library = format!("lib{name}.so");
        let manifest = cargo::root().join("plugins").join(name).join("plugin.yaml");
        for (from, file) in [(built.join(&library), library.as_str()), (manifest, "plugin.yaml")] {
            // Beside and renamed, so that a library that is loaded from here is never overwritten.
            let (to, beside) = (folder.join(file), folder.join(format!(".{file}.new")));
            fs::copy(&from, &beside).with_context(|| format!("failed to copy `{}`", from.display()))?;
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o644))?;
            fs::rename(&beside, &to)?;
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        println!("{}", folder.display());
    }
    Ok(folders)
}
