//! What is to be checked: a folder that could be dropped in, or the crate that makes one.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::manifest::{self, Manifest};
use super::Options;
use super::room::Room;
use crate::home::{Home, HomeError, make_private};

/// Why there is nothing to check.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// There is no folder.
    #[error("failed to open `{0}`: {1}")]
    Open(PathBuf, io::Error),
    /// It is neither.
    #[error("`{0}` holds neither a `plugin.yaml` nor a crate")]
    Neither(PathBuf),
    /// Cargo did not build it.
    #[error("the crate in `{0}` does not build")]
    Build(PathBuf),
    /// There is no cargo.
    #[error("failed to start `cargo` to build the crate in `{0}`: {1}")]
    Cargo(PathBuf, io::Error),
    /// It makes no library that could be loaded.
    #[error("the crate in `{0}` makes no `cdylib`")]
    NoLibrary(PathBuf),
    /// A file cannot be copied to where it is checked.
    #[error("failed to copy `{0}`: {1}")]
    Copy(PathBuf, io::Error),
    /// There is no room for a throw-away home.
    #[error("failed to make a home to check it in: {0}")]
    Room(io::Error),
    /// The throw-away home cannot be one.
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl SubjectError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open(..) | Self::Neither(_) => {
                "name the folder of a plugin, or of its crate; `hostel plugins new NAME` makes one"
            }
            Self::Build(_) => "cargo's own messages stand above",
            Self::Cargo(..) => "install Rust, or name a folder with `plugin.yaml` and the library in it",
            Self::NoLibrary(_) => "write `crate-type = [\"cdylib\"]` under `[lib]` in its `Cargo.toml`",
            Self::Copy(..) | Self::Room(_) | Self::Home(_) => "check `TMPDIR` and the free space",
        }
    }
}

/// A plugin in a home of its own, which goes with it.
pub(super) struct Subject {
    pub(super) home: Home,
    pub(super) folder: PathBuf,
    _room: Room,
}

/// Finds the plugin at `path`, builds it if it is a crate, and puts it into a throw-away home. A folder that is ready is checked
/// where it lies: who may write to it is one of the rules.
pub(super) fn find(path: &Path, options: &Options) -> Result<Subject, SubjectError> {
    let folder = path.canonicalize().map_err(|error| SubjectError::Open(path.to_owned(), error))?;
    let room = Room::make().map_err(SubjectError::Room)?;
    if let Some(tell) = options.on_room {
        tell(room.path());
    }
    let home = Home::at(room.path().join("home"))?;
    make_private(home.path()).map_err(SubjectError::Room)?;
    let is_crate = folder.join("Cargo.toml").is_file();
    if manifest::path_in(&folder).is_none() {
        return Err(SubjectError::Neither(path.to_owned()));
    }
    if !is_crate {
        return Ok(Subject { home, folder, _room: room });
    }
    let library = build(&folder, options.release)?;
    let folder = assemble(&folder, &library, &home)?;
    Ok(Subject { home, folder, _room: room })
}

/// Puts the parts of a plugin together as its vendor would.
fn assemble(source: &Path, library: &Path, home: &Home) -> Result<PathBuf, SubjectError> {
    // Where the manifest cannot be read, that is what the first rule says.
    let read = Manifest::read(source).ok().map(|(manifest, _)| manifest);
    let name = read.as_ref().map_or("plugin", |manifest| manifest.name.as_str());
    let folder = home.plugins().join(name);
    make_private(&folder).map_err(SubjectError::Room)?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).map(drop).map_err(|error| SubjectError::Copy(from.to_owned(), error))
    };
    if let Some(manifest) = manifest::path_in(source) {
        copy(&manifest, &folder.join("plugin.yaml"))?;
    }
    let names = read.as_ref().map_or_else(Vec::new, Manifest::library_names);
    let file = names.first().cloned().unwrap_or_else(|| "libplugin.so".into());
    copy(library, &folder.join(file))?;
    for file in read.iter().flat_map(|manifest| &manifest.files) {
        let to = folder.join(file);
        make_private(to.parent().unwrap_or(&folder)).map_err(SubjectError::Room)?;
        copy(&source.join(file), &to)?;
    }
    // Links in the way of a temporary folder would otherwise look like links out of it.
    folder.canonicalize().map_err(SubjectError::Room)
}

/// Builds the crate, and returns the library that it makes. Cargo's messages go to standard error.
fn build(folder: &Path, release: bool) -> Result<PathBuf, SubjectError> {
    let shown = || folder.to_owned();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--message-format=json-render-diagnostics"]).args(release.then_some("--release"));
    cargo.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(|error| SubjectError::Cargo(shown(), error))?;
    let own = folder.join("Cargo.toml");
    let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let libraries: Vec<PathBuf> =
        lines.map_while(Result::ok).filter_map(|line| library(&line, &own)).collect();
    let status = child.wait().map_err(|error| SubjectError::Cargo(shown(), error))?;
    if !status.success() {
        return Err(SubjectError::Build(shown()));
    }
    libraries.into_iter().next_back().ok_or_else(|| SubjectError::NoLibrary(shown()))
}

/// Reads one of cargo's messages: the path of a library, if it is about one of this crate's.
fn library(line: &str, own: &Path) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_own = message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == own);
    let kinds = message["target"]["crate_types"].as_array()?;
    if !is_own || !kinds.iter().any(|kind| kind == "cdylib") {
        return None;
    }
    let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
    files.map(PathBuf::from).find(|path| path.extension().is_some_and(|extension| extension == "so"))
}
