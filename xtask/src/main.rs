//! The one door for chores: `cargo xtask COMMAND`.

mod abi;
mod cargo;
mod dist;
mod install;
mod plugins;
mod quickstart;

mod tests;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask COMMAND

  quickstart              build and install all, and run a command through a plugin in a fresh home
  test [NAME…]            build all and run all tests, or those whose names hold NAME
  install [--root DIR]    put `hostel` on the path (default: cargo's own folder for programs)
  plugins [--debug]       build the shipped plugins into ready folders under target/plugins
  bench [NAME…]           measure against floors of the same run, and print the ratios
  dist                    pack programs, plugins and licences into an archive under target/dist
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = words.get(1..).unwrap_or_default();
    match words.first().map(String::as_str) {
        Some("quickstart") => quickstart::run(),
        Some("test") => tests::run(rest),
        Some("install") => install::run(rest).map(drop),
        Some("plugins") => plugins::run(rest).map(drop),
        Some("bench") => cargo::run(&["bench", "--package", "hostel-tests", "--bench", "road", "--"], rest),
        Some("dist") => dist::run(),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("there is no chore `{other}`\n\n{HELP}"),
        None => bail!("which chore?\n\n{HELP}"),
    }
}
