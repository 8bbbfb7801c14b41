//! What was found out of a plugin when it was enabled.
//!
//! Some things must be known of every enabled plugin in every process, above all which variables are its secrets, and
//! opening all libraries for that would cost too much. So they are asked once, when the plugin is enabled, and written down
//! together with the checksum of the library that gave the answer.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hostel_plugin_api::{Error, TerminalEnvironmentProvider};
use serde::{Deserialize, Serialize};

use super::load::Pin;
use super::permissions::Permissions;
use super::worker::RemoteProvider;
use crate::home::{Home, make_private, read_regular};

/// More than this is no record.
const LONGEST: u64 = 4 * 1024 * 1024;

/// One provider of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderRecord {
    /// The backend name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Variables that no command may see.
    pub strip_env_keys: Vec<String>,
    /// What it says of its own settings.
    pub config_schema: serde_json::Value,
}

impl ProviderRecord {
    /// Asks a provider whose secrets are known.
    ///
    /// # Errors
    ///
    /// Fails if its worker does not answer.
    pub fn of(provider: &RemoteProvider, strip_env_keys: Vec<String>) -> Result<Self, Error> {
        let (description, config_schema) = provider.try_describe()?;
        Ok(Self { name: provider.name().to_owned(), description, strip_env_keys, config_schema })
    }
}

/// The record of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The folder that was enabled. Another one of the same name is not.
    pub folder: PathBuf,
    /// The library that was enabled.
    pub pin: Pin,
    /// The other files that the manifest names, as they were.
    #[serde(default)]
    pub files: Vec<Pin>,
    /// What its code may do.
    #[serde(default)]
    pub permissions: Permissions,
    /// The version of the plugin API that it was built for.
    pub api_version: String,
    /// Variables that its manifest called secrets.
    pub secrets: Vec<String>,
    /// Its providers.
    pub providers: Vec<ProviderRecord>,
}

impl Record {
    /// Reads the record of `plugin`. One that is not there or is damaged is none: the plugin then has to be enabled again.
    #[must_use]
    pub fn load(home: &Home, plugin: &str) -> Option<Self> {
        let read = read_regular(&path(home, plugin), LONGEST);
        let unreadable = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
        if let Some(error) = read.as_ref().err().filter(|error| unreadable(error)) {
            tracing::warn!(plugin, %error, "the plugin's record cannot be read");
        }
        let bytes = read.ok()?;
        let record = serde_json::from_slice(&bytes);
        record.inspect_err(|error| tracing::warn!(plugin, %error, "the plugin's record is damaged")).ok()
    }

    /// Writes the record of `plugin`, for this user only.
    ///
    /// # Errors
    ///
    /// Fails with the path and what the operating system said.
    pub fn save(&self, home: &Home, plugin: &str) -> Result<(), (PathBuf, io::Error)> {
        let path = path(home, plugin);
        let write = |dir: &Path| {
            make_private(dir)?;
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.persist(&path)?;
            Ok(())
        };
        write(&home.plugin_records()).map_err(|error| (path.clone(), error))
    }

    /// Whether the library that was enabled lies in `folder`.
    #[must_use]
    pub fn pins(&self, folder: &Path) -> bool {
        let Pin { library, sha256, size } = &self.pin;
        let is_there = super::granted::hash(&folder.join(library));
        is_there.is_ok_and(|(found, length)| (&found, &length) == (sha256, size))
    }

    /// Forgets the record of `plugin`.
    pub fn remove(home: &Home, plugin: &str) {
        // One that stays is overwritten when the plugin is enabled again.
        let _ = fs::remove_file(path(home, plugin));
    }
}

fn path(home: &Home, plugin: &str) -> PathBuf {
    home.plugin_records().join(format!("{plugin}.json"))
}
