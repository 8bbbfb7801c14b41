//! `plugin.yaml`: what a plugin says of itself before any of its code runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::fields::{
    files, kinds, library, permissions, provides, required_text, requires_env, text, unknown_keys,
};
use super::permissions::Permissions;
use super::secrets::may_be_secret;
use crate::registry::{NameError, check_name};

/// The two names that a manifest may have, in order of preference.
const FILE_NAMES: [&str; 2] = ["plugin.yaml", "plugin.yml"];

/// A manifest is read whole before it is parsed, and a larger one could only be meant to hurt.
const LONGEST: u64 = 64 * 1024;

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// There is none.
    #[error("there is no `plugin.yaml` in it")]
    Missing,
    /// It is something else.
    #[error("`{0}` is not a regular file")]
    NotFile(String),
    /// It is a link to somewhere else.
    #[error("`{0}` is a link that leads out of the plugin's folder")]
    Outside(String),
    /// It cannot be read.
    #[error("failed to read `{0}`: {1}")]
    Read(String, io::Error),
    /// It is far too large.
    #[error("`{0}` is larger than 64 KiB")]
    Large(String),
    /// It is not text.
    #[error("`{0}` is not valid UTF-8")]
    NotText(String),
    /// It is not YAML.
    #[error("`{0}` is not valid YAML: {1}")]
    Syntax(String, String),
    /// It holds nothing.
    #[error("`{0}` is empty")]
    Empty(String),
    /// It is YAML, but not keys and values.
    #[error("`{0}` must hold keys and values")]
    NotMapping(String),
    /// A key is missing.
    #[error("`{0}` is missing")]
    NoKey(&'static str),
    /// A value is of the wrong sort.
    #[error("`{0}` must be {1}")]
    Wrong(String, &'static str),
    /// A name is not allowed.
    #[error("`{key}`: {error}")]
    Name {
        /// Where it stands.
        key: &'static str,
        /// What is wrong with it.
        error: NameError,
    },
}

/// What sort of thing a plugin provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Terminal environments.
    Backend,
    /// Sandboxes for managed sessions.
    Sandbox,
}

impl Kind {
    /// Returns the word that stands for it in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Sandbox => "sandbox",
        }
    }
}

/// A variable that a plugin wants to find in the host's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredEnv {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Where to get one.
    pub url: Option<String>,
    /// Whether commands must not see it. True unless the manifest says otherwise.
    pub secret: bool,
}

/// A manifest that has been read and checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// Its version, as written.
    pub version: String,
    /// One line.
    pub description: String,
    /// What it provides.
    pub kinds: Vec<Kind>,
    /// The library's file name, or its name without `lib` and `.so`.
    pub library: Option<String>,
    /// The version of the plugin API that it was built for.
    pub api_version: Option<String>,
    /// Backend names that it may register.
    pub provides: Vec<String>,
    /// Who made it.
    pub author: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Under which terms.
    pub license: Option<String>,
    /// What it wants from the environment.
    pub requires_env: Vec<RequiredEnv>,
    /// What its code may do.
    pub permissions: Permissions,
    /// Further files that belong to it, which are pinned with its library.
    pub files: Vec<String>,
}

/// Numbers whose spelling counts: `1.10` is not `1.1`.
#[derive(Deserialize)]
struct Spelling {
    version: Option<String>,
    api_version: Option<String>,
}

impl Manifest {
    /// Reads the manifest in `folder`. Returns with it what its author should know, one line each.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that is wrong.
    pub fn read(folder: &Path) -> Result<(Self, Vec<String>), ManifestError> {
        let path = path_in(folder).ok_or_else(|| match folder.join(FILE_NAMES[0]).symlink_metadata() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                ManifestError::Read(FILE_NAMES[0].into(), error)
            }
            _ => ManifestError::Missing,
        })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::parse(&name, &read_text(folder, &path, &name)?)
    }

    /// Parses a manifest's text; `file` is its name, for messages.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that is wrong.
    pub fn parse(file: &str, source: &str) -> Result<(Self, Vec<String>), ManifestError> {
        let source = source.trim_start_matches('\u{feff}');
        let syntax = |error: &serde_yaml::Error| {
            ManifestError::Syntax(
                file.into(),
                error.to_string().lines().next().unwrap_or_default().to_owned(),
            )
        };
        let tree: Value = serde_yaml::from_str(source).map_err(|error| syntax(&error))?;
        let map = match &tree {
            Value::Mapping(map) => map,
            Value::Null => return Err(ManifestError::Empty(file.into())),
            _ => return Err(ManifestError::NotMapping(file.into())),
        };
        let name = required_text(map, "name")?;
        check_name(&name).map_err(|error| ManifestError::Name { key: "name", error })?;
        let spelling: Spelling = serde_yaml::from_str(source)
            .map_err(|_| ManifestError::Wrong("version` and `api_version".into(), "text or numbers"))?;
        let version = spelling
            .version
            .filter(|version| !version.trim().is_empty())
            .ok_or(ManifestError::NoKey("version"))?;
        if map.get("manifest_version").is_some_and(|version| *version != Value::Number(1.into())) {
            return Err(ManifestError::Wrong("manifest_version".into(), "1: this Hostel knows no other"));
        }
        let manifest = Self {
            description: required_text(map, "description")?,
            kinds: kinds(map)?,
            library: library(map)?,
            api_version: spelling.api_version,
            provides: provides(map, &name)?,
            author: text(map, "author")?,
            homepage: text(map, "homepage")?,
            license: text(map, "license")?,
            requires_env: requires_env(map)?,
            permissions: permissions(map)?,
            files: files(map)?,
            name,
            version,
        };
        Ok((manifest, unknown_keys(map)))
    }

    /// Returns the file names under which the library may stand in the folder, in order of preference.
    #[must_use]
    pub fn library_names(&self) -> Vec<String> {
        match &self.library {
            Some(file) if file.contains(".so") => vec![file.clone()],
            Some(base) => vec![format!("lib{base}.so")],
            // Cargo turns dashes into underscores.
            None if self.name.contains('-') => {
                vec![format!("lib{}.so", self.name), format!("lib{}.so", self.name.replace('-', "_"))]
            }
            None => vec![format!("lib{}.so", self.name)],
        }
    }

    /// Returns all that its code asks for, the variables that it requires among it.
    #[must_use]
    pub fn asked(&self) -> Permissions {
        let mut asked = self.permissions.clone();
        for required in &self.requires_env {
            if !asked.env.contains(&required.name) {
                asked.env.push(required.name.clone());
            }
        }
        asked
    }

    /// Returns the variables that no command may see because this plugin is enabled.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.requires_env
            .iter()
            .filter(|required| required.secret && may_be_secret(&required.name))
            .map(|required| required.name.clone())
    }
}

fn read_text(folder: &Path, path: &Path, name: &str) -> Result<String, ManifestError> {
    let failed = |error| ManifestError::Read(name.into(), error);
    let real = path.canonicalize().map_err(failed)?;
    if !real.starts_with(folder.canonicalize().map_err(failed)?) {
        return Err(ManifestError::Outside(name.into()));
    }
    // A pipe in its place would block the reader for ever.
    if !real.metadata().map_err(failed)?.is_file() {
        return Err(ManifestError::NotFile(name.into()));
    }
    let mut bytes = Vec::new();
    File::open(real).map_err(failed)?.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(ManifestError::Large(name.into()));
    }
    String::from_utf8(bytes).map_err(|_| ManifestError::NotText(name.into()))
}

/// Returns the path of the manifest in `folder`, if there is one.
#[must_use]
pub(super) fn path_in(folder: &Path) -> Option<PathBuf> {
    FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const FOUR_KEYS: &str =
        "name: acmebox\nversion: 0.1.0\ndescription: AcmeBox cloud sandbox terminal backend\nkind: backend\n";

    fn parse(text: &str) -> Result<(Manifest, Vec<String>), ManifestError> {
        Manifest::parse("plugin.yaml", text)
    }

    #[test]
    fn four_keys_are_enough() {
        let (manifest, warnings) = parse(FOUR_KEYS).unwrap();
        assert_eq!(manifest.provides, ["acmebox"]);
        assert_eq!(manifest.library_names(), ["libacmebox.so"]);
        assert_eq!(manifest.kinds, [Kind::Backend]);
        assert!(warnings.is_empty());
        let (marked, _) = parse(&format!("\u{feff}{}", FOUR_KEYS.replace('\n', "\r\n"))).unwrap();
        assert_eq!(marked, manifest);
    }

    #[test]
    fn the_optional_keys_are_read() {
        let text = format!(
            "{}kind: [backend, sandbox]\nlibrary: other\napi_version: 1\nprovides: [a, b]\nauthor: A\nlicense: MIT\n\
             requires_env:\n  - PLAIN\n  - {{name: REGION, secret: false, description: d, url: u}}\nnew_key: 1\n",
            FOUR_KEYS.replace("kind: backend\n", "").replace("0.1.0", "1.10")
        );
        let (manifest, warnings) = parse(&text).unwrap();
        assert_eq!((manifest.version.as_str(), manifest.api_version.as_deref()), ("1.10", Some("1")));
        assert_eq!(manifest.kinds, [Kind::Backend, Kind::Sandbox]);
        assert_eq!(manifest.library_names(), ["libother.so"]);
        assert_eq!(manifest.secrets().collect::<Vec<_>>(), ["PLAIN"]);
        assert_eq!(warnings, ["`new_key` is not a key of a manifest"]);
    }

    #[test]
    fn each_fault_has_its_own_line() {
        let with = |old: &str, new: &str| FOUR_KEYS.replace(old, new);
        let bomb = {
            let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
            for level in 1..9 {
                let below = format!("*a{}", level - 1);
                writeln!(text, "a{level}: &a{level} [{}]", [below.as_str(); 9].join(", ")).unwrap();
            }
            text
        };
        let cases = [
            (String::new(), "`plugin.yaml` is empty"),
            ("- a\n- list\n".into(), "`plugin.yaml` must hold keys and values"),
            ("just text\n".into(), "`plugin.yaml` must hold keys and values"),
            (with("name: acmebox", "name: 123"), "`name` must be text; put it in quotes"),
            (with("name: acmebox", "name: null"), "`name` must be text; put it in quotes"),
            (with("name: acmebox\n", ""), "`name` is missing"),
            (with("version: 0.1.0\n", ""), "`version` is missing"),
            (with("version: 0.1.0", "version: [1]"), "`version` and `api_version` must be text or numbers"),
            (
                with("kind: backend", "kind: engine"),
                "`kind` must be `backend`, `sandbox`, or a list of these",
            ),
            (
                with("acmebox\nversion", "DOCKER\nversion"),
                "`name`: `DOCKER` is too much like `docker`, the name of a backend that is built into Hostel",
            ),
            (with("acmebox\nversion", "../evil\nversion"), "`name`: `../evil` is not a name"),
            (
                format!("{FOUR_KEYS}library: ../../other/lib.so\n"),
                "`library` must be the name of a file in the plugin's own folder",
            ),
            (
                format!("{FOUR_KEYS}library: /abs.so\n"),
                "`library` must be the name of a file in the plugin's own folder",
            ),
            (format!("{FOUR_KEYS}provides: [ssh]\n"), "`provides`: `ssh` is the name of a backend"),
            (format!("{FOUR_KEYS}requires_env: [\"A B\"]\n"), "`requires_env` must be"),
            (format!("{FOUR_KEYS}name: twice\n"), "is not valid YAML"),
            (format!("{FOUR_KEYS}\tx: 1\n"), "is not valid YAML"),
            (format!("{FOUR_KEYS}manifest_version: 2\n"), "`manifest_version` must be 1"),
            (bomb, "is not valid YAML"),
        ];
        for (text, expected) in cases {
            let message = parse(&text).expect_err(&text).to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn files_that_are_no_manifest_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("p");
        std::fs::create_dir(&folder).unwrap();
        let message = |folder: &Path| Manifest::read(folder).unwrap_err().to_string();
        assert_eq!(message(&folder), "there is no `plugin.yaml` in it");
        let file = folder.join("plugin.yaml");
        std::fs::write(&file, vec![b'x'; 100_000]).unwrap();
        assert_eq!(message(&folder), "`plugin.yaml` is larger than 64 KiB");
        std::fs::write(&file, b"name: \xff\n").unwrap();
        assert_eq!(message(&folder), "`plugin.yaml` is not valid UTF-8");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(dir.path().join("elsewhere.yaml"), FOUR_KEYS).unwrap();
        std::os::unix::fs::symlink("../elsewhere.yaml", &file).unwrap();
        assert_eq!(message(&folder), "`plugin.yaml` is a link that leads out of the plugin's folder");
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(message(&folder), "`plugin.yaml` is not a regular file");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(folder.join("plugin.yml"), FOUR_KEYS).unwrap();
        assert_eq!(Manifest::read(&folder).unwrap().0.name, "acmebox");
    }
}
