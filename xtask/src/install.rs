//! Puts `hostel` on the path, and `host` beside it where that name is free.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Builds and installs, and returns the folder of the programs.
pub(crate) fn run(words: &[String]) -> Result<PathBuf> {
    let folder = match words {
        [] => default_root()?.join("bin"),
        [word, root] if word == "--root" => env::current_dir()?.join(root).join("bin"),
        _ => bail!("usage: cargo xtask install [--root DIR]"),
    };
    cargo::run(&["build", "--release", "--package", "hostel"], &[])?;
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let installed = folder.join("hostel");
    // Beside and renamed, so that a `hostel` that is running now is not in the way.
    let beside = folder.join(".hostel.new");
    fs::copy(cargo::target().join("release/hostel"), &beside).context("failed to copy `hostel`")?;
    fs::rename(&beside, &installed)?;
    println!("installed {}", installed.display());
    link_host(&folder)?;
    if !path().any(|dir| dir == folder) {
        println!("note: {} is not on your PATH; add it with: export PATH=\"{0}:$PATH\"", folder.display());
    }
    Ok(folder)
}

fn default_root() -> Result<PathBuf> {
    if let Some(root) = ["CARGO_INSTALL_ROOT", "CARGO_HOME"].iter().find_map(env::var_os) {
        return Ok(root.into());
    }
    Ok(PathBuf::from(env::var_os("HOME").context("there is no home directory; use --root DIR")?)
        .join(".cargo"))
}

fn path() -> impl Iterator<Item = PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>().into_iter()
}

/// Links `host` to `hostel`, unless another program has that name.
fn link_host(folder: &Path) -> Result<()> {
    let link = folder.join("host");
    let ours = |path: &Path| fs::read_link(path).is_ok_and(|target| target == Path::new("hostel"));
    let others = path().map(|dir| dir.join("host")).chain([link.clone()]);
    if let Some(other) = others.into_iter().find(|path| path.symlink_metadata().is_ok() && !ours(path)) {
        println!(
            "note: `host` was not linked to `hostel`: {} is another program of that name",
            other.display()
        );
        return Ok(());
    }
    if !ours(&link) {
        symlink("hostel", &link).with_context(|| format!("failed to link `{}`", link.display()))?;
    }
    println!("linked {}", link.display());
    Ok(())
}
