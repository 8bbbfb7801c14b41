//! Packs what a user needs into one archive.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, plugins};

pub(crate) fn run() -> Result<()> {
    cargo::run(&["build", "--release", "--package", "hostel"], &[])?;
    let built = plugins::run(&[])?;
    let name = format!("hostel-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let folder = cargo::target().join("dist").join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("plugins"))?;
    fs::copy(cargo::target().join("release/hostel"), folder.join("hostel"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(cargo::root().join(file), folder.join(file))
            .with_context(|| format!("failed to copy `{file}`"))?;
    }
    for plugin in plugins::NAMES {
        let to = folder.join("plugins").join(plugin);
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(built.join(plugin))? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    let archive = cargo::target().join("dist").join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--sort=name", "-czf"]).arg(&archive);
    tar.arg("-C").arg(cargo::target().join("dist")).arg(&name);
    ensure!(tar.status().context("failed to start `tar`")?.success(), "`tar` failed");
    println!("{}", archive.display());
    Ok(())
}
