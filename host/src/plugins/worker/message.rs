//! What the JSON frames hold.
//!
//! Plain objects, whose members are those of the plugin interface under the same names: a plugin that is a program in another
//! language can speak them. Unknown members are passed over; `docs/plugin-protocol.md` describes all of it.

use std::path::PathBuf;

use hostel_plugin_api::{Error, ErrorKind, Extra};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::error::{LoadError, Step};
use super::super::load::Pin;
use super::super::manifest::Manifest;
use super::limits::Limits;
use super::masks::Masks;
use super::values::{Creation, Execution};

/// The version of the protocol: raised when a peer of the version before could misunderstand.
pub const PROTOCOL: u32 = 2;

/// The host's first frame.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The host's version.
    pub host_version: String,
    /// The plugin's folder.
    pub folder: PathBuf,
    /// What the plugin says of itself, as the host has read it.
    pub manifest: Manifest,
    /// The folder that the plugin may write to.
    pub data_dir: PathBuf,
    /// The folders below which the host keeps what a task's environment wants to remember.
    pub state_dirs: Vec<PathBuf>,
    /// The user's settings for the plugin.
    pub settings: Value,
    /// The highest level of records that the host writes down, from 0 (none) to 5 (all).
    pub log_level: u8,
    /// What it may use up.
    pub limits: Limits,
    /// Whether it is to die of the first socket for another machine that it makes, or that a program of its makes.
    #[serde(default)]
    pub trap_network: bool,
    /// Whether the user's other processes may look into it.
    #[serde(default)]
    pub watched: bool,
}

/// The host's second frame: the library has been found to be the right one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Library {
    /// What to check where the worker has to read it from the folder. None: it comes along as a descriptor, verified and sealed.
    pub pin: Option<Pin>,
}

/// The worker's first frame.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Welcome {
    /// The plugin is loaded.
    Ready {
        /// [`PROTOCOL`].
        protocol: u32,
        /// What it registered.
        providers: Vec<Registered>,
        /// Permissions that the kernel cannot hold it to, a line each.
        unenforced: Vec<String>,
    },
    /// It cannot be loaded.
    Failed {
        /// The step.
        step: Step,
        /// Why.
        reason: String,
        /// What to do.
        hint: String,
    },
}

impl Welcome {
    pub(super) fn failed(LoadError { step, reason, hint, .. }: LoadError) -> Self {
        Self::Failed { step, reason, hint }
    }
}

/// One provider that was registered.
#[derive(Debug, Serialize, Deserialize)]
pub struct Registered {
    /// The backend name.
    pub name: String,
    /// The variables to strip; none if it could not name them.
    pub strip_env_keys: Option<Vec<String>>,
    /// Why it could not.
    pub strip_env_error: Option<String>,
}

/// A call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Call {
    /// Reads an attribute of a provider.
    Attribute {
        /// The provider.
        provider: String,
        /// The attribute.
        attribute: Attribute,
    },
    /// As the provider's method.
    PostSetup {
        /// The provider.
        provider: String,
    },
    /// As the provider's method.
    ResolveConfig {
        /// The provider.
        provider: String,
        /// The user's section.
        config: Value,
    },
    /// As the provider's method.
    CheckRequirements {
        /// The provider.
        provider: String,
        /// The resolved section.
        config: Value,
    },
    /// Makes an environment; the result is its number.
    CreateEnvironment {
        /// The provider.
        provider: String,
        /// What is asked for.
        request: Box<Creation>,
    },
    /// Runs a command.
    Execute {
        /// The environment.
        environment: u64,
        /// What is asked for.
        request: Box<Execution>,
    },
    /// As the environment's method.
    Cleanup {
        /// The environment.
        environment: u64,
    },
    /// As the environment's method.
    Persist {
        /// The environment.
        environment: u64,
    },
    /// As the environment's method; the contents come as data.
    ReadFile {
        /// The environment.
        environment: u64,
        /// The path inside.
        path: String,
    },
    /// As the environment's method; the contents were sent as data before the call.
    WriteFile {
        /// The environment.
        environment: u64,
        /// The path inside.
        path: String,
    },
    /// Lets an environment's number go.
    Release {
        /// The environment.
        environment: u64,
    },
}

impl Call {
    /// Returns the method's name, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Attribute { attribute, .. } => attribute.name(),
            Self::PostSetup { .. } => "post_setup",
            Self::ResolveConfig { .. } => "resolve_config",
            Self::CheckRequirements { .. } => "check_requirements",
            Self::CreateEnvironment { .. } => "create_environment",
            Self::Execute { .. } => "execute",
            Self::Cleanup { .. } => "cleanup",
            Self::Persist { .. } => "persist",
            Self::ReadFile { .. } => "read_file",
            Self::WriteFile { .. } => "write_file",
            Self::Release { .. } => "release",
        }
    }
}

/// An attribute of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the provider's method of that name")]
pub enum Attribute {
    IsAvailable,
    DisplayName,
    Description,
    Probe,
    SetupInstructions,
    DoctorChecks,
    IsRemote,
    EnvDescription,
    IsContainer,
    SkipContainerGuards,
    CachePathBase,
    StripEnvKeys,
    SessionIsolatedWhenNonpersistent,
    DefaultCwd,
    GuestHome,
    CostsToCreate,
    ConfigSchema,
}

impl Attribute {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::IsAvailable,
        Self::DisplayName,
        Self::Description,
        Self::Probe,
        Self::SetupInstructions,
        Self::DoctorChecks,
        Self::IsRemote,
        Self::EnvDescription,
        Self::IsContainer,
        Self::SkipContainerGuards,
        Self::CachePathBase,
        Self::StripEnvKeys,
        Self::SessionIsolatedWhenNonpersistent,
        Self::DefaultCwd,
        Self::GuestHome,
        Self::CostsToCreate,
        Self::ConfigSchema,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IsAvailable => "is_available",
            Self::DisplayName => "display_name",
            Self::Description => "description",
            Self::Probe => "probe",
            Self::SetupInstructions => "setup_instructions",
            Self::DoctorChecks => "doctor_checks",
            Self::IsRemote => "is_remote",
            Self::EnvDescription => "env_description",
            Self::IsContainer => "is_container",
            Self::SkipContainerGuards => "skip_container_guards",
            Self::CachePathBase => "cache_path_base",
            Self::StripEnvKeys => "strip_env_keys",
            Self::SessionIsolatedWhenNonpersistent => "session_isolated_when_nonpersistent",
            Self::DefaultCwd => "default_cwd",
            Self::GuestHome => "guest_home",
            Self::CostsToCreate => "costs_to_create",
            Self::ConfigSchema => "config_schema",
        }
    }
}

/// What came of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It did what was asked.
    Ok(Value),
    /// It did not.
    Error(Failure),
}

/// An error on its way.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    kind: u32,
    message: String,
    #[serde(default)]
    hint: Option<String>,
    /// Absent means yes: the careful assumption.
    #[serde(default = "yes")]
    may_have_started: bool,
    #[serde(default)]
    extra: Extra,
}

impl Failure {
    /// Takes out what must not be shown.
    pub(super) fn hiding(mut self, masks: &Masks) -> Self {
        self.message = masks.hide(&self.message);
        self.hint = self.hint.map(|hint| masks.hide(&hint));
        self
    }
}

fn yes() -> bool {
    true
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind().0,
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
            may_have_started: error.may_have_started(),
            extra: error.extra().clone(),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let mut error = Error::new(ErrorKind(failure.kind), failure.message);
        if let Some(hint) = failure.hint {
            error = error.with_hint(hint);
        }
        for (key, value) in failure.extra {
            error = error.with_extra(&key, value);
        }
        if failure.may_have_started { error } else { error.not_started() }
    }
}

/// A record for the log.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// From 1 (error) to 5 (trace).
    pub level: u8,
    /// The part of the plugin that speaks.
    pub target: String,
    /// What it says.
    pub message: String,
}
