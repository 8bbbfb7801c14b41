//! `hostel plugins new`: the crate of a new plugin, which builds and passes its checks as it is.
//!
//! One name becomes a folder, a crate, a backend and a variable, so it must be good for all of them. The files are written
//! beside their place and moved there when all are written, so that a failure leaves nothing behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::carried;
use super::crate_name::{API_CRATE, why_not};
use super::template::{FILES, Values};
use crate::home::read_regular;
use crate::registry::{NameError, check_name};

/// The published versions of `hostel-plugin-api` that a new plugin is content with.
const API_REQUIREMENT: &str = "1";

/// A `Cargo.toml` has a few kilobytes.
const LONGEST: u64 = 1024 * 1024;

/// Where the new crate finds `hostel-plugin-api`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api {
    /// In a folder of its own, as this program carries it. A program that was built without it takes the published one.
    Carried,
    /// The published one.
    Published,
    /// The one in this folder of a checkout.
    Path(PathBuf),
}

/// Why there is no new crate.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The name is no plugin's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name is no crate's.
    #[error("`{0}` cannot be the name of a crate: {1}")]
    Crate(String, &'static str),
    /// Something is in its place.
    #[error("`{0}` is there already, and is not an empty folder")]
    Occupied(PathBuf),
    /// There is nowhere to make it.
    #[error("there is no folder `{0}` to make it in")]
    NoParent(PathBuf),
    /// The checkout is none.
    #[error("`{0}` is not the folder of `hostel-plugin-api`: {1}")]
    Api(PathBuf, String),
    /// It could not be written.
    #[error("failed to write `{0}`: {1}; nothing was left behind")]
    Write(PathBuf, io::Error),
    /// Never happens: the templates are tested.
    #[error("the template of `{0}` names `{1}`, which nothing fills")]
    Template(&'static str, String),
}

impl ScaffoldError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name(_) | Self::Crate(..) => "choose another name, such as `mybox`",
            Self::Occupied(_) => "name another folder with `--path DIR`",
            Self::NoParent(_) => "make that folder first",
            Self::Api(..) => "`--api-path` wants the folder `plugin-api` of a checkout of Hostel",
            Self::Write(..) => "see that you may write there, and that there is room",
            Self::Template(..) => "this is a fault of Hostel's own; please report it",
        }
    }
}

/// Makes the crate of the plugin `name` in the folder `into`, which must be empty or not there yet. Returns the paths of
/// what was written, relative to it.
///
/// # Errors
///
/// Fails with nothing left behind if the name or the checkout is no good, the folder is taken, or it cannot be written.
pub fn create(name: &str, into: &Path, api: &Api) -> Result<Vec<PathBuf>, ScaffoldError> {
    check_name(name)?;
    if let Some(reason) = why_not(name) {
        return Err(ScaffoldError::Crate(name.to_owned(), reason));
    }
    let carried = match api {
        Api::Carried => carried::files().map_err(|error| ScaffoldError::Write(into.to_owned(), error))?,
        Api::Published | Api::Path(_) => Vec::new(),
    };
    let is_carried = !carried.is_empty();
    let values = Values::new(name, dependency(api, is_carried)?, is_carried);
    let mut files = Vec::new();
    for (path, template) in FILES {
        let text = values.fill(template).map_err(|word| ScaffoldError::Template(path, word))?;
        files.push((path.to_owned(), text));
    }
    files.extend(carried.into_iter().map(|(path, text)| (format!("{API_CRATE}/{path}"), text)));
    let place = Place::find(into)?;
    place.fill(&files).map_err(|error| ScaffoldError::Write(into.to_owned(), error))?;
    let written = FILES.iter().map(|(path, _)| *path).chain(is_carried.then_some(API_CRATE));
    Ok(written.map(PathBuf::from).collect())
}

/// Returns the dependency on the plugin API, as TOML.
fn dependency(api: &Api, is_carried: bool) -> Result<String, ScaffoldError> {
    let Api::Path(folder) = api else {
        return Ok(if is_carried {
            // With the version, so that the new crate can be published once that one is.
            format!("{{ path = \"{API_CRATE}\", version = \"{API_REQUIREMENT}\" }}")
        } else {
            format!("\"{API_REQUIREMENT}\"")
        });
    };
    let wrong = |reason: String| ScaffoldError::Api(folder.clone(), reason);
    let manifest = read_regular(&folder.join("Cargo.toml"), LONGEST)
        .map_err(|error| wrong(format!("failed to read its `Cargo.toml`: {error}")))?;
    if !is_of_api(&String::from_utf8_lossy(&manifest)) {
        return Err(wrong("its `Cargo.toml` is that of something else".into()));
    }
    let real = folder.canonicalize().map_err(|error| wrong(error.to_string()))?;
    let path = real.to_str().filter(|path| !path.contains(char::is_control));
    let path = path.ok_or_else(|| wrong("its path cannot be written into a `Cargo.toml`".into()))?;
    Ok(format!("{{ path = \"{}\" }}", path.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Returns whether a `Cargo.toml` is that of the plugin API, by the name in its `[package]`.
fn is_of_api(manifest: &str) -> bool {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[package]").skip(1);
    let name = lines
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.split_once('=').filter(|(key, _)| key.trim() == "name"));
    name.is_some_and(|(_, value)| value.trim().trim_matches('"') == API_CRATE)
}

/// Where the crate goes.
enum Place {
    /// A folder that is not there yet.
    New(PathBuf),
    /// An empty folder, in which the user may stand, so it stays the same one.
    Empty(PathBuf),
}

impl Place {
    fn find(into: &Path) -> Result<Self, ScaffoldError> {
        if into.symlink_metadata().is_ok() {
            let empty = fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_none());
            return if empty { Ok(Self::Empty(into.to_owned())) } else { Err(occupied(into)) };
        }
        let path = std::path::absolute(into).map_err(|error| ScaffoldError::Write(into.to_owned(), error))?;
        match path.parent() {
            Some(parent) if !parent.is_dir() => Err(ScaffoldError::NoParent(parent.to_owned())),
            Some(_) => Ok(Self::New(path)),
            None => Err(occupied(into)),
        }
    }

    fn fill(&self, files: &[(String, String)]) -> io::Result<()> {
        let beside: &Path = match self {
            Self::New(path) => path.parent().unwrap_or(path),
            Self::Empty(path) => path,
        };
        let scratch = tempfile::Builder::new().prefix(".hostel-new-").tempdir_in(beside)?;
        // Not the temporary folder itself, which nobody else may read.
        let stage = scratch.path().join("crate");
        for (path, text) in files {
            let file = stage.join(path);
            fs::create_dir_all(file.parent().unwrap_or(&stage))?;
            fs::write(&file, text)?;
        }
        match self {
            Self::New(path) => fs::rename(&stage, path),
            Self::Empty(path) => move_all(&stage, path),
        }
    }
}

fn occupied(into: &Path) -> ScaffoldError {
    ScaffoldError::Occupied(into.to_owned())
}

/// Moves everything in `from` into `to`, or nothing.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        names.push(entry?.file_name());
    }
    for (done, name) in names.iter().enumerate() {
        if let Err(error) = fs::rename(from.join(name), to.join(name)) {
            for name in &names[..done] {
                // Back to where it is thrown away with the rest.
                let _ = fs::rename(to.join(name), from.join(name));
            }
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::plugins::Manifest;

    /// Returns the files below a folder, by their paths in it.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(folder).unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    fn is_empty(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().next().is_none()
    }

    #[test]
    fn all_files_are_written_and_say_the_same_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demo-box");
        let mut written = create("demo-box", &folder, &Api::Published).unwrap();
        written.sort();
        assert_eq!(written, files(&folder));
        assert_eq!(written.len(), FILES.len());
        // Nothing else stands beside it.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let (manifest, warnings) = Manifest::read(&folder).unwrap();
        assert_eq!(manifest.name, "demo-box");
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(manifest.secrets().collect::<Vec<_>>(), ["DEMO_BOX_TOKEN"]);
        assert!(manifest.library_names().contains(&"libdemo_box.so".to_owned()));
        let cargo = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for line in ["name = \"demo-box\"", "hostel-plugin-api = \"1\"", "[workspace]"] {
            assert_eq!(cargo.lines().filter(|written| *written == line).count(), 1, "{line}");
        }
        let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api/Cargo.toml");
        let api = fs::read_to_string(api).unwrap();
        assert!(api.contains(&format!("\nversion = \"{API_REQUIREMENT}.")), "{api}");
    }

    #[test]
    fn the_api_that_is_carried_lies_in_a_folder_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demo");
        let written = create("demo", &folder, &Api::Carried).unwrap();
        assert_eq!(written.len(), FILES.len() + 1);
        assert!(written.contains(&API_CRATE.into()));
        assert!(folder.join("hostel-plugin-api/src/lib.rs").is_file());
        let cargo = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependency = "hostel-plugin-api = { path = \"hostel-plugin-api\", version = \"1\" }";
        for line in [dependency, "exclude = [\"hostel-plugin-api\"]"] {
            assert_eq!(cargo.lines().filter(|written| *written == line).count(), 1, "{line}: {cargo}");
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.contains("hostel-plugin-api = \"1\""), "{readme}");
    }

    #[test]
    fn names_that_are_not_good_for_all_are_refused() {
        let cases = [
            ("docker", "built into Hostel"),
            ("Demo", "is not a name"),
            ("../evil", "is not a name"),
            ("", "is not a name"),
            ("fn", "`fn` cannot be the name of a crate: it is a keyword"),
        ];
        let dir = tempfile::tempdir().unwrap();
        for (name, reason) in cases {
            let error = create(name, &dir.path().join("crate"), &Api::Published).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains('\n'), "{name}: {error}");
        }
        assert!(is_empty(dir.path()));
    }

    #[test]
    fn what_is_there_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (full, file, link) = (dir.path().join("full"), dir.path().join("file"), dir.path().join("link"));
        fs::create_dir(&full).unwrap();
        fs::write(full.join("notes"), "mine").unwrap();
        fs::write(&file, "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for taken in [&full, &file, &link] {
            let error = create("demo", taken, &Api::Published).unwrap_err();
            assert!(matches!(error, ScaffoldError::Occupied(_)), "{error}");
        }
        assert_eq!(files(dir.path()).len(), 3);
        let error = create("demo", &dir.path().join("no/where"), &Api::Published).unwrap_err();
        assert!(matches!(error, ScaffoldError::NoParent(_)), "{error}");
    }

    #[test]
    fn an_empty_folder_is_filled_and_stays_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let before = dir.path().metadata().unwrap().ino();
        create("demo", dir.path(), &Api::Published).unwrap();
        assert_eq!(dir.path().metadata().unwrap().ino(), before);
        assert_eq!(files(dir.path()).len(), FILES.len());
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        // Everything can be written but the last step.
        let error = create("demo", &dir.path().join("x".repeat(300)), &Api::Published).unwrap_err();
        assert!(matches!(error, ScaffoldError::Write(..)), "{error}");
        assert!(is_empty(dir.path()));
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(to.join("b")).unwrap();
        fs::create_dir(&from).unwrap();
        for name in ["a", "b"] {
            fs::write(from.join(name), "").unwrap();
        }
        assert!(move_all(&from, &to).is_err());
        assert_eq!(files(&from).len(), 2);
        assert!(files(&to).is_empty());
    }

    #[test]
    fn a_checkout_is_named_by_its_full_path() {
        let dir = tempfile::tempdir().unwrap();
        let host = Path::new(env!("CARGO_MANIFEST_DIR"));
        for wrong in [host.to_owned(), host.join(".."), dir.path().to_owned()] {
            let error = create("demo", &dir.path().join("demo"), &Api::Path(wrong)).unwrap_err();
            assert!(matches!(error, ScaffoldError::Api(..)), "{error}");
        }
        assert!(is_empty(dir.path()));
        let odd = dir.path().join("a\"b\\c");
        fs::create_dir(&odd).unwrap();
        fs::copy(host.join("../plugin-api/Cargo.toml"), odd.join("Cargo.toml")).unwrap();
        create("demo", &dir.path().join("demo"), &Api::Path(odd)).unwrap();
        let cargo = fs::read_to_string(dir.path().join("demo/Cargo.toml")).unwrap();
        let real = dir.path().canonicalize().unwrap();
        let line = format!("hostel-plugin-api = {{ path = \"{}/a\\\"b\\\\c\" }}", real.display());
        assert!(cargo.lines().any(|written| written == line), "{line}: {cargo}");
    }

    #[test]
    fn the_api_is_known_by_its_package_only() {
        assert!(is_of_api("# x\n[package]\nversion = \"1.0.0\"\nname = \"hostel-plugin-api\"\n[lib]\n"));
        for other in [
            "",
            "[package]\nname = \"other\"\n",
            "[package]\n[lib]\nname = \"hostel-plugin-api\"\n",
            "name = \"hostel-plugin-api\"\n",
            "[package]\nname = \"other\"\n[dependencies]\nhostel-plugin-api = \"1\"\n",
        ] {
            assert!(!is_of_api(other), "{other:?}");
        }
    }
}
