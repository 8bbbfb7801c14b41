//! Builds the resident shell's builtin: a library that a bash loads, which knows neither Rust's libraries nor C's.
//!
//! It is no crate of the workspace, because it must be inside the crate that hands it to bash. Where it cannot be built, an empty
//! file takes its place, and every command gets a shell that is started for it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The processors whose system calls the builtin knows.
const KNOWN: [&str; 2] = ["x86_64", "aarch64"];

fn main() {
    println!("cargo::rerun-if-changed=resident");
    println!("cargo::rerun-if-changed=build.rs");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let library = out.join("resident.so");
    let source = Path::new("resident").join("builtin.rs");
    if let Err(reason) = build(&source, &library) {
        println!("cargo::warning=the resident shell is left out, and every command starts a shell: {reason}");
        // Without this file the crate does not build, which says more than a panic here would.
        let _ = std::fs::write(&library, b"");
    }
}

fn build(source: &Path, library: &Path) -> Result<(), String> {
    let variable = |name: &str| env::var(name).map_err(|_| format!("`{name}` is not set"));
    let (system, processor) = (variable("CARGO_CFG_TARGET_OS")?, variable("CARGO_CFG_TARGET_ARCH")?);
    if system != "linux" || !KNOWN.contains(&processor.as_str()) {
        return Err(format!("it is not written for {processor} {system}"));
    }
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "hostel_resident"]);
    rustc.args(["--target", &variable("TARGET")?, "-C", "panic=abort", "-C", "opt-level=s"]);
    rustc.args(["-C", "strip=symbols", "-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles"]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let output = rustc.arg("-o").arg(library).arg(source).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().find(|line| !line.is_empty()).unwrap_or("the compiler failed").to_owned())
}
