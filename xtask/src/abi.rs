//! Builds plugins and hosts of several versions of the interface, for the tests that bring them together.
//!
//! `tests/abi` keeps each version as a frozen crate or as a patch on one. They become trees under `target/abi/trees`, each a
//! workspace of its own, which cargo builds into the folder that everything else is built into, so that dependencies need not
//! be built again. There, two things with one name would overwrite each other, so whatever is built here has its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::cargo;

/// A plugin of one version of the interface.
struct Plugin {
    version: &'static str,
    /// What makes that version of the frozen 1.0.
    patch: Option<&'static str>,
    features: &'static str,
}

const PLUGINS: [Plugin; 4] = [
    Plugin { version: "1.0", patch: None, features: "" },
    Plugin { version: "1.1", patch: Some("1.1"), features: "v1_1" },
    Plugin { version: "2.0", patch: Some("2.0"), features: "" },
    Plugin { version: "lying", patch: Some("lying"), features: "" },
];

/// The newer host: this version of the interface, and the name of its package, which must not be `hostel`.
const HOST: (&str, &str) = ("1.1", "hostel-abi-1-1");

/// Where the newer host's copy of `plugin-api` lies in its tree. Cargo tells packages of a workspace apart by their place in
/// it, so at the place of the original it would take turns with it in the folder of what is built.
const API: &str = "api-1.1";

/// Builds all plugins and hosts, and puts them under `target/abi/plugins` and `target/abi/hosts`.
pub(crate) fn build() -> Result<()> {
    for plugin in &PLUGINS {
        println!("{}", build_plugin(plugin)?.display());
    }
    println!("{}", build_host()?.display());
    Ok(())
}

/// Returns the folder of everything that is made here.
fn folder() -> PathBuf {
    cargo::target().join("abi")
}

/// Returns what is kept in the repository under this name.
fn kept(name: &str) -> PathBuf {
    cargo::root().join("tests/abi").join(name)
}

fn build_plugin(plugin: &Plugin) -> Result<PathBuf> {
    let version = plugin.version;
    let name = format!("abiprobe-{}", version.replace('.', "-"));
    let staged = stage()?;
    let (api, probe) = (staged.path().join("api"), staged.path().join("plugin"));
    copy(&kept("1.0"), &api)?;
    if let Some(patch) = plugin.patch {
        apply(patch, &api)?;
    }
    copy(&kept("plugin"), &probe)?;
    edit(&probe.join("Cargo.toml"), &[("@NAME@", name.as_str()), ("@API@", "../api")])?;
    // The versions of all dependencies are the workspace's; cargo drops from it what is not needed.
    copy_file(&cargo::root().join("Cargo.lock"), &probe.join("Cargo.lock"))?;
    let tree = folder().join("trees").join(version);
    settle(staged.path(), &tree)?;
    compile(&tree.join("plugin/Cargo.toml"), &["--features", plugin.features])?;
    let built = cargo::target().join("debug").join(format!("lib{}.so", name.replace('-', "_")));
    place(&built, &folder().join("plugins").join(version).join("libabiprobe.so"))
}

fn build_host() -> Result<PathBuf> {
    let (version, name) = HOST;
    let staged = stage()?;
    let (api, host) = (staged.path().join(API), staged.path().join("host"));
    copy(&cargo::root().join("plugin-api"), &api)?;
    apply(version, &api)?;
    copy(&cargo::root().join("host"), &host)?;
    let package = format!("name = \"{name}\"\nautobins = false\n");
    let changes = [("name = \"hostel\"\n", package.as_str()), ("default-run = \"hostel\"\n", "")];
    edit(&host.join("Cargo.toml"), &changes)?;
    let targets =
        format!("\n[lib]\nname = \"hostel\"\n\n[[bin]]\nname = \"{name}\"\npath = \"src/main.rs\"\n");
    append(&host.join("Cargo.toml"), &targets)?;
    for file in ["Cargo.toml", "Cargo.lock"] {
        copy_file(&cargo::root().join(file), &staged.path().join(file))?;
    }
    let workspace = staged.path().join("Cargo.toml");
    let text = fs::read_to_string(&workspace)?;
    let start = text.find("members = [").context("the workspace has no members")?;
    let end = start + text[start..].find(']').context("the list of members has no end")?;
    let members = format!("members = [\"host\", \"{API}\"");
    let place_of_api = format!("hostel-plugin-api = {{ path = \"{API}\"");
    let changes = [
        (&text[start..end], members.as_str()),
        ("hostel-plugin-api = { path = \"plugin-api\"", place_of_api.as_str()),
    ];
    edit(&workspace, &changes)?;
    let tree = folder().join("trees").join(format!("host-{version}"));
    settle(staged.path(), &tree)?;
    compile(&tree.join("Cargo.toml"), &["--package", name, "--bin", name])?;
    place(&cargo::target().join("debug").join(name), &folder().join("hosts").join(version).join("hostel"))
}

/// Makes a folder in which a tree is put together.
fn stage() -> Result<TempDir> {
    fs::create_dir_all(folder())?;
    Ok(tempfile::Builder::new().prefix(".staged-").tempdir_in(folder())?)
}

/// Applies one of the kept patches.
fn apply(name: &str, tree: &Path) -> Result<()> {
    let file = kept(&format!("{name}.patch"));
    let mut patch = Command::new("patch");
    patch.args(["-p1", "-s", "-N", "--no-backup-if-mismatch", "-d"]).arg(tree).arg("-i").arg(&file);
    let status = patch.status().context("failed to start `patch`, which the tests of the interface need")?;
    ensure!(status.success(), "`{}` does not apply any more; make it anew", file.display());
    Ok(())
}

/// Replaces texts in a file, each of which must be there.
fn edit(file: &Path, changes: &[(&str, &str)]) -> Result<()> {
    let mut text = fs::read_to_string(file)?;
    for &(from, to) in changes {
        ensure!(text.contains(from), "`{from}` is not in `{}` any more", file.display());
        text = text.replace(from, to);
    }
    Ok(fs::write(file, text)?)
}

fn append(file: &Path, more: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    Ok(fs::write(file, text + more)?)
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("failed to copy `{}`", from.display()))?;
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to read `{}`", from.display()))? {
        let entry = entry?;
        let beyond = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &beyond)?;
        } else {
            copy_file(&entry.path(), &beyond)?;
        }
    }
    Ok(())
}

/// Makes `tree` what `staged` is, and touches nothing that is so already: cargo goes by the times of files.
fn settle(staged: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(staged)? {
        let entry = entry?;
        let (from, to) = (entry.path(), tree.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            settle(&from, &to)?;
        } else {
            let wanted = fs::read(&from)?;
            if fs::read(&to).ok().as_ref() != Some(&wanted) {
                fs::write(&to, wanted).with_context(|| format!("failed to write `{}`", to.display()))?;
            }
        }
        names.insert(entry.file_name());
    }
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        if names.contains(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Builds what a manifest describes, into the folder that everything else is built into.
fn compile(manifest: &Path, more: &[&str]) -> Result<()> {
    let build = |network: &[&str]| -> Result<bool> {
        let mut command = cargo::command(&["build", "--quiet"]);
        command.args(network).arg("--manifest-path").arg(manifest);
        command.arg("--target-dir").arg(cargo::target()).args(more);
        Ok(command.status().context("failed to start cargo")?.success())
    };
    // The workspace has been built, so all dependencies are here.
    if build(&["--offline"])? {
        return Ok(());
    }
    println!("again, with the network");
    ensure!(build(&[])?, "`{}` does not build", manifest.display());
    Ok(())
}

/// Copies what was built to where the tests look for it. Beside and renamed, so that what runs from there is not overwritten.
fn place(built: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to.parent().context("it has no folder")?)?;
    let beside = to.with_extension("new");
    copy_file(built, &beside)?;
    fs::rename(&beside, to)?;
    Ok(to.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_tree_becomes_what_was_staged_and_what_is_the_same_keeps_its_time() -> Result<()> {
        let (staged, tree) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let write = |folder: &TempDir, name: &str, text: &str| -> Result<()> {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().context("it has no folder")?)?;
            Ok(fs::write(path, text)?)
        };
        for (name, text) in [("a/same", "1"), ("a/other", "2"), ("new/one", "3")] {
            write(&staged, name, text)?;
        }
        for (name, text) in [("a/same", "1"), ("a/other", "0"), ("a/gone", ""), ("old/gone", "")] {
            write(&tree, name, text)?;
        }
        let same = tree.path().join("a/same");
        let before = SystemTime::now() - Duration::from_secs(1000);
        fs::File::options().write(true).open(&same)?.set_modified(before)?;
        settle(staged.path(), tree.path())?;
        assert_eq!(fs::metadata(&same)?.modified()?, before);
        assert_eq!(fs::read_to_string(tree.path().join("a/other"))?, "2");
        assert_eq!(fs::read_to_string(tree.path().join("new/one"))?, "3");
        assert!(!tree.path().join("a/gone").exists() && !tree.path().join("old").exists());
        Ok(())
    }

    #[test]
    fn a_text_that_is_to_be_replaced_must_be_there() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("file");
        fs::write(&file, "a = @A@\n")?;
        edit(&file, &[("@A@", "1")])?;
        assert_eq!(fs::read_to_string(&file)?, "a = 1\n");
        assert!(edit(&file, &[("@A@", "2")]).is_err());
        Ok(())
    }
}
