//! What the kit is told by whoever runs it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Extra;

/// How a provider is to be held to the rules. The defaults are those of a host.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The user's `terminal.backends.NAME`.
    pub config: Value,
    /// Where the folders stand that environments may keep things in. None: in a temporary folder. What the kit makes there it
    /// removes.
    pub state_dir: Option<PathBuf>,
    /// Directory in which sessions start. None: the provider's own choice.
    pub cwd: Option<String>,
    /// Variables that no command may see, beside those that the provider names.
    pub strip_env: Vec<String>,
    /// How long an attribute may take.
    pub probe_limit: Duration,
    /// When a command that is to be killed at its deadline is killed. A provider that is far away may need more.
    pub deadline: Duration,
    /// How long after its deadline, or after its cancellation, a call may still take.
    pub slack: Duration,
    /// How long `cleanup` may take.
    pub cleanup_limit: Duration,
    /// Only rules whose id begins with this are tried.
    pub only: Option<String>,
    /// The process that the provider runs in, whose descriptors, threads and children are counted. None: this one.
    pub process_of_provider: Option<u32>,
    /// The process that adopts what that one leaves behind, whose other children are counted as well. None: nobody knows it.
    pub adopter_of_provider: Option<u32>,
    /// Whether the provider is one of the host's own, and may so have a name that is kept for these.
    pub builtin: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Value::Object(Extra::new()),
            state_dir: None,
            cwd: None,
            strip_env: Vec::new(),
            probe_limit: Duration::from_secs(2),
            deadline: Duration::from_secs(1),
            slack: Duration::from_secs(6),
            cleanup_limit: Duration::from_secs(15),
            only: None,
            process_of_provider: None,
            adopter_of_provider: None,
            builtin: false,
        }
    }
}

impl Options {
    /// Returns whether the rule `id` is to be tried.
    pub(super) fn wants(&self, id: &str) -> bool {
        self.only.as_deref().is_none_or(|prefix| id.starts_with(prefix))
    }
}
