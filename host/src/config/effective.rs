//! What is in force: defaults, overridden by the file, overridden by the environment, overridden by the command line.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_yaml::Value;

use super::check::{self, Finding, expected, leaves};
use super::file::{ConfigFile, FileError};
use super::key::Key;
use super::schema::{self, Found};
use super::value;
use crate::home::Home;

/// Overrides `terminal.backend`.
pub const BACKEND_VARIABLE: &str = "HOSTEL_TERMINAL_BACKEND";

/// The key of the selected backend.
const BACKEND: &str = "terminal.backend";

/// Why a value is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file holds what cannot be meant.
    #[error("`{0}`: {1}")]
    Unsound(PathBuf, String),
    /// A value is not of its key's type.
    #[error("`{key}` ({origin}) is `{value}`, which does not fit: {reason}")]
    Value {
        /// The key.
        key: String,
        /// Where the value comes from.
        origin: Origin,
        /// What stands there.
        value: String,
        /// What is expected.
        reason: String,
    },
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration's file.
    File(PathBuf),
    /// A variable of the environment.
    Environment(&'static str),
    /// An option of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment: {name}"),
            Self::Flag(name) => write!(f, "flag: {name}"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub struct Config {
    file: ConfigFile,
    path: PathBuf,
    environment: Option<OsString>,
    flag: Option<String>,
}

impl Config {
    /// Reads the configuration of `home`, with `backend` from the command line.
    ///
    /// # Errors
    ///
    /// Fails if the file is there and cannot be used: nothing runs on silent defaults.
    pub fn load(home: &Home, backend: Option<String>) -> Result<Self, FileError> {
        let path = home.config();
        let mut file = ConfigFile::read(&path)?;
        // `<<` brings in the keys of another section. Only reading follows it: an edit leaves the text as it is.
        if let Err(error) = file.tree.apply_merge() {
            return Err(FileError::Syntax { path, place: String::new(), reason: error.to_string() });
        }
        let environment = std::env::var_os(BACKEND_VARIABLE).filter(|name| !name.is_empty());
        Ok(Self { file, path, environment, flag: backend })
    }

    /// Returns the value in force at `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Setting> {
        let name = key.to_string();
        if name == BACKEND {
            if let Some(flag) = &self.flag {
                return Some(Setting {
                    value: Value::String(flag.clone()),
                    origin: Origin::Flag("--backend"),
                });
            }
            if let Some(name) = &self.environment {
                let origin = Origin::Environment(BACKEND_VARIABLE);
                // What is no text names no backend, but it must not be passed over either.
                return Some(Setting { value: Value::String(name.to_string_lossy().into_owned()), origin });
            }
        }
        let aliases = schema::aliases_of(&name).filter_map(|old| Key::parse(old).ok());
        let mut names = std::iter::once(key.clone()).chain(aliases);
        let in_file =
            names.find_map(|key| super::get(&self.file.tree, &key)).filter(|value| !value.is_null());
        if let Some(value) = in_file {
            Some(Setting { value: value.clone(), origin: Origin::File(self.path.clone()) })
        } else {
            let value = serde_yaml::from_str(schema::default_of(&name)?).ok()?;
            Some(Setting { value, origin: Origin::Default })
        }
    }

    /// Returns every value in force, by key.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Setting)> {
        let mut keys: Vec<String> = leaves(&self.file.tree, &mut Vec::new());
        keys.extend(schema::KEYS.iter().map(|declared| declared.key.to_owned()));
        keys.sort();
        keys.dedup();
        let setting = |name: String| {
            let setting = self.get(&Key::parse(&name).ok()?)?;
            // A section shows by the keys in it.
            (!setting.value.is_mapping()).then_some((name, setting))
        };
        keys.into_iter().filter_map(setting).collect()
    }

    /// Looks the file over: keys that nobody reads, values that do not fit, older names.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        check::check(&self.file.tree)
    }

    /// Refuses a file in which something does not fit: a command that ran all the same would run on silent defaults. What is only read by
    /// a backend that is not selected keeps nobody from running commands.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that does not fit.
    pub fn sound(&self) -> Result<(), ConfigError> {
        let selected = self.backend().ok();
        let backend = selected.as_ref().and_then(|setting| setting.value.as_str()).unwrap_or_default();
        match check::in_the_way_of(&self.file.tree, backend) {
            Some(finding) => Err(ConfigError::Unsound(self.path.clone(), finding.message)),
            None => Ok(()),
        }
    }

    /// Returns the selected backend.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no text: a backend is never guessed.
    pub fn backend(&self) -> Result<Setting, ConfigError> {
        let setting = self.declared(BACKEND)?;
        if setting.value.as_str().is_some_and(|name| !name.trim().is_empty()) {
            return Ok(setting);
        }
        Err(ConfigError::Value {
            key: BACKEND.into(),
            value: value::shown(&setting.value),
            origin: setting.origin,
            reason: "the backend name is empty".into(),
        })
    }

    /// Returns the seconds at `key`.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no such number.
    pub fn seconds(&self, key: &str) -> Result<Duration, ConfigError> {
        let setting = self.declared(key)?;
        let seconds = setting.value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.ok_or_else(|| Self::misfit(key, &setting, "it is no length of time"))
    }

    /// Returns the whole number at `key`.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no such number.
    pub fn whole(&self, key: &str) -> Result<u64, ConfigError> {
        let setting = self.declared(key)?;
        setting.value.as_u64().ok_or_else(|| Self::misfit(key, &setting, "it is no whole number"))
    }

    /// Returns the flag at `key`.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no flag.
    pub fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        let setting = self.declared(key)?;
        setting.value.as_bool().ok_or_else(|| Self::misfit(key, &setting, "it is neither true nor false"))
    }

    /// Returns the text at `key`, if one is set.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no text.
    pub fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        let setting = self.declared(key)?;
        Ok(setting.value.as_str().map(str::to_owned))
    }

    /// Returns the word at `key`, which has one by default. A bare `off` is a word too, whatever a reader of YAML takes it for.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is none of the key's words.
    pub fn word(&self, key: &str) -> Result<String, ConfigError> {
        let setting = self.declared(key)?;
        match &setting.value {
            Value::String(word) => Ok(word.clone()),
            Value::Bool(word) => Ok(if *word { "on" } else { "off" }.to_owned()),
            _ => Err(Self::misfit(key, &setting, "it is no word")),
        }
    }

    /// Returns the texts at `key`.
    ///
    /// # Errors
    ///
    /// Fails if what stands there is no list of texts.
    pub fn list(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let setting = self.declared(key)?;
        match setting.value {
            Value::Null => Ok(Vec::new()),
            value => Ok(serde_yaml::from_value(value).unwrap_or_default()),
        }
    }

    /// Returns a section as JSON; nothing stands for an empty one.
    #[must_use]
    pub fn section(&self, key: &str) -> serde_json::Value {
        let value = Key::parse(key).ok().and_then(|key| self.get(&key)).map(|setting| setting.value);
        let json = value.and_then(|value| serde_json::to_value(value).ok());
        json.filter(serde_json::Value::is_object).unwrap_or_else(|| serde_json::json!({}))
    }

    /// Returns the value at a declared key, whose type it has; null where there is none.
    fn declared(&self, name: &str) -> Result<Setting, ConfigError> {
        let none = Setting { value: Value::Null, origin: Origin::Default };
        let Ok(key) = Key::parse(name) else { return Ok(none) };
        let Some(setting) = self.get(&key) else { return Ok(none) };
        match schema::find(&key) {
            Found::Declared(holds) if !value::fits(&setting.value, &holds) => {
                Err(Self::misfit(name, &setting, &expected(&setting.value, &holds)))
            }
            _ => Ok(setting),
        }
    }

    fn misfit(key: &str, setting: &Setting, reason: &str) -> ConfigError {
        ConfigError::Value {
            key: key.into(),
            origin: setting.origin.clone(),
            value: value::shown(&setting.value),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, flag: Option<&str>) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        std::fs::write(home.config(), text).unwrap();
        let mut config = Config::load(&home, flag.map(str::to_owned)).unwrap();
        config.environment = None;
        config
    }

    #[test]
    fn the_nearer_source_wins_and_is_named() {
        let mut config = config("terminal:\n  backend: docker\n", None);
        assert!(matches!(config.backend().unwrap().origin, Origin::File(_)));
        config.environment = Some("ssh".into());
        assert_eq!(config.backend().unwrap().origin, Origin::Environment(BACKEND_VARIABLE));
        config.flag = Some("local".into());
        let setting = config.backend().unwrap();
        assert_eq!(
            (setting.value, setting.origin),
            (Value::String("local".into()), Origin::Flag("--backend"))
        );
        assert_eq!(config.seconds("terminal.timeout").unwrap(), Duration::from_secs(180));
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_and_never_a_default() {
        let config =
            config("terminal:\n  backend: [a]\n  timeout: soon\nplugins:\n  enabled: acmebox\n", None);
        assert!(config.backend().is_err());
        assert!(config.seconds("terminal.timeout").is_err());
        assert!(config.list("plugins.enabled").is_err());
        assert_eq!(config.check().iter().filter(|finding| finding.is_error).count(), 3);
        assert!(super::tests::config("terminal: {backend: \"\"}\n", None).backend().is_err());
    }

    #[test]
    fn older_names_are_read_and_reported() {
        let config = config("terminal:\n  docker_image: deb\nterminall: {x: 1}\n", None);
        assert_eq!(config.text("terminal.docker.image").unwrap().as_deref(), Some("deb"));
        let messages: Vec<String> = config.check().into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
    }
}
