//! What the tests stand on: a fresh home, the real program, and plugins that were really built.
#![allow(clippy::must_use_candidate, reason = "some are called for what they do")]

pub mod call;
pub mod conversation;
pub mod fuzz;
pub mod kernel;
pub mod marked;
pub mod mcp_clients;
pub mod mcp_http;
pub mod mcp_stdio;
pub mod own_process;
pub mod provider;
pub mod tidy;
pub mod tools;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use tools::Road;

/// Returns the folder that holds what was built, building it first if a test was started by itself.
///
/// # Panics
///
/// Panics if the build fails.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let own = std::env::current_exe().expect("a test has a path");
        let profile = own.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
        // Whoever starts a test once more has built everything before.
        if std::env::var_os(own_process::INSIDE).is_some() {
            return profile.to_owned();
        }
        let release = profile.ends_with("release");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--workspace", "--target-dir"])
            .arg(profile.parent().expect("target"));
        cargo.args(release.then_some("--release")).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().expect("cargo starts").success(), "the workspace does not build");
        profile.to_owned()
    })
}

/// Returns the path of a library that was built.
#[must_use]
pub fn library(name: &str) -> PathBuf {
    built().join(format!("lib{name}.so"))
}

/// A fresh home.
pub struct Home {
    /// First, so that servers have ended when their home goes.
    calls: tools::Calls,
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What a program did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed, exactly.
    pub stdout: Vec<u8>,
    /// What it said besides.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

impl Ran {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    ///
    /// Panics if it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Requires an exit code.
    ///
    /// # Panics
    ///
    /// Panics if it is another.
    #[track_caller]
    #[must_use]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Requires a failure: this exit code, nothing on stdout, one line that holds `reason`, and a hint if there is a second.
    ///
    /// # Panics
    ///
    /// Panics if it is anything else.
    #[track_caller]
    pub fn fails(self, code: i32, reason: &str) {
        let run = self.expect(code);
        let mut lines = run.stderr.lines();
        let first = lines.next().unwrap_or_default();
        assert!(first.starts_with("error: ") && first.contains(reason), "wanted {reason:?} in {run:?}");
        let known = |line: &str| ["hint: ", "warning: ", "note: "].iter().any(|word| line.starts_with(word));
        assert!(lines.all(known), "{run:?}");
        assert!(run.stdout.is_empty(), "{run:?}");
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Makes a home with nothing in it.
    ///
    /// # Panics
    ///
    /// Panics if there is no room for one.
    #[must_use]
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        Self { calls: tools::Calls::default(), dir, env: Vec::new() }
    }

    /// Says by which road tools are called.
    #[must_use]
    pub fn by(mut self, road: Road) -> Self {
        self.calls.road = road;
        self
    }

    /// Sets a variable for every program that runs in this home.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder of a plugin.
    #[must_use]
    pub fn plugin(&self, name: &str) -> PathBuf {
        self.path().join("plugins").join(name)
    }

    /// Reads the configuration.
    #[must_use]
    pub fn config(&self) -> String {
        fs::read_to_string(self.path().join("config.yaml")).unwrap_or_default()
    }

    /// Writes the configuration.
    ///
    /// # Panics
    ///
    /// Panics if that fails.
    pub fn set_config(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path().join("config.yaml"), text).expect("a config is written");
    }

    /// Makes the folder of a plugin with this manifest.
    ///
    /// # Panics
    ///
    /// Panics if that fails.
    pub fn add_manifest(&self, folder: &str, manifest: impl AsRef<[u8]>) -> PathBuf {
        let folder = self.plugin(folder);
        fs::create_dir_all(&folder).expect("a folder is made");
        fs::write(folder.join("plugin.yaml"), manifest).expect("a manifest is written");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode is set");
        folder
    }

    /// Drops in the plugin `name` with a library that was built.
    ///
    /// # Panics
    ///
    /// Panics if that fails.
    pub fn add_plugin(&self, name: &str, library_of: &str) -> PathBuf {
        let folder = self.add_manifest(name, manifest(name));
        put(&library(library_of), &folder.join(format!("lib{name}.so")));
        folder
    }

    /// Returns the program, ready to run in this home with nothing of the tester's own settings.
    #[must_use]
    pub fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(built().join(program));
        // The tester's own login files would be read for each new session.
        command.args(words).env("HOSTEL_HOME", self.path()).env("HOME", self.path()).stdin(Stdio::null());
        let own = ["HOSTEL_TERMINAL_BACKEND", "ACMEBOX_TOKEN", "MISFIT", "MISFIT_TOKEN", "EDITOR", "VISUAL"];
        // The tester's own shell may be a command of Hostel's.
        for name in own.into_iter().chain(["HOSTEL_CALL"]) {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.path());
        command
    }

    /// Runs `hostel`.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    #[must_use]
    pub fn hostel(&self, words: &[&str]) -> Ran {
        finish(self.command("hostel", words), b"")
    }

    /// Runs a command by `hostel exec`.
    #[must_use]
    pub fn exec(&self, command: &str) -> Ran {
        self.hostel(&["exec", "--", command])
    }

    /// Runs a command by `hostel exec --json` with further options, and returns the object.
    #[must_use]
    pub fn exec_json(&self, options: &[&str], command: &str) -> Value {
        let words: Vec<&str> =
            ["exec", "--json"].iter().chain(options).chain(&["--", command]).copied().collect();
        self.hostel(&words).json()
    }
}

/// Runs a command to its end, with this on its standard input.
///
/// # Panics
///
/// Panics if it cannot be started.
#[must_use]
pub fn finish(mut command: Command, stdin: &[u8]) -> Ran {
    let start = Instant::now();
    if !stdin.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program starts");
    let pipe = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(stdin)));
        child.wait_with_output().expect("a program ends")
    });
    let code = output.status.code().unwrap_or(-1);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { code, stdout: output.stdout, stderr, took: start.elapsed() }
}

/// Returns whether everything that tests need is meant to be here, so that one which skips itself has failed.
pub fn strict() -> bool {
    std::env::var_os("HOSTEL_TEST_STRICT").is_some()
}

/// Returns whether this runs as root, which a test needs that acts as another user. Where everything is meant to be there, it
/// must.
///
/// # Panics
///
/// Panics under [`strict`] if it does not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assert!(!strict(), "this must run as root");
        eprintln!("skipped: it needs root to act as another user");
    }
    root
}

/// Copies a library to where a plugin has it.
///
/// # Panics
///
/// Panics if that fails.
pub fn put(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    fs::set_permissions(to, fs::Permissions::from_mode(0o644)).expect("a mode is set");
}

/// Returns a manifest of the four keys.
#[must_use]
pub fn four_keys(name: &str) -> String {
    format!("name: {name}\nversion: 0.1.0\ndescription: A plugin for tests\nkind: backend\n")
}

/// Returns a manifest of the four keys and of what a plugin must ask for that runs commands on this machine.
#[must_use]
pub fn manifest(name: &str) -> String {
    let permissions = "{network: any, read: [/], write: [/], exec: true, env: [MISFIT, MISFIT_TOKEN]}";
    format!("{}permissions: {permissions}\n", four_keys(name))
}

/// Compiles a shared library from C.
///
/// # Panics
///
/// Panics if there is no C compiler, or it refuses.
pub fn compile_c(source: &str, to: &Path, options: &[&str]) {
    let file = to.with_extension("c");
    fs::write(&file, source).expect("a source is written");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(to).arg(&file).args(options.iter().map(OsStr::new));
    assert!(cc.status().expect("there is a C compiler").success());
    fs::remove_file(file).expect("the source is removed");
    fs::set_permissions(to, fs::Permissions::from_mode(0o644)).expect("a mode is set");
}

/// Makes two tests of each function: one in which plugins run in processes of their own, and one in which they run in the host's.
/// The function is given the word for it, as `plugins.isolation` has it.
#[macro_export]
macro_rules! in_both_isolations {
    ($(fn $name:ident($isolation:ident) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                fn run($isolation: &str) $body

                #[test]
                fn process() {
                    run("process");
                }

                #[test]
                fn in_process() {
                    run("in_process");
                }
            }
        )+
    };
}
