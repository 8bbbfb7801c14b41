//! How much is kept of outputs of which only a part is shown.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Config, ConfigError};
use crate::home::Home;

/// Where whole outputs are kept, and the limits on that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// The folder.
    pub dir: PathBuf,
    /// The most bytes that are kept of one.
    pub each: u64,
    /// The most bytes that older ones may take up when a new one comes; the oldest go first.
    pub total: u64,
    /// How long one is kept.
    pub age: Duration,
}

impl Outputs {
    /// Reads the limits, for the outputs of `home`.
    ///
    /// # Errors
    ///
    /// Fails if one of them does not fit.
    pub fn read(config: &Config, home: &Home) -> Result<Self, ConfigError> {
        Ok(Self {
            dir: home.outputs(),
            each: config.whole("outputs.max_bytes")?,
            total: config.whole("outputs.max_total_bytes")?,
            age: config.seconds("outputs.keep_s")?,
        })
    }

    /// Returns the limits that hold where nothing else was set, for outputs in `dir`.
    #[must_use]
    pub fn in_dir(dir: PathBuf) -> Self {
        Self { dir, each: 1 << 30, total: 4 << 30, age: Duration::from_secs(7 * 24 * 60 * 60) }
    }
}
