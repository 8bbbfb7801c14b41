//! The environments that are live in this process.
//!
//! Making one can take seconds and cost money, so it happens once however many calls arrive together, and a slow one does
//! not hold up those for other tasks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::end_call;
use hostel_plugin_api::{Environment, Error, ErrorKind, ExecOutcome, ExecRequest};

use super::call_id::call_id;
use super::create::create;
use super::ledger::{InUse, Known, Ledger};
use super::login::Login;
use super::reaper::Seen;
use super::running::{self, Ran, SharedIo};
use crate::guard::Guard;
use crate::policy;
use crate::policy::sudo::{Place as SudoPlace, Prepared, Sudo};
use crate::registry::{Entry, Origin};
use crate::world::World;

/// How long an environment may take to let go.
pub(super) const CLEANUP_LIMIT: Duration = Duration::from_secs(15);

/// After these an environment is in an unknown state, and is used no more.
const UNKNOWN: [ErrorKind; 3] = [ErrorKind::PANICKED, ErrorKind::CRASHED, ErrorKind::LOST];

type Key = (String, String);
type Slot = Arc<Place>;

/// Where the environment of one task is, once it is made.
struct Place {
    live: Mutex<Option<Live>>,
    /// When a call on it began or ended.
    last_used: Mutex<Instant>,
    in_flight: AtomicUsize,
    /// Whether there may be one.
    made: AtomicBool,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            live: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            in_flight: AtomicUsize::new(0),
            made: AtomicBool::new(false),
        }
    }
}

/// One call on an environment, which is in use until this is dropped.
struct Entered {
    environment: Arc<dyn Environment>,
    login: Login,
    /// The id of the environment, if the ledger has it.
    id: Option<String>,
    _in_use: Option<InUse>,
    _flight: Flight,
}

/// One call that is counted.
struct Flight(Slot);

impl Flight {
    fn begin(place: &Slot) -> Self {
        place.in_flight.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(place))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        *lock(&self.0.last_used) = Instant::now();
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One environment of this process.
struct Live {
    environment: Arc<dyn Environment>,
    login: Login,
    /// None where the ledger cannot be written to: other processes then do not know of its use.
    known: Option<Known>,
}

/// The environments that are live in this process.
#[derive(Default)]
pub struct Environments {
    live: Mutex<HashMap<Key, Slot>>,
    /// Whether the calls run in the background, and so keep nobody from cleaning up.
    background: bool,
    /// What gives `sudo` its password.
    sudo: Sudo,
}

impl Environments {
    /// Makes the environments of a background process's keeper: its call may last for days, and is ended by whoever cleans up.
    #[must_use]
    pub fn of_keeper() -> Self {
        Self { background: true, ..Self::default() }
    }

    /// Makes the environments of a face in which `sudo` gets its password from `sudo`.
    #[must_use]
    pub fn with_sudo(sudo: Sudo) -> Self {
        Self { sudo, ..Self::default() }
    }

    /// Returns the environment of `task` on `entry`, making it if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot be used. It never falls back to another one.
    pub fn get(&self, world: &World, entry: &Entry, task: &str) -> Result<Arc<dyn Environment>, Error> {
        self.enter(world, entry, task).map(|entered| Arc::clone(&entered.environment))
    }

    /// Finds or makes the environment of a call.
    fn enter(&self, world: &World, entry: &Entry, task: &str) -> Result<Entered, Error> {
        let key = (entry.name().to_owned(), task.to_owned());
        let place = Arc::clone(lock(&self.live).entry(key).or_default());
        let flight = Flight::begin(&place);
        let mut slot = lock(&place.live);
        let (live, in_use) = find(world, entry, task, &mut slot)?;
        place.made.store(true, Ordering::SeqCst);
        Ok(Entered {
            environment: Arc::clone(&live.environment),
            login: live.login.clone(),
            id: live.known.as_ref().map(|known| known.id().to_owned()),
            _in_use: in_use.filter(|_| !self.background),
            _flight: flight,
        })
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
        let entered = self.enter(world, entry, task)?;
        let environment = Arc::clone(&entered.environment);
        let used = Arc::clone(&environment);
        if request.call_id.is_empty() {
            request.call_id = call_id(entered.id.as_deref());
        }
        let call_id = request.call_id.clone();
        let _watching = Guard::shared().watch(&call_id);
        let mut warnings = running::withhold(&mut request, &policy::secrets::strip_list(&world.registry));
        let ours = *entry.origin() == Origin::Builtin;
        let run =
            |request: ExecRequest, io: &SharedIo| match running::run(Arc::clone(&used), request, io, ours) {
                Ok(Ran::Answered(Ok(outcome))) => Some(outcome.exit_code),
                _ => None,
            };
        let place = SudoPlace { home: &world.home, backend: entry.name(), task, run: &run };
        let sudo = self.sudo.prepare(&place, &mut request, io, &mut warnings)?;
        let io = sudo.as_ref().map_or_else(|| Arc::clone(io), Prepared::io);
        let named = |error: Error| error.with_context(format_args!("backend `{}`", entry.name()));
        let io = entered.login.watch(entered.id.as_deref(), &mut request, io);
        let mut outcome = match running::run(environment, request, &io, ours).map_err(named)? {
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
        if let Some(sudo) = &sudo {
            self.sudo.finish(sudo, &mut outcome);
        }
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
                let outcome =
                    lock(&slot.live).take().map_or(Ok(()), |live| cleanup(live.environment.as_ref()));
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

    /// Returns what the reaper is to know of each that is live.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let live = lock(&self.live);
        let one = |(key, place): (&Key, &Slot)| Seen {
            key: key.clone(),
            last_used: *lock(&place.last_used),
            in_flight: place.in_flight.load(Ordering::SeqCst),
        };
        live.iter().filter(|(_, place)| place.made.load(Ordering::SeqCst)).map(one).collect()
    }

    /// Closes an environment that was not used since it was seen. None where it was.
    pub(super) fn close_unused(&self, seen: &Seen) -> Option<Result<(), Error>> {
        let place = self.slot(&seen.key.0, &seen.key.1)?;
        let mut slot = lock(&place.live);
        let used = *lock(&place.last_used) != seen.last_used || place.in_flight.load(Ordering::SeqCst) > 0;
        if used {
            return None;
        }
        place.made.store(false, Ordering::SeqCst);
        // Whoever comes now waits for the end of this one, and makes a new one.
        slot.take().map(|live| cleanup(live.environment.as_ref()))
    }

    /// Lets the environment of `task` on `backend` go. None if there is none, or a call is in flight.
    pub(crate) fn close_one(&self, backend: &str, task: &str) -> Option<Result<(), Error>> {
        let seen = self.seen().into_iter().find(|seen| seen.key.0 == backend && seen.key.1 == task)?;
        self.close_unused(&seen)
    }

    /// Lets an environment go that is of no use any more, and waits for it as long as a cleanup may take. Calls for its task wait
    /// for the end of that: the provider knows the next environment by the same task id.
    fn retire(&self, backend: &str, task: &str, used: &Arc<dyn Environment>) {
        let Some(slot) = self.slot(backend, task) else { return };
        let (sender, receiver) = mpsc::channel();
        let (theirs, used_there) = (Arc::clone(&slot), Arc::clone(used));
        let let_go = move || {
            let mut slot = lock(&theirs.live);
            // Another call may have been quicker, and have a new one by now.
            let done = slot.take_if(|present| Arc::ptr_eq(&present.environment, &used_there));
            // The waiter may have gone.
            let _ = sender.send(done.map_or(Ok(()), |live| cleanup(live.environment.as_ref())));
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
        lock(&slot.live).take_if(|present| Arc::ptr_eq(&present.environment, used));
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

/// Returns the environment in `slot`, making it if there is none, and that it is in use.
fn find<'a>(
    world: &World,
    entry: &Entry,
    task: &str,
    slot: &'a mut Option<Live>,
) -> Result<(&'a Live, Option<InUse>), Error> {
    let mut in_use = None;
    if let Some(known) = slot.as_ref().and_then(|live| live.known.as_ref()) {
        in_use = begin(known)?;
        if in_use.is_none() {
            // Somebody has cleaned it up: there is nothing left to let go.
            *slot = None;
        }
    }
    if slot.is_none() {
        let (live, used) = make(world, entry, task)?;
        (*slot, in_use) = (Some(live), used);
    }
    let live = slot.as_ref().ok_or_else(|| Error::new(ErrorKind::OTHER, "the environment is gone"))?;
    Ok((live, in_use))
}

/// Makes the environment, and takes it into use.
fn make(world: &World, entry: &Entry, task: &str) -> Result<(Live, Option<InUse>), Error> {
    let ledger = Ledger::new(&world.home);
    let (known, in_use) = loop {
        match ledger.open(entry.name(), task) {
            Ok(known) => {
                if let Some(in_use) = begin(&known)? {
                    break (Some(known), Some(in_use));
                }
            }
            Err(error) => {
                tracing::warn!(backend = entry.name(), task, %error, "the environment is not in the ledger");
                break (None, None);
            }
        }
    };
    let environment: Arc<dyn Environment> =
        Arc::from(create(world, entry, task, known.as_ref().map(Known::id))?);
    Ok((Live { environment, login: Login::default(), known }, in_use))
}

/// Begins a call. None where the environment was cleaned up.
fn begin(known: &Known) -> Result<Option<InUse>, Error> {
    known.begin().map_err(|error| Error::io("failed to take the environment into use", &error).not_started())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cleanup(environment: &dyn Environment) -> Result<(), Error> {
    environment.persist().and(environment.cleanup())
}
