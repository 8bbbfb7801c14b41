//! [`TerminalEnvironmentProvider`] as it crosses.

use std::mem::ManuallyDrop;

use abi_stable::StableAbi;
use abi_stable::sabi_trait;
use abi_stable::sabi_trait::prelude::TD_Opaque;
use abi_stable::std_types::{RBox, ROption, RResult, RStr, RString, RVec};

use super::creation::AbiCreateEnvironment;
use super::environment::{AbiEnvironmentBox, ForeignEnvironment, PluginEnvironment};
use super::error::AbiError;
use super::fields::{json, optional, strings};
use super::guard::{guard, guard_or};
use crate::{CreateEnvironment, DoctorCheck, Environment, Error, Probe, TerminalEnvironmentProvider};
use serde_json::Value;

/// The crossing form of [`Probe`]. `extra` is JSON that a later version may fill, as it is wherever it stands.
#[repr(C)]
#[derive(StableAbi)]
pub struct AbiProbe {
    pub(crate) status: u32,
    pub(crate) detail: RString,
    pub(crate) extra: RString,
}

/// The crossing form of [`DoctorCheck`].
#[repr(C)]
#[derive(StableAbi)]
pub struct AbiDoctorCheck {
    pub(crate) ok: u8,
    pub(crate) label: RString,
    pub(crate) detail: RString,
    pub(crate) extra: RString,
}

/// The crossing form of [`TerminalEnvironmentProvider`]. A flag is 1 for true; anything else is not.
#[sabi_trait]
pub trait AbiProvider: Send + Sync + 'static {
    /// The backend name.
    fn name(&self) -> RResult<RString, AbiError>;
    /// Whether commands can be served.
    fn is_available(&self) -> RResult<u8, AbiError>;
    /// Makes an environment.
    fn create_environment(&self, request: AbiCreateEnvironment) -> RResult<AbiEnvironmentBox, AbiError>;
    /// The name for people.
    fn display_name(&self) -> RResult<RString, AbiError>;
    /// One line for lists.
    fn description(&self) -> RResult<RString, AbiError>;
    /// Whether it can be used now.
    fn probe(&self) -> RResult<AbiProbe, AbiError>;
    /// What a new user has to do.
    fn setup_instructions(&self) -> RResult<RVec<RString>, AbiError>;
    /// Runs after the backend was chosen.
    fn post_setup(&self) -> RResult<(), AbiError>;
    /// Rows for the doctor.
    fn doctor_checks(&self) -> RResult<RVec<AbiDoctorCheck>, AbiError>;
    /// Flag.
    fn is_remote(&self) -> RResult<u8, AbiError>;
    /// Text for the prompt.
    fn env_description(&self) -> RResult<RString, AbiError>;
    /// Flag.
    fn is_container(&self) -> RResult<u8, AbiError>;
    /// Flag.
    fn skip_container_guards(&self) -> RResult<u8, AbiError>;
    /// Where cached files appear.
    fn cache_path_base(&self) -> RResult<ROption<RString>, AbiError>;
    /// Names to strip.
    fn strip_env_keys(&self) -> RResult<RVec<RString>, AbiError>;
    /// Flag.
    fn session_isolated_when_nonpersistent(&self) -> RResult<u8, AbiError>;
    /// Where sessions start.
    fn default_cwd(&self) -> RResult<ROption<RString>, AbiError>;
    /// The home inside.
    fn guest_home(&self) -> RResult<ROption<RString>, AbiError>;
    /// Flag.
    fn costs_to_create(&self) -> RResult<u8, AbiError>;
    /// JSON.
    fn config_schema(&self) -> RResult<RString, AbiError>;
    /// JSON to JSON.
    fn resolve_config(&self, config: RStr<'_>) -> RResult<RString, AbiError>;
    /// Checks before creation.
    #[sabi(last_prefix_field)]
    fn check_requirements(&self, config: RStr<'_>) -> RResult<(), AbiError>;
}

/// The object that crosses.
pub(crate) type AbiProviderBox = AbiProvider_TO<RBox<()>>;

/// The plugin's side: guards a plugin's provider, its destructor included.
pub(crate) struct PluginProvider(ManuallyDrop<Box<dyn TerminalEnvironmentProvider>>);

impl PluginProvider {
    pub(crate) fn crossing(provider: Box<dyn TerminalEnvironmentProvider>) -> AbiProviderBox {
        AbiProvider_TO::from_value(Self(ManuallyDrop::new(provider)), TD_Opaque)
    }
}

impl Drop for PluginProvider {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing reads the field after it.
        guard_or((), || unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

impl AbiProvider for PluginProvider {
    fn name(&self) -> RResult<RString, AbiError> {
        guard("name", || Ok(self.0.name().into()))
    }
    fn is_available(&self) -> RResult<u8, AbiError> {
        guard("is_available", || Ok(self.0.is_available().into()))
    }
    fn create_environment(&self, request: AbiCreateEnvironment) -> RResult<AbiEnvironmentBox, AbiError> {
        guard("create_environment", || {
            Ok(PluginEnvironment::crossing(self.0.create_environment(request.try_into()?)?))
        })
    }
    fn display_name(&self) -> RResult<RString, AbiError> {
        guard("display_name", || Ok(self.0.display_name().into()))
    }
    fn description(&self) -> RResult<RString, AbiError> {
        guard("description", || Ok(self.0.description().into()))
    }
    fn probe(&self) -> RResult<AbiProbe, AbiError> {
        guard("probe", || {
            let Probe { status, detail } = self.0.probe();
            Ok(AbiProbe { status: status.0, detail: detail.into(), extra: RString::new() })
        })
    }
    fn setup_instructions(&self) -> RResult<RVec<RString>, AbiError> {
        guard("setup_instructions", || Ok(strings(self.0.setup_instructions())))
    }
    fn post_setup(&self) -> RResult<(), AbiError> {
        guard("post_setup", || self.0.post_setup())
    }
    fn doctor_checks(&self) -> RResult<RVec<AbiDoctorCheck>, AbiError> {
        guard("doctor_checks", || {
            let row = |DoctorCheck { ok, label, detail }| AbiDoctorCheck {
                ok: u8::from(ok),
                label: RString::from(label),
                detail: RString::from(detail),
                extra: RString::new(),
            };
            Ok(self.0.doctor_checks().into_iter().map(row).collect())
        })
    }
    fn is_remote(&self) -> RResult<u8, AbiError> {
        guard("is_remote", || Ok(self.0.is_remote().into()))
    }
    fn env_description(&self) -> RResult<RString, AbiError> {
        guard("env_description", || Ok(self.0.env_description().into()))
    }
    fn is_container(&self) -> RResult<u8, AbiError> {
        guard("is_container", || Ok(self.0.is_container().into()))
    }
    fn skip_container_guards(&self) -> RResult<u8, AbiError> {
        guard("skip_container_guards", || Ok(self.0.skip_container_guards().into()))
    }
    fn cache_path_base(&self) -> RResult<ROption<RString>, AbiError> {
        guard("cache_path_base", || Ok(optional(self.0.cache_path_base())))
    }
    fn strip_env_keys(&self) -> RResult<RVec<RString>, AbiError> {
        guard("strip_env_keys", || Ok(strings(self.0.strip_env_keys())))
    }
    fn session_isolated_when_nonpersistent(&self) -> RResult<u8, AbiError> {
        guard("session_isolated_when_nonpersistent", || {
            Ok(self.0.session_isolated_when_nonpersistent().into())
        })
    }
    fn default_cwd(&self) -> RResult<ROption<RString>, AbiError> {
        guard("default_cwd", || Ok(optional(self.0.default_cwd())))
    }
    fn guest_home(&self) -> RResult<ROption<RString>, AbiError> {
        guard("guest_home", || Ok(optional(self.0.guest_home())))
    }
    fn costs_to_create(&self) -> RResult<u8, AbiError> {
        guard("costs_to_create", || Ok(self.0.costs_to_create().into()))
    }
    fn config_schema(&self) -> RResult<RString, AbiError> {
        guard("config_schema", || Ok(self.0.config_schema().to_string().into()))
    }
    fn resolve_config(&self, config: RStr<'_>) -> RResult<RString, AbiError> {
        guard("resolve_config", || Ok(self.0.resolve_config(json(config.as_str())?)?.to_string().into()))
    }
    fn check_requirements(&self, config: RStr<'_>) -> RResult<(), AbiError> {
        guard("check_requirements", || self.0.check_requirements(&json(config.as_str())?))
    }
}

/// The host's side: a plugin's provider, looking like any other.
pub struct ForeignProvider {
    name: String,
    provider: AbiProviderBox,
}

impl ForeignProvider {
    pub(crate) fn new(provider: AbiProviderBox) -> Result<Self, Error> {
        let name = provider.name().into_result()?.into_string();
        Ok(Self { name, provider })
    }

    /// Takes an attribute, or its default where reading it failed.
    fn soft<T>(&self, attribute: &str, read: Result<T, Error>, default: impl FnOnce() -> T) -> T {
        read.unwrap_or_else(|error| {
            tracing::warn!(backend = self.name, attribute, %error, "attribute unreadable, its default is used");
            default()
        })
    }

    fn flag(&self, attribute: &str, read: RResult<u8, AbiError>, default: bool) -> bool {
        self.soft(attribute, attributes::flag(read), || default)
    }

    fn text(
        &self,
        attribute: &str,
        read: RResult<RString, AbiError>,
        default: impl FnOnce() -> String,
    ) -> String {
        self.soft(attribute, attributes::text(read), default)
    }

    fn optional(&self, attribute: &str, read: RResult<ROption<RString>, AbiError>) -> Option<String> {
        self.soft(attribute, attributes::optional(read), || None)
    }
}

impl TerminalEnvironmentProvider for ForeignProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_available(&self) -> bool {
        self.flag("is_available", self.provider.is_available(), false)
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        let environment = self.provider.create_environment(request.into()).into_result()?;
        Ok(Box::new(ForeignEnvironment(environment)))
    }

    fn display_name(&self) -> String {
        self.text("display_name", self.provider.display_name(), || self.name.clone())
    }

    fn description(&self) -> String {
        self.text("description", self.provider.description(), || {
            format!("Run commands in a {} environment", self.display_name())
        })
    }

    fn probe(&self) -> Probe {
        self.try_probe().unwrap_or_else(|error| Probe::unavailable(error.to_string()))
    }

    fn setup_instructions(&self) -> Vec<String> {
        self.soft("setup_instructions", self.try_setup_instructions(), Vec::new)
    }

    fn post_setup(&self) -> Result<(), Error> {
        Ok(self.provider.post_setup().into_result()?)
    }

    fn doctor_checks(&self) -> Vec<DoctorCheck> {
        self.try_doctor_checks().unwrap_or_else(|error| {
            vec![DoctorCheck::fail(format!("{} backend", self.name), error.to_string())]
        })
    }

    fn is_remote(&self) -> bool {
        self.flag("is_remote", self.provider.is_remote(), true)
    }

    fn env_description(&self) -> String {
        self.text("env_description", self.provider.env_description(), || {
            format!("a {} environment (likely Linux)", self.display_name())
        })
    }

    fn is_container(&self) -> bool {
        self.flag("is_container", self.provider.is_container(), true)
    }

    fn skip_container_guards(&self) -> bool {
        self.flag("skip_container_guards", self.provider.skip_container_guards(), false)
    }

    fn cache_path_base(&self) -> Option<String> {
        self.optional("cache_path_base", self.provider.cache_path_base())
    }

    fn strip_env_keys(&self) -> Vec<String> {
        self.try_strip_env_keys().unwrap_or_default()
    }

    fn session_isolated_when_nonpersistent(&self) -> bool {
        let read = self.provider.session_isolated_when_nonpersistent();
        self.flag("session_isolated_when_nonpersistent", read, false)
    }

    fn default_cwd(&self) -> Option<String> {
        self.optional("default_cwd", self.provider.default_cwd())
    }

    fn guest_home(&self) -> Option<String> {
        self.optional("guest_home", self.provider.guest_home())
    }

    fn costs_to_create(&self) -> bool {
        self.flag("costs_to_create", self.provider.costs_to_create(), true)
    }

    fn config_schema(&self) -> Value {
        self.soft("config_schema", self.try_config_schema(), || Value::Object(serde_json::Map::new()))
    }

    fn resolve_config(&self, config: Value) -> Result<Value, Error> {
        let text = self.provider.resolve_config(config.to_string().as_str().into()).into_result()?;
        json(&text)
    }

    fn check_requirements(&self, config: &Value) -> Result<(), Error> {
        Ok(self.provider.check_requirements(config.to_string().as_str().into()).into_result()?)
    }
}

mod attributes;
#[cfg(test)]
mod tests;
