//! What a plugin and its host tell each other while the plugin registers what it offers.
//!
//! It is an object of the host's and not a list of arguments, so that a later version can add to it at the end: launchers for
//! sandboxes, further services.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use abi_stable::sabi_trait;
use abi_stable::sabi_trait::prelude::TD_Opaque;
use abi_stable::std_types::{RBox, RString};

use super::guard::guard_or;
use super::log::{AbiLogBox, HostLog};
use super::provider::{AbiProviderBox, PluginProvider};
use crate::PluginContext;
use crate::context::Surroundings;

/// The host's side of a registration.
#[sabi_trait]
pub trait AbiRegistration: Send + Sync + 'static {
    /// The host's log.
    fn log(&self) -> AbiLogBox;
    /// As [`PluginContext::host_version`].
    fn host_version(&self) -> RString;
    /// As [`PluginContext::plugin_dir`].
    fn plugin_dir(&self) -> RString;
    /// As [`PluginContext::data_dir`].
    fn data_dir(&self) -> RString;
    /// As [`PluginContext::settings`], in JSON.
    fn settings(&self) -> RString;
    /// As [`PluginContext::register_terminal_environment_provider`].
    #[sabi(last_prefix_field)]
    fn register_terminal_environment_provider(&self, provider: AbiProviderBox);
}

/// The object that crosses.
pub(crate) type AbiRegistrationBox = AbiRegistration_TO<RBox<()>>;

/// The plugin's side: makes the context that the plugin's `register` is given.
pub(crate) fn context(host: &AbiRegistrationBox) -> PluginContext {
    PluginContext::new(Surroundings {
        host_version: host.host_version().into_string(),
        plugin_dir: PathBuf::from(host.plugin_dir().into_string()),
        data_dir: PathBuf::from(host.data_dir().into_string()),
        settings: serde_json::from_str(&host.settings()).unwrap_or_default(),
    })
}

/// The plugin's side: hands over what `register` has put into the context.
pub(crate) fn hand_over(context: PluginContext, host: &AbiRegistrationBox) {
    for provider in context.into_providers() {
        host.register_terminal_environment_provider(PluginProvider::crossing(provider));
    }
}

/// The host's side.
pub(crate) struct HostRegistration {
    plugin: String,
    surroundings: Surroundings,
    providers: Arc<Mutex<Vec<AbiProviderBox>>>,
}

impl HostRegistration {
    /// Makes the object that crosses, and the list that it fills.
    pub(crate) fn crossing(
        plugin: &str,
        surroundings: Surroundings,
    ) -> (AbiRegistrationBox, Arc<Mutex<Vec<AbiProviderBox>>>) {
        let providers = Arc::default();
        let own = Self { plugin: plugin.to_owned(), surroundings, providers: Arc::clone(&providers) };
        (AbiRegistration_TO::from_value(own, TD_Opaque), providers)
    }
}

impl AbiRegistration for HostRegistration {
    fn log(&self) -> AbiLogBox {
        HostLog::crossing(&self.plugin)
    }

    fn host_version(&self) -> RString {
        self.surroundings.host_version.as_str().into()
    }

    fn plugin_dir(&self) -> RString {
        self.surroundings.plugin_dir.to_string_lossy().into_owned().into()
    }

    fn data_dir(&self) -> RString {
        self.surroundings.data_dir.to_string_lossy().into_owned().into()
    }

    fn settings(&self) -> RString {
        guard_or(RString::new(), || self.surroundings.settings.to_string().into())
    }

    fn register_terminal_environment_provider(&self, provider: AbiProviderBox) {
        guard_or((), || self.providers.lock().unwrap_or_else(PoisonError::into_inner).push(provider));
    }
}
