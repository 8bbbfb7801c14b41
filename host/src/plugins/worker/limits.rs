//! What a worker may use up.

use std::ffi::OsString;

use hostel_plugin_api::shell::LIMITS_VARIABLE;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};

/// Limits of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory that it may write to, in MiB.
    pub memory: u64,
    /// Descriptors that it may have open.
    pub open_files: u64,
}

impl Limits {
    /// Reads the limits from the configuration.
    ///
    /// # Errors
    ///
    /// Fails if a value is no number.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            memory: config.whole("plugins.limits.memory")?,
            open_files: config.whole("plugins.limits.open_files")?,
        })
    }

    /// Holds this process to them, and turns core dumps off. `hard` also keeps it from raising them again, which would hold the
    /// commands that it starts to them as well.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says.
    pub fn apply(self, hard: bool) -> std::io::Result<()> {
        // Private memory that can be written to. The whole address space would also count what is merely reserved.
        set(Resource::Data, self.memory.saturating_mul(1 << 20), hard)?;
        set(Resource::Nofile, self.open_files, hard)?;
        set(Resource::Core, 0, true)
    }
}

fn set(resource: Resource, value: u64, hard: bool) -> std::io::Result<()> {
    let now = getrlimit(resource);
    let value = now.maximum.map_or(value, |maximum| value.min(maximum));
    let maximum = if hard { Some(value) } else { now.maximum };
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum })?)
}

/// This process's own limits, for the commands that a worker starts: see [`LIMITS_VARIABLE`].
pub(super) fn for_commands() -> (OsString, OsString) {
    let shown =
        |resource| getrlimit(resource).current.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    (LIMITS_VARIABLE.into(), format!("{}:{}", shown(Resource::Data), shown(Resource::Nofile)).into())
}
