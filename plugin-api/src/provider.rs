//! The object behind a backend name.

use std::time::Duration;

use serde_json::Value;

use crate::shell::StripList;
use crate::{Environment, Error, ErrorKind, Extra};

/// Whether a provider can be used now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The verdict.
    pub status: ProbeStatus,
    /// One line for a person: what is missing, or what was found. May be empty.
    pub detail: String,
}

impl Probe {
    /// Makes the verdict "ready".
    #[must_use]
    pub fn ready(detail: impl Into<String>) -> Self {
        Self { status: ProbeStatus::READY, detail: detail.into() }
    }

    /// Makes the verdict that something is missing which the user can supply.
    #[must_use]
    pub fn needs_setup(detail: impl Into<String>) -> Self {
        Self { status: ProbeStatus::NEEDS_SETUP, detail: detail.into() }
    }

    /// Makes the verdict that it cannot be used here or now.
    #[must_use]
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self { status: ProbeStatus::UNAVAILABLE, detail: detail.into() }
    }
}

/// The verdict of a [`Probe`]. An unknown value reads as [`ProbeStatus::UNAVAILABLE`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProbeStatus(pub u32);

impl ProbeStatus {
    /// Commands can be served.
    pub const READY: Self = Self(0);
    /// Something is missing that the user can supply.
    pub const NEEDS_SETUP: Self = Self(1);
    /// It cannot be used here or now.
    pub const UNAVAILABLE: Self = Self(2);

    /// Returns the name that machine-readable output uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::READY => "ready",
            Self::NEEDS_SETUP => "needs_setup",
            _ => "unavailable",
        }
    }
}

/// One row of `hostel doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoctorCheck {
    /// Whether all is well.
    pub ok: bool,
    /// What was looked at.
    pub label: String,
    /// What was found, or what to do.
    pub detail: String,
}

impl DoctorCheck {
    /// Makes a row that says that all is well.
    #[must_use]
    pub fn ok(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { ok: true, label: label.into(), detail: detail.into() }
    }

    /// Makes a row that says what is wrong and what to do.
    #[must_use]
    pub fn fail(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { ok: false, ..Self::ok(label, detail) }
    }
}

/// All that the host tells a provider when it asks for an environment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CreateEnvironment {
    /// The key under which the environment is kept and reused. Any text: encode it before it becomes a name.
    pub task_id: String,
    /// Directory in which the first command runs. None: the provider's own choice.
    pub cwd: Option<String>,
    /// How long a command may run when its caller names no limit.
    pub timeout: Duration,
    /// Image to start from, where the provider has images.
    pub image: Option<String>,
    /// The host's own working directory. A place that has files of its own does not take it over unless its user says so.
    pub host_cwd: Option<String>,
    /// What [`resolve_config`](TerminalEnvironmentProvider::resolve_config) made of `terminal.backends.NAME`.
    pub config: Value,
    /// A directory on the host, of mode 0700 and kept per task, for what the provider wants to remember.
    /// None: nothing may be kept.
    pub state_dir: Option<String>,
    /// Whether the environment outlives this object: [`cleanup`](Environment::cleanup) then detaches instead of
    /// destroying. To destroy what an earlier process left, the host creates it once more with `false` and cleans it up.
    pub persistent: bool,
    /// Names of variables, with `*` at the end for a prefix, that no process which the environment starts on this
    /// machine may see.
    pub strip_env: Vec<String>,
    /// Later fields. `calls` is how the ids of all calls on this environment begin. `purpose` is `"cleanup"` where the environment is made only to be cleaned up, because the process that had
    /// it has crashed: attach to what there is under the task id, and make nothing new.
    pub extra: Extra,
}

impl CreateEnvironment {
    /// Returns [`strip_env`](Self::strip_env) in a form that can be asked.
    #[must_use]
    pub fn strip_list(&self) -> StripList {
        StripList::new(self.strip_env.iter().cloned())
    }
}

impl Default for CreateEnvironment {
    fn default() -> Self {
        Self {
            task_id: "default".into(),
            cwd: None,
            timeout: Duration::from_secs(180),
            image: None,
            host_cwd: None,
            config: Value::Object(Extra::new()),
            state_dir: None,
            persistent: false,
            strip_env: Vec::new(),
            extra: Extra::new(),
        }
    }
}

/// The object behind a backend name: says what the backend is, and makes environments.
///
/// Implement [`name`](Self::name), [`is_available`](Self::is_available) and
/// [`create_environment`](Self::create_environment). An attribute that panics counts as its default, except that a
/// failing [`skip_container_guards`](Self::skip_container_guards) counts as false, and a failing
/// [`strip_env_keys`](Self::strip_env_keys) closes the provider: the host will not run commands that could see a secret.
///
/// The attributes are cheap: no network, and back within 2 s. They may be read at any time, from any thread.
pub trait TerminalEnvironmentProvider: Send + Sync + 'static {
    /// Returns the backend name, of the form `^[a-z][a-z0-9_-]{0,63}$`.
    fn name(&self) -> &str;

    /// Returns whether commands can be served now.
    fn is_available(&self) -> bool;

    /// Makes an environment, or attaches to the one that an earlier process left for this task id.
    ///
    /// # Errors
    ///
    /// Fails if there is no environment to run commands in. Whatever was half made has been taken down.
    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error>;

    /// Returns the name for people. Default: [`name`](Self::name).
    fn display_name(&self) -> String {
        self.name().to_owned()
    }

    /// Returns one line for pickers and lists.
    ///
    /// Default: "Run commands in a NAME environment".
    fn description(&self) -> String {
        format!("Run commands in a {} environment", self.display_name())
    }

    /// Says whether the provider can be used, and if not, what is missing.
    ///
    /// Default: ready if [`is_available`](Self::is_available), else that setup is needed.
    fn probe(&self) -> Probe {
        if self.is_available() {
            Probe::ready("")
        } else {
            Probe::needs_setup(format!("{} is not configured", self.display_name()))
        }
    }

    /// Returns what a new user has to do, a line each.
    ///
    /// Default: none.
    fn setup_instructions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs once after the user has chosen this backend in an interactive setup, which this version of Hostel does not have yet.
    /// May ask questions on the terminal. Default: nothing.
    ///
    /// # Errors
    ///
    /// Fails with a warning for the user; the choice is kept.
    fn post_setup(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the provider's rows for `hostel doctor`.
    ///
    /// Default: one row made of [`probe`](Self::probe).
    fn doctor_checks(&self) -> Vec<DoctorCheck> {
        let probe = self.probe();
        let ok = probe.status == ProbeStatus::READY;
        let detail = match (ok, probe.detail.as_str()) {
            (true, "") => "configured".to_owned(),
            (false, "") => "not configured".to_owned(),
            (_, detail) => detail.to_owned(),
        };
        vec![DoctorCheck { ok, label: format!("{} backend", self.display_name()), detail }]
    }

    /// Returns whether commands run somewhere else than on this machine.
    ///
    /// Default: true.
    fn is_remote(&self) -> bool {
        true
    }

    /// Returns what the system prompt calls the place when it cannot be probed.
    ///
    /// Default: "a NAME environment (likely Linux)".
    fn env_description(&self) -> String {
        format!("a {} environment (likely Linux)", self.display_name())
    }

    /// Returns whether paths and directories mean those of a container and not the host's.
    ///
    /// Default: true.
    fn is_container(&self) -> bool {
        true
    }

    /// Returns whether dangerous commands run without approval, because they can harm nothing but the sandbox.
    ///
    /// Default: what [`is_container`](Self::is_container) returns. A provider whose commands can reach anything of the user's returns false.
    fn skip_container_guards(&self) -> bool {
        self.is_container()
    }

    /// Returns where cached files of the host appear inside, if not under their own paths.
    ///
    /// Default: none.
    fn cache_path_base(&self) -> Option<String> {
        None
    }

    /// Returns the variables that no command may see, chosen backend or not: the vendor's own tokens.
    ///
    /// Default: none.
    fn strip_env_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether two sessions must not share a sandbox when nothing is persistent, because the vendor resumes
    /// sandboxes by name.
    ///
    /// Default: false.
    fn session_isolated_when_nonpersistent(&self) -> bool {
        false
    }

    /// Returns the directory in which sessions start when none is configured.
    ///
    /// Default: none.
    fn default_cwd(&self) -> Option<String> {
        None
    }

    /// Returns the home directory inside, so that it is not mistaken for a path of the host's.
    ///
    /// Default: none.
    fn guest_home(&self) -> Option<String> {
        None
    }

    /// Returns whether making an environment costs money, so that the host does not make one merely to look around.
    ///
    /// Default: false.
    fn costs_to_create(&self) -> bool {
        false
    }

    /// Describes the keys below `terminal.backends.NAME`: a JSON object that maps a dotted key to
    /// `{"type": "string|text|boolean|number|list|select|secret", "description": …, "default": …, "options": […]}`.
    ///
    /// Default: no keys.
    fn config_schema(&self) -> Value {
        Value::Object(Extra::new())
    }

    /// Turns the user's `terminal.backends.NAME` into what `create_environment` gets, with the provider's own defaults.
    ///
    /// Default: the value as it is.
    ///
    /// # Errors
    ///
    /// Fails if a value cannot be used.
    fn resolve_config(&self, config: Value) -> Result<Value, Error> {
        Ok(config)
    }

    /// Checks everything that must hold before an environment is made. May be slower than `is_available`.
    ///
    /// Default: fails unless [`is_available`](Self::is_available). Who overrides it decides alone.
    ///
    /// # Errors
    ///
    /// Fails with what is missing and how to supply it.
    fn check_requirements(&self, _config: &Value) -> Result<(), Error> {
        if self.is_available() {
            return Ok(());
        }
        let detail = self.probe().detail;
        let detail = if detail.is_empty() { "its requirements are not met".to_owned() } else { detail };
        let error = Error::new(
            ErrorKind::NOT_CONFIGURED,
            format!("backend `{}` is not ready: {detail}", self.name()),
        );
        let lines = self.setup_instructions();
        Err(if lines.is_empty() {
            error.not_started()
        } else {
            error.with_hint(lines.join("; ")).not_started()
        })
    }
}
