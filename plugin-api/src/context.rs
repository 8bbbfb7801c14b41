//! What a plugin's `register` function is given.

use std::path::{Path, PathBuf};

use crate::TerminalEnvironmentProvider;

/// Takes what a plugin offers.
///
/// Sandbox launchers will be registered here as well, by a `register_sandbox_provider` beside the method for terminal
/// environments.
pub struct PluginContext {
    data_dir: PathBuf,
    providers: Vec<Box<dyn TerminalEnvironmentProvider>>,
}

impl PluginContext {
    /// Makes a context for a plugin whose own files live in `data_dir`. The host does this; a plugin's tests may.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        Self { data_dir, providers: Vec::new() }
    }

    /// Offers a terminal backend. Its name must stand under `provides` in `plugin.yaml` (by default: the plugin's name).
    pub fn register_terminal_environment_provider(&mut self, provider: impl TerminalEnvironmentProvider) {
        self.providers.push(Box::new(provider));
    }

    /// Returns the directory that the plugin may write to. It may not exist yet.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Returns what was registered, in order.
    #[must_use]
    pub fn into_providers(self) -> Vec<Box<dyn TerminalEnvironmentProvider>> {
        self.providers
    }
}
