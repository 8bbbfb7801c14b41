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
    println!("{}", link_host(&folder, path())?);
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

/// Links `host` to `hostel`, unless another program on `path` has that name. Returns what was done, as a line.
fn link_host(folder: &Path, path: impl Iterator<Item = PathBuf>) -> Result<String> {
    let link = folder.join("host");
    let ours = |path: &Path| fs::read_link(path).is_ok_and(|target| target == Path::new("hostel"));
    let others = path.map(|dir| dir.join("host")).chain([link.clone()]);
    if let Some(other) = others.into_iter().find(|path| path.symlink_metadata().is_ok() && !ours(path)) {
        return Ok(format!(
            "note: `host` was not linked to `hostel`: {} is another program of that name",
            other.display()
        ));
    }
    if !ours(&link) {
        symlink("hostel", &link).with_context(|| format!("failed to link `{}`", link.display()))?;
    }
    Ok(format!("linked {}", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_linked_unless_another_program_has_the_name() -> Result<()> {
        let (ours, theirs) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let dirs = || [ours.path(), theirs.path()].into_iter().map(Path::to_owned);
        let link = ours.path().join("host");
        for _ in 0..2 {
            assert_eq!(link_host(ours.path(), dirs())?, format!("linked {}", link.display()));
            assert_eq!(fs::read_link(&link)?, Path::new("hostel"));
        }
        fs::remove_file(&link)?;
        let other = theirs.path().join("host");
        fs::write(&other, "another program")?;
        let said = link_host(ours.path(), dirs())?;
        assert!(said.contains(&other.display().to_string()) && !link.exists(), "{said}");
        fs::rename(&other, &link)?;
        assert!(link_host(ours.path(), dirs())?.starts_with("note: "));
        assert_eq!(fs::read_to_string(&link)?, "another program");
        Ok(())
    }
}
