//! The main job on a fresh machine, as a transcript: each command before its output.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{install, plugins};

/// What is typed, and the exit code that must come of it.
const TRANSCRIPT: [(&str, i32); 6] = [
    ("mkdir -p ~/.hostel/plugins/acmebox && cp target/plugins/acmebox/* ~/.hostel/plugins/acmebox/", 0),
    ("hostel plugins list", 0),
    ("hostel plugins enable acmebox", 0),
    ("hostel config set terminal.backend acmebox", 0),
    ("hostel backends", 0),
    ("ACMEBOX_TOKEN=demo hostel exec -- 'echo hi from $PWD; exit 7'", 7),
];

pub(crate) fn run() -> Result<()> {
    println!("$ cargo xtask install");
    let programs = install::run(&[])?;
    println!("$ cargo xtask plugins");
    let folders = plugins::run(&[])?;
    let home = tempfile::Builder::new().prefix("hostel-quickstart-").tempdir()?;
    println!("# in a fresh home directory, {}", home.path().display());
    for (command, expected) in TRANSCRIPT {
        println!("$ {command}");
        let code = type_in(command, home.path(), &programs, &folders)?;
        if code != 0 {
            println!("[exit code {code}]");
        }
        ensure!(code == expected, "`{command}` ended with exit code {code}, not {expected}");
    }
    println!(
        "# that was a command run by a plugin that was loaded at run time; its exit code came back as it was"
    );
    Ok(())
}

/// Runs a line as a user would type it whose home is `home`.
fn type_in(line: &str, home: &Path, programs: &Path, folders: &Path) -> Result<i32> {
    let mut path = OsString::from(programs);
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    // The folder of the built plugins is `target/plugins` unless cargo builds elsewhere.
    let line = line.replace("target/plugins", &folders.to_string_lossy());
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(crate::cargo::root());
    command
        .env("HOME", home)
        .env("PATH", path)
        .env_remove("HOSTEL_HOME")
        .env_remove("HOSTEL_TERMINAL_BACKEND");
    let status = command.status().context("failed to start `sh`")?;
    status.code().context("a command was killed")
}
