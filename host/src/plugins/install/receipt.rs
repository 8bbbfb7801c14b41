//! Where a plugin came from, so that it can be fetched from there again.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::error::InstallError;
use super::source::Source;
use crate::home::{Home, make_private, read_regular};

/// More than this is no receipt.
const LONGEST: u64 = 64 * 1024;

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The source, without what may be a token.
    pub source: Source,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// The SHA-256 of the archive, in hexadecimal, if it was one.
    pub sha256: Option<String>,
    /// The commit, if it was a git repository.
    pub commit: Option<String>,
    /// The plugin's version.
    pub version: String,
    /// When it was installed, in seconds since 1970.
    pub installed_at: u64,
}

impl Receipt {
    /// Makes the receipt of what was installed just now.
    pub(super) fn new(
        source: &Source,
        sha256: Option<String>,
        commit: Option<String>,
        version: String,
    ) -> Self {
        let (source, is_whole) = source.for_keeping();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { source, is_whole, sha256, commit, version, installed_at: now.as_secs() }
    }

    /// Reads the receipt of `plugin`. One that is not there or is damaged is none.
    #[must_use]
    pub fn load(home: &Home, plugin: &str) -> Option<Self> {
        let bytes = read_regular(&path(home, plugin), LONGEST).ok()?;
        let receipt = serde_json::from_slice(&bytes);
        receipt.inspect_err(|error| tracing::warn!(plugin, %error, "the plugin's receipt is damaged")).ok()
    }

    /// Writes the receipt of `plugin`, for this user only.
    pub(super) fn save(&self, home: &Home, plugin: &str) -> Result<(), InstallError> {
        let path = path(home, plugin);
        let write = || -> io::Result<()> {
            let dir = home.plugin_records();
            make_private(&dir)?;
            let mut file = tempfile::NamedTempFile::new_in(&dir)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| InstallError::Write(path.clone(), error))
    }

    /// Forgets where `plugin` came from.
    pub(super) fn remove(home: &Home, plugin: &str) {
        // One that stays is overwritten when the plugin is installed again.
        let _ = fs::remove_file(path(home, plugin));
    }
}

/// The path of a receipt. No plugin's name has a dot in it, so it cannot be a record's.
fn path(home: &Home, plugin: &str) -> PathBuf {
    home.plugin_records().join(format!("{plugin}.source.json"))
}
