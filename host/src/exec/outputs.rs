//! How much is kept of outputs of which only a part is shown.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Config, ConfigError};
use crate::digest::sha256_hex;
use crate::home::Home;

/// How the names of all begin.
const PREFIX: &str = "out-";

/// How many letters of a digest tell one task from another.
const LABEL: usize = 16;

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
    /// Whose they are, as a part of their names; empty if that does not matter.
    pub label: String,
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
            label: String::new(),
        })
    }

    /// Returns the limits that hold where nothing else was set, for outputs in `dir`.
    #[must_use]
    pub fn in_dir(dir: PathBuf) -> Self {
        let (age, label) = (Duration::from_secs(7 * 24 * 60 * 60), String::new());
        Self { dir, each: 1 << 30, total: 4 << 30, age, label }
    }

    /// Returns the same, for the outputs of one task.
    #[must_use]
    pub fn of_task(self, backend: &str, task: &str) -> Self {
        // Names may hold anything, a file's name may not; and they may be long.
        let digest = sha256_hex(format!("{backend}\0{task}").as_bytes());
        Self { label: digest[..LABEL].to_owned(), ..self }
    }

    /// Returns how the name of each begins.
    #[must_use]
    pub fn prefix(&self) -> String {
        if self.label.is_empty() { PREFIX.to_owned() } else { format!("{PREFIX}{}-", self.label) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_one_tasks_outputs_are_no_other_tasks() {
        let of = |backend: &str, task: &str| Outputs::in_dir("/o".into()).of_task(backend, task).prefix();
        assert_eq!(of("local", "a"), of("local", "a"));
        assert_eq!(of("local", "a").len(), PREFIX.len() + LABEL + 1);
        for (backend, task) in [("local", "b"), ("other", "a"), ("loc", "al\0a")] {
            assert_ne!(of("local", "a"), of(backend, task));
        }
        assert_eq!(Outputs::in_dir("/o".into()).prefix(), PREFIX);
    }
}
