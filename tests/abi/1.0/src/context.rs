//! What a plugin's `register` function is given.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::TerminalEnvironmentProvider;

/// What the host tells a plugin about itself and the plugin's place in it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The host's version.
    pub host_version: String,
    /// The plugin's own folder.
    pub plugin_dir: PathBuf,
    /// The folder that the plugin may write to.
    pub data_dir: PathBuf,
    /// The user's settings for the plugin.
    pub settings: Value,
}

/// Takes what a plugin offers.
///
/// Sandbox launchers will be registered here as well, by a `register_sandbox_provider` beside the method for terminal
/// environments.
pub struct PluginContext {
    surroundings: Surroundings,
    providers: Vec<Box<dyn TerminalEnvironmentProvider>>,
}

impl PluginContext {
    /// Makes a context. The host does this; a plugin's own tests may.
    #[must_use]
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, providers: Vec::new() }
    }

    /// Offers a terminal backend. Its name must stand under `provides` in `plugin.yaml` (by default: the plugin's name).
    pub fn register_terminal_environment_provider(&mut self, provider: impl TerminalEnvironmentProvider) {
        self.providers.push(Box::new(provider));
    }

    /// Returns the version of the host.
    #[must_use]
    pub fn host_version(&self) -> &str {
        &self.surroundings.host_version
    }

    /// Returns the plugin's own folder, for files that it ships. The library itself is opened from a copy in memory.
    #[must_use]
    pub fn plugin_dir(&self) -> &Path {
        &self.surroundings.plugin_dir
    }

    /// Returns the directory that the plugin may write to. It may not exist yet.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.surroundings.data_dir
    }

    /// Returns the user's `plugins.settings.NAME`: an object, or null.
    #[must_use]
    pub fn settings(&self) -> &Value {
        &self.surroundings.settings
    }

    /// Returns what was registered, in order.
    #[must_use]
    pub fn into_providers(self) -> Vec<Box<dyn TerminalEnvironmentProvider>> {
        self.providers
    }
}
