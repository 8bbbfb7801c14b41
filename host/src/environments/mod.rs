//! Environments: one for each backend and task id, made when first needed.
//!
//! Making one can take seconds and cost money, so it happens once however many calls arrive together, and a slow one does
//! not hold up those for other tasks.

mod running;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use hostel_plugin_api::shell::{StripList, end_call};
use hostel_plugin_api::{CreateEnvironment, Environment, Error, ErrorKind, ExecOutcome, ExecRequest};

use running::Ran;
pub use running::SharedIo;

use crate::config::declared;
use crate::registry::{Entry, Flags};
use crate::world::World;
use crate::{home, policy};

/// How long an environment may take to let go.
const CLEANUP_LIMIT: Duration = Duration::from_secs(15);

/// After these an environment is in an unknown state, and is used no more.
const UNKNOWN: [ErrorKind; 3] = [ErrorKind::PANICKED, ErrorKind::CRASHED, ErrorKind::LOST];

type Key = (String, String);
type Slot = Arc<Mutex<Option<Arc<dyn Environment>>>>;

/// The environments that are live in this process.
#[derive(Default)]
pub struct Environments {
    live: Mutex<HashMap<Key, Slot>>,
}

impl Environments {
    /// Returns the environment of `task` on `entry`, making it if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot be used. It never falls back to another one.
    pub fn get(&self, world: &World, entry: &Entry, task: &str) -> Result<Arc<dyn Environment>, Error> {
        let key = (entry.name().to_owned(), task.to_owned());
        let slot = Arc::clone(lock(&self.live).entry(key).or_default());
        let mut slot = lock(&slot);
        if let Some(environment) = slot.as_ref() {
            return Ok(Arc::clone(environment));
        }
        let environment: Arc<dyn Environment> = Arc::from(create(world, entry, task)?);
        *slot = Some(Arc::clone(&environment));
        Ok(environment)
    }

    /// Runs one command in the environment of `task` on `entry`, making that if there is none.
    ///
    /// An environment whose provider has panicked, or has not come back, is in an unknown state and is used no more: the
    /// next command gets a new one.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot be used, or what became of the command is unknown. The message names the backend.
    pub fn execute(
        &self,
        world: &World,
        entry: &Entry,
        task: &str,
        mut request: ExecRequest,
        io: &SharedIo,
    ) -> Result<ExecOutcome, Error> {
        let environment = self.get(world, entry, task)?;
        let used = Arc::clone(&environment);
        request.call_id = call_id();
        let call_id = request.call_id.clone();
        let mut warnings = running::withhold(&mut request, &policy::secrets::strip_list(&world.registry));
        let named = |error: Error| error.with_context(format_args!("backend `{}`", entry.name()));
        let mut outcome = match running::run(environment, request, io).map_err(named)? {
            Ran::Answered(Ok(outcome)) => outcome,
            Ran::Answered(Err(error)) => {
                if error.kind() == ErrorKind::CRASHED {
                    // Before anything is cleaned up under it.
                    end_call(&call_id);
                }
                if UNKNOWN.contains(&error.kind()) {
                    self.retire(entry.name(), task, &used);
                }
                let Some(outcome) = running::ended_by_force(&error) else { return Err(named(error)) };
                warnings.push(format!(
                    "backend `{}` did not stop the command in time; its process was killed",
                    entry.name()
                ));
                outcome
            }
            Ran::Abandoned(outcome) => {
                // Its thread may hold whatever a cleanup would wait for.
                self.forget(entry.name(), task, &used);
                end_call(&call_id);
                warnings.push(format!(
                    "backend `{}` did not stop the command in time; it may still be running",
                    entry.name()
                ));
                outcome
            }
        };
        warnings.append(&mut outcome.warnings);
        outcome.warnings = warnings;
        Ok(outcome)
    }

    /// Lets all environments go, side by side, and waits 15 s at the most. Returns a line for each that could not.
    pub fn close(&self) -> Vec<String> {
        let live: Vec<(Key, Slot)> = lock(&self.live).drain().collect();
        let (sender, receiver) = mpsc::channel();
        let mut waiting = Vec::new();
        for ((backend, task), slot) in live {
            let name = format!("task `{task}` on `{backend}`");
            waiting.push(name.clone());
            let sender = sender.clone();
            // The slot is locked there and not here: somebody may be making its environment just now.
            let let_go = move || {
                let outcome = lock(&slot).take().map_or(Ok(()), |environment| cleanup(environment.as_ref()));
                // The waiter may have gone.
                let _ = sender.send((name, outcome));
            };
            // Without a thread its sender is gone, which shows below.
            let _ = thread::Builder::new().name("cleanup".into()).spawn(let_go);
        }
        drop(sender);
        let until = Instant::now() + CLEANUP_LIMIT;
        let mut lines = Vec::new();
        while !waiting.is_empty() {
            let (name, outcome) = match receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(ended) => ended,
                Err(error) => {
                    let why = match error {
                        mpsc::RecvTimeoutError::Timeout => {
                            format!("did not end within {} s", CLEANUP_LIMIT.as_secs())
                        }
                        mpsc::RecvTimeoutError::Disconnected => "could not be started or panicked".to_owned(),
                    };
                    lines.extend(waiting.drain(..).map(|name| format!("cleaning up {name} {why}")));
                    break;
                }
            };
            waiting.retain(|other| *other != name);
            lines.extend(outcome.err().map(|error| format!("cleaning up {name} failed: {error}")));
        }
        lines
    }

    /// Lets an environment go that is of no use any more, and waits for it as long as a cleanup may take. Calls for its task wait
    /// for the end of that: the provider knows the next environment by the same task id.
    fn retire(&self, backend: &str, task: &str, used: &Arc<dyn Environment>) {
        let Some(slot) = self.slot(backend, task) else { return };
        let (sender, receiver) = mpsc::channel();
        let (theirs, used_there) = (Arc::clone(&slot), Arc::clone(used));
        let let_go = move || {
            let mut slot = lock(&theirs);
            // Another call may have been quicker, and have a new one by now.
            let done = slot.take_if(|present| Arc::ptr_eq(present, &used_there));
            // The waiter may have gone.
            let _ = sender.send(done.map_or(Ok(()), |environment| cleanup(environment.as_ref())));
        };
        // Without a thread nothing is sent, and the environment is merely forgotten.
        let _ = thread::Builder::new().name("cleanup".into()).spawn(let_go);
        match receiver.recv_timeout(CLEANUP_LIMIT) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(backend, task, %error, "cleaning up after a crash failed");
            }
            // It holds the slot still: those who come next get another.
            Err(_) => self.drop_slot(backend, task, &slot),
        }
    }

    /// Forgets an environment without cleaning it up.
    fn forget(&self, backend: &str, task: &str, used: &Arc<dyn Environment>) {
        let Some(slot) = self.slot(backend, task) else { return };
        lock(&slot).take_if(|present| Arc::ptr_eq(present, used));
    }

    fn slot(&self, backend: &str, task: &str) -> Option<Slot> {
        lock(&self.live).get(&(backend.to_owned(), task.to_owned())).cloned()
    }

    fn drop_slot(&self, backend: &str, task: &str, slot: &Slot) {
        let key = (backend.to_owned(), task.to_owned());
        let mut live = lock(&self.live);
        if live.get(&key).is_some_and(|present| Arc::ptr_eq(present, slot)) {
            live.remove(&key);
        }
    }
}

/// Makes a name for a call that no other has.
fn call_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    format!("{:x}_{since:x}_{:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cleanup(environment: &dyn Environment) -> Result<(), Error> {
    environment.persist().and(environment.cleanup())
}

/// Returns the host's own directory for a provider whose commands run among the host's files. Others have no use for it, and
/// must not be led to mount it.
fn host_cwd(flags: &Flags) -> Result<Option<String>, Error> {
    if flags.is_remote || flags.is_container {
        return Ok(None);
    }
    let wrong = |reason: String| {
        let message = format!("the directory in which Hostel was started {reason}");
        Error::new(ErrorKind::BAD_CWD, message).with_hint("change to another one").not_started()
    };
    let dir = std::env::current_dir().map_err(|error| wrong(format!("cannot be used: {error}")))?;
    dir.into_os_string()
        .into_string()
        .map(Some)
        .map_err(|_| wrong("has a name that is not valid UTF-8".into()))
}

fn create(world: &World, entry: &Entry, task: &str) -> Result<Box<dyn Environment>, Error> {
    let name = entry.name();
    let provider = entry.provider()?;
    let config = &world.config;
    let invalid = |error: crate::config::ConfigError| {
        Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started()
    };
    let section = config.section(&format!("terminal.backends.{name}"));
    let named = |error: Error| error.with_context(format_args!("backend `{name}`")).not_started();
    declared::check(&provider.config_schema(), &section).map_err(|reason| {
        let message = format!("`terminal.backends.{name}`: {reason}");
        Error::new(ErrorKind::INVALID_REQUEST, message).not_started()
    })?;
    let resolved = provider.resolve_config(section).map_err(named)?;
    provider.check_requirements(&resolved).map_err(|error| {
        // The default of it names the backend itself.
        let error = error.not_started();
        if error.message().contains(name) { error } else { named(error) }
    })?;
    let flags = Flags::read(&provider);
    let state_dir = world.home.task(name, task);
    home::make_private(&state_dir).map_err(|error| {
        let message = format!("failed to make `{}`: {error}", state_dir.display());
        Error::new(ErrorKind::IO, message).with_hint("check its permissions and the free space").not_started()
    })?;
    let mut request = CreateEnvironment::default();
    task.clone_into(&mut request.task_id);
    request.cwd = policy::cwd::start(config.text("terminal.cwd").map_err(invalid)?.as_deref(), &flags);
    request.timeout = config.seconds("terminal.timeout").map_err(invalid)?;
    request.host_cwd = host_cwd(&flags)?;
    request.config = resolved;
    request.state_dir = Some(state_dir.to_string_lossy().into_owned());
    // The setting speaks of containers; a session on this machine is always taken up again.
    request.persistent =
        !flags.is_container || config.flag("terminal.container_persistent").map_err(invalid)?;
    // What the provider names now may be more than what it named when it was enabled.
    let strip = world.registry.strip_env().into_iter().chain(flags.strip_env_keys.iter().cloned());
    request.strip_env = StripList::new(strip).patterns().to_vec();
    tracing::debug!(backend = name, task, "making an environment");
    provider.create_environment(request).map_err(named)
}
