//! Asks a provider for what must be cheap, and does not wait for ever.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hostel_plugin_api::{Error, ErrorKind, TerminalEnvironmentProvider};
use serde::Serialize;

use super::{Entry, Provider};

/// How long a cheap question may take. After that the asker goes on without an answer. A worker is then killed; code that runs in
/// our own process cannot be stopped, and its thread is left to itself.
pub const CHEAP: Duration = Duration::from_secs(2);

/// What is added so that a worker's own limit, and what it has to say of it, comes first.
const MARGIN: Duration = Duration::from_millis(200);

/// Asks `question` of a provider, and returns `fallback` if no answer comes in time.
pub fn ask<T: Send + 'static>(
    provider: &Provider,
    what: &str,
    fallback: T,
    question: impl FnOnce(&dyn TerminalEnvironmentProvider) -> T + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    let asked = Provider::clone(provider);
    // The receiver may have given up, which is no concern of the thread's.
    let spawned =
        thread::Builder::new().name("ask".into()).spawn(move || drop(sender.send(question(asked.as_ref()))));
    if let Some(answer) = spawned.ok().and_then(|_| receiver.recv_timeout(CHEAP + MARGIN).ok()) {
        answer
    } else {
        tracing::warn!(backend = provider.name(), what, "no answer within {} s", CHEAP.as_secs());
        fallback
    }
}

/// How long a library may take to be opened for a list. Its `register` may do some work once.
const OPENING: Duration = Duration::from_secs(10);

/// Opens an entry's provider for a list or a diagnosis, and does not wait for ever.
///
/// # Errors
///
/// As [`Entry::provider`], and if the plugin's own start does not end in time.
pub fn open_in_time(entry: &Arc<Entry>) -> Result<Provider, Error> {
    let (sender, receiver) = mpsc::channel();
    let theirs = Arc::clone(entry);
    let open = move || {
        // The receiver may have given up.
        let _ = sender.send(theirs.provider());
    };
    let spawned = thread::Builder::new().name("open".into()).spawn(open);
    spawned.ok().and_then(|_| receiver.recv_timeout(OPENING).ok()).unwrap_or_else(|| {
        let message = format!("backend `{}` was not ready within {} s", entry.name(), OPENING.as_secs());
        Err(Error::new(ErrorKind::UNAVAILABLE, message).not_started())
    })
}

/// What a provider declares about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "one for each flag of the contract")]
pub struct Flags {
    /// Whether commands run somewhere else.
    pub is_remote: bool,
    /// Whether paths are a container's.
    pub is_container: bool,
    /// Whether dangerous commands run without asking.
    pub skip_container_guards: bool,
    /// Where cached files appear inside.
    pub cache_path_base: Option<String>,
    /// Variables that no command may see.
    pub strip_env_keys: Vec<String>,
    /// Whether sessions must not share a sandbox.
    pub session_isolated_when_nonpersistent: bool,
    /// Where sessions start.
    pub default_cwd: Option<String>,
    /// The home inside.
    pub guest_home: Option<String>,
    /// Whether making an environment costs money.
    pub costs_to_create: bool,
    /// What the prompt calls the place.
    pub env_description: String,
}

impl Flags {
    /// Reads a provider's flags. Where it does not answer, the guard stays on and nothing is assumed to be local.
    #[must_use]
    pub fn read(provider: &Provider) -> Self {
        let silent = Self {
            is_remote: true,
            is_container: true,
            skip_container_guards: false,
            cache_path_base: None,
            strip_env_keys: Vec::new(),
            session_isolated_when_nonpersistent: false,
            default_cwd: None,
            guest_home: None,
            costs_to_create: true,
            env_description: format!("a {} environment (likely Linux)", provider.name()),
        };
        ask(provider, "flags", silent, |provider| {
            let is_container = provider.is_container();
            Self {
                is_remote: provider.is_remote(),
                is_container,
                // A provider that is no container has no wall that could stand in for the guard.
                skip_container_guards: is_container && provider.skip_container_guards(),
                cache_path_base: provider.cache_path_base(),
                strip_env_keys: provider.strip_env_keys(),
                session_isolated_when_nonpersistent: provider.session_isolated_when_nonpersistent(),
                default_cwd: provider.default_cwd(),
                guest_home: provider.guest_home(),
                costs_to_create: provider.costs_to_create(),
                env_description: provider.env_description(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hostel_plugin_api::{CreateEnvironment, Environment};

    use super::*;

    struct Slow;
    impl TerminalEnvironmentProvider for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn is_available(&self) -> bool {
            thread::sleep(Duration::from_secs(30));
            true
        }
        fn create_environment(&self, _request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
            Err(Error::new(ErrorKind::UNSUPPORTED, "not here"))
        }
        fn skip_container_guards(&self) -> bool {
            true
        }
        fn is_container(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_provider_that_hangs_is_not_waited_for() {
        let start = Instant::now();
        assert!(!ask(
            &(Arc::new(Slow) as Provider),
            "is_available",
            false,
            hostel_plugin_api::TerminalEnvironmentProvider::is_available
        ));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_guard_goes_only_where_there_is_a_wall() {
        let flags = Flags::read(&(Arc::new(Slow) as Provider));
        assert!(!flags.skip_container_guards && flags.is_remote);
    }
}
