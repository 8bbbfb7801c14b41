//! What the configuration says of background processes.

use std::time::Duration;

use crate::config::{Config, ConfigError};

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    /// The most bytes that are kept of one process's output.
    pub(super) log_max: u64,
    /// The most processes that run at once.
    pub(super) max_running: usize,
    /// For how long a process is known after its end.
    pub(super) keep_finished: Duration,
    /// How long a process may take to end before it is killed by force. Zero: for ever.
    pub(super) grace: Duration,
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Fails if one does not fit.
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            log_max: config.whole("processes.log_max_bytes")?,
            max_running: usize::try_from(config.whole("processes.max_running")?).unwrap_or(usize::MAX),
            keep_finished: config.seconds("processes.keep_finished_s")?,
            grace: config.seconds("terminal.daemon_term_grace_seconds")?,
        })
    }
}
