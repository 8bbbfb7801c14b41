//! The official clients of the Model Context Protocol, which the tests of `hostel mcp` drive it with.
//!
//! They are fetched once, into the folder of what was built. Without a network, Python or npm, tests skip and say so; where nothing may
//! skip, that is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::{Home, built};

/// The versions that the server is known to work with.
const PYTHON_PACKAGES: [&str; 2] = ["mcp==2.3.0", "PyYAML"];
const INSPECTOR: &str = "@modelcontextprotocol/inspector@0.15.0";

fn folder() -> PathBuf {
    built().parent().expect("target").join("mcp-clients")
}

/// Returns a Python that has the SDK, or why there is none.
fn python() -> Result<PathBuf, String> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let fetch = || {
        let venv = folder().join("python");
        let done = venv.join("done");
        if !done.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
            run(Command::new(venv.join("bin/pip")).args(["install", "--quiet"]).args(PYTHON_PACKAGES))?;
            std::fs::write(done, "").map_err(|error| error.to_string())?;
        }
        Ok(venv.join("bin/python"))
    };
    PYTHON.get_or_init(fetch).clone()
}

/// Returns the inspector, or why there is none.
fn inspector() -> Result<PathBuf, String> {
    let place = folder().join("inspector");
    let program = place.join("node_modules/.bin/mcp-inspector");
    if !program.exists() {
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        run(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&place).arg(INSPECTOR))?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<Output, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(output) } else { Err(format!("{shown}: {said}")) }
}

/// Runs one check of `tests/mcp/checks.py` in a fresh home.
///
/// # Panics
///
/// Panics if the check does not hold.
#[track_caller]
pub fn check(name: &str) {
    let clients = python().and_then(|python| match name {
        "inspector" => Ok((python, Some(inspector()?))),
        _ => Ok((python, None)),
    });
    let (python, inspector) = match clients {
        Ok(clients) => clients,
        Err(reason) => {
            assert!(std::env::var_os("HOSTEL_TEST_STRICT").is_none(), "{reason}");
            eprintln!("skipped: the official clients could not be fetched: {reason}");
            return;
        }
    };
    let home = Home::new();
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/checks.py");
    let mut command = home.command(&python.to_string_lossy(), &[]);
    command.arg(script).arg(name).arg(built().join("hostel"));
    command.env("CHECK_FOLDER", folder.path());
    if let Some(inspector) = inspector {
        command.env("MCP_INSPECTOR", inspector);
    }
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{name}: {said}");
    let _ = home.hostel(&["env", "cleanup", "--all", "--force"]);
}
