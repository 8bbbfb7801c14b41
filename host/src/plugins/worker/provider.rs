//! A plugin's provider in a worker, looking like any other.

use std::sync::Arc;
use std::time::Duration;

use hostel_plugin_api::{
    CreateEnvironment, DoctorCheck, Environment, Error, ErrorKind, Probe, TerminalEnvironmentProvider,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::environment::RemoteEnvironment;
use super::lifecycle::Worker;
use super::message::{Attribute, Call};
use super::values::{Check, Verdict};
use crate::registry::CHEAP;

/// How long `resolve_config` may take: it computes.
const RESOLVING: Duration = Duration::from_secs(10);
/// How long `check_requirements` may take: it may ask a service.
const CHECKING: Duration = Duration::from_secs(15);
/// How long `post_setup` may take: a person may be asked.
const SETTING_UP: Duration = Duration::from_secs(600);

/// The provider.
pub struct RemoteProvider {
    name: String,
    worker: Arc<Worker>,
}

impl RemoteProvider {
    /// Makes the provider `name` of the plugin that `worker` runs.
    #[must_use]
    pub fn new(name: String, worker: Arc<Worker>) -> Self {
        Self { name, worker }
    }

    fn read<T: DeserializeOwned>(&self, attribute: Attribute) -> Result<T, Error> {
        let call = Call::Attribute { provider: self.name.clone(), attribute };
        self.worker.ask(&call, CHEAP)
    }

    /// Takes an attribute, or its default where reading it failed.
    fn soft<T: DeserializeOwned>(&self, attribute: Attribute, default: impl FnOnce() -> T) -> T {
        self.read(attribute).unwrap_or_else(|error| {
            let (backend, attribute) = (self.name.as_str(), attribute.name());
            tracing::warn!(backend, attribute, %error, "attribute unreadable, its default is used");
            default()
        })
    }

    /// Reads an attribute and drops it, to see whether it can be read: elsewhere a default stands in for one that cannot.
    ///
    /// # Errors
    ///
    /// Fails if it panics, ends its process or does not answer in time.
    pub fn try_attribute(&self, attribute: Attribute) -> Result<(), Error> {
        self.read::<Value>(attribute).map(drop)
    }

    /// Reads what it is and what it can be told, which its record keeps. What panics has its default.
    ///
    /// # Errors
    ///
    /// Fails if its worker does not answer.
    pub fn try_describe(&self) -> Result<(String, Value), Error> {
        let description = self.read(Attribute::Description);
        let description = description.or_else(|error| panicked(error, self.describing_nothing()))?;
        let schema = self.read(Attribute::ConfigSchema).or_else(|error| panicked(error, no_settings()))?;
        Ok((description, schema))
    }

    fn describing_nothing(&self) -> String {
        format!("Run commands in a {} environment", self.name)
    }

    /// Reads the names to strip.
    ///
    /// # Errors
    ///
    /// Fails if the provider cannot name them: a host must then not run commands for it.
    pub fn try_strip_env_keys(&self) -> Result<Vec<String>, Error> {
        self.read(Attribute::StripEnvKeys)
    }
}

fn no_settings() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Puts `default` in the place of what panicked; a worker that is gone is another matter.
fn panicked<T>(error: Error, default: T) -> Result<T, Error> {
    if error.kind() == ErrorKind::PANICKED { Ok(default) } else { Err(error) }
}

impl TerminalEnvironmentProvider for RemoteProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_available(&self) -> bool {
        self.soft(Attribute::IsAvailable, || false)
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        RemoteEnvironment::create(&self.worker, &self.name, request)
            .map(|environment| Box::new(environment) as _)
    }

    fn display_name(&self) -> String {
        self.soft(Attribute::DisplayName, || self.name.clone())
    }

    fn description(&self) -> String {
        self.soft(Attribute::Description, || self.describing_nothing())
    }

    fn probe(&self) -> Probe {
        match self.read::<Verdict>(Attribute::Probe) {
            Ok(verdict) => verdict.into(),
            Err(error) => Probe::unavailable(error.to_string()),
        }
    }

    fn setup_instructions(&self) -> Vec<String> {
        self.soft(Attribute::SetupInstructions, Vec::new)
    }

    fn post_setup(&self) -> Result<(), Error> {
        self.worker.ask(&Call::PostSetup { provider: self.name.clone() }, SETTING_UP)
    }

    fn doctor_checks(&self) -> Vec<DoctorCheck> {
        match self.read::<Vec<Check>>(Attribute::DoctorChecks) {
            Ok(rows) => rows.into_iter().map(DoctorCheck::from).collect(),
            Err(error) => vec![DoctorCheck::fail(format!("{} backend", self.name), error.to_string())],
        }
    }

    fn is_remote(&self) -> bool {
        self.soft(Attribute::IsRemote, || true)
    }

    fn env_description(&self) -> String {
        self.soft(Attribute::EnvDescription, || format!("a {} environment (likely Linux)", self.name))
    }

    fn is_container(&self) -> bool {
        self.soft(Attribute::IsContainer, || true)
    }

    fn skip_container_guards(&self) -> bool {
        self.soft(Attribute::SkipContainerGuards, || false)
    }

    fn cache_path_base(&self) -> Option<String> {
        self.soft(Attribute::CachePathBase, || None)
    }

    fn strip_env_keys(&self) -> Vec<String> {
        self.try_strip_env_keys().unwrap_or_default()
    }

    fn session_isolated_when_nonpersistent(&self) -> bool {
        self.soft(Attribute::SessionIsolatedWhenNonpersistent, || false)
    }

    fn default_cwd(&self) -> Option<String> {
        self.soft(Attribute::DefaultCwd, || None)
    }

    fn guest_home(&self) -> Option<String> {
        self.soft(Attribute::GuestHome, || None)
    }

    fn costs_to_create(&self) -> bool {
        self.soft(Attribute::CostsToCreate, || true)
    }

    fn config_schema(&self) -> Value {
        self.soft(Attribute::ConfigSchema, no_settings)
    }

    fn resolve_config(&self, config: Value) -> Result<Value, Error> {
        self.worker.ask(&Call::ResolveConfig { provider: self.name.clone(), config }, RESOLVING)
    }

    fn check_requirements(&self, config: &Value) -> Result<(), Error> {
        let call = Call::CheckRequirements { provider: self.name.clone(), config: config.clone() };
        self.worker.ask(&call, CHECKING).map_err(|error| match error.kind() {
            ErrorKind::TIMEOUT => error.with_context("its requirements could not be checked"),
            _ => error,
        })
    }
}
