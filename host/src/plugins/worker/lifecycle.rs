//! One plugin's worker: started when first needed, and again when it has crashed.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ErrorKind, Stdin};
use serde::de::DeserializeOwned;

use super::super::error::{LoadError, Step};
use super::breaker::Breaker;
use super::greeting::Greeting;
use super::link::{Link, Unsent};
use super::log;
use super::masks::Masks;
use super::message::{Call, Hello, PROTOCOL, Registered, Reply, Welcome};
use super::plan::Plan;
use super::serve::lock;
use super::slot::{Death, End, Slot};
use super::start;

/// One plugin's worker.
pub struct Worker {
    plugin: String,
    version: Mutex<Arc<Version>>,
    live: Mutex<Option<Arc<Link>>>,
    breaker: Arc<Mutex<Breaker>>,
}

/// The version of the plugin that is started.
struct Version {
    plan: Plan,
    masks: Arc<Masks>,
}

impl Version {
    fn new(plan: Plan) -> Arc<Self> {
        let masks = Arc::new(Masks::of(plan.values_of_secrets()));
        Arc::new(Self { plan, masks })
    }
}

/// What a worker said of itself.
pub struct Ready {
    /// The providers.
    pub providers: Vec<Registered>,
    /// Permissions that the kernel cannot enforce.
    pub unenforced: Vec<String>,
}

impl Worker {
    /// Makes a worker that is not running yet.
    #[must_use]
    pub fn new(plan: Plan) -> Arc<Self> {
        let plugin = plan.found.manifest.name.clone();
        let version = Mutex::new(Version::new(plan));
        Arc::new(Self { plugin, version, live: Mutex::default(), breaker: Arc::default() })
    }

    /// The plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Returns its process id, if it is running.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        lock(&self.live).as_ref().filter(|link| !link.is_dead())?.process_id()
    }

    /// Returns the process id of its keeper, which adopts what it leaves behind, if it is running.
    #[must_use]
    pub fn keeper_id(&self) -> Option<u32> {
        let live = lock(&self.live);
        live.as_ref().filter(|link| !link.is_dead()).map(|link| link.keeper_id())
    }

    /// Ends it and all that it has started, at once, if it is running; `why` says what it did.
    pub fn kill(&self, why: &str) {
        if let Some(link) = lock(&self.live).as_ref() {
            link.kill(why);
        }
    }

    /// Tells it that nothing more will come, if it is running, and does not wait for its end.
    pub fn part(&self) {
        if let Some(link) = lock(&self.live).take().filter(|link| !link.is_dead()) {
            link.part();
        }
    }

    /// Returns how often it has crashed.
    #[must_use]
    pub fn crashes(&self) -> u64 {
        lock(&self.breaker).total()
    }

    /// Starts it, and returns what it registered.
    ///
    /// # Errors
    ///
    /// Fails if the plugin cannot be loaded, with the step at which it failed.
    pub fn start(&self) -> Result<Ready, LoadError> {
        let mut live = lock(&self.live);
        let (link, ready) = self.spawn()?;
        *live = Some(link);
        Ok(ready)
    }

    /// Returns the worker that is running, starting one if there is none.
    pub(super) fn live(&self) -> Result<Arc<Link>, Error> {
        let mut live = lock(&self.live);
        if let Some(link) = live.as_ref().filter(|link| !link.is_dead()) {
            return Ok(Arc::clone(link));
        }
        let (link, _) = self.spawn()?;
        Ok(Arc::clone(live.insert(link)))
    }

    fn version(&self) -> Arc<Version> {
        Arc::clone(&lock(&self.version))
    }

    /// Returns the version that was enabled last.
    fn newest(&self) -> Result<Arc<Version>, LoadError> {
        let version = self.version();
        let Some(plan) = version.plan.renewed()? else { return Ok(version) };
        let (old, new) = (&version.plan.found.manifest.version, &plan.found.manifest.version);
        tracing::warn!(
            plugin = self.plugin(),
            old,
            new,
            "updated while this host runs: its worker is now the new one"
        );
        let version = Version::new(plan);
        *lock(&self.version) = Arc::clone(&version);
        Ok(version)
    }

    fn spawn(&self) -> Result<(Arc<Link>, Ready), LoadError> {
        let plugin = self.plugin();
        let failed = |reason: String, hint: &str| LoadError::new(plugin, Step::Open, reason, hint).passing();
        if let Some(left) = lock(&self.breaker).pause(Instant::now()) {
            let hint = "wait; the error of each crash says how it ended: report that to its author";
            return Err(failed(Breaker::reason(left), hint));
        }
        let version = self.newest()?;
        version.plan.admit()?;
        let Plan { found, pin, home, settings, secrets, limits, trap_network, watched, .. } = &version.plan;
        let hello = Hello {
            protocol: PROTOCOL,
            host_version: env!("CARGO_PKG_VERSION").into(),
            folder: found.folder.clone(),
            manifest: found.manifest.clone(),
            data_dir: home.plugin_data(plugin),
            state_dirs: found.manifest.provides.iter().map(|backend| home.tasks_of(backend)).collect(),
            settings: settings.clone(),
            log_level: log::level(),
            limits: *limits,
            trap_network: *trap_network,
            watched: *watched,
        };
        let breaker = Arc::clone(&self.breaker);
        let on_death = move |_: &Death| lock(&breaker).crashed(Instant::now());
        let died = |death: Arc<Death>| {
            let hint = if death.from_outside {
                "somebody killed its process; try again"
            } else {
                "this is a bug in the plugin; report it to its author"
            };
            failed(format!("its worker {}", said(&death)), hint)
        };
        let not_started = |error: io::Error| {
            let hint = "check the limits of this user, and `PATH`";
            failed(format!("its worker could not be started: {error}"), hint)
        };
        // The library is looked at while the two processes come up.
        let (link, welcome) = thread::scope(|scope| {
            let verify = || {
                let verified = found.verify(pin.as_ref())?;
                let pin = verified.pin().clone();
                Ok((verified.into_sealed(), pin))
            };
            let verifying = thread::Builder::new().name("verify".into()).spawn_scoped(scope, verify);
            let verifying = verifying.map_err(not_started)?;
            let started = start::start(plugin, &start::environment(found, secrets)).map_err(not_started)?;
            let masks = Arc::clone(&version.masks);
            let greeting = Greeting::hello(plugin, started, &hello, masks, on_death).map_err(died)?;
            let verified = verifying.join().unwrap_or_else(|panic| resume_unwind(panic));
            match verified {
                Ok((library, pin)) => greeting.library(library, pin).map_err(died),
                Err(error) => {
                    greeting.abandon();
                    Err(error)
                }
            }
        })?;
        match welcome {
            Welcome::Ready { protocol, providers, unenforced } if protocol == PROTOCOL => {
                // The worker has checked it, but foreign code may speak in its place.
                let mut names: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
                let mut wanted: Vec<&str> = found.manifest.provides.iter().map(String::as_str).collect();
                names.sort_unstable();
                wanted.sort_unstable();
                if names != wanted {
                    link.kill("registered something else than its manifest provides");
                    let reason = "it registered something else than its manifest provides".to_owned();
                    return Err(LoadError::new(
                        plugin,
                        Step::Register,
                        reason,
                        "this is a bug in the plugin; report it to its author",
                    ));
                }
                for line in &unenforced {
                    tracing::warn!(plugin, "{line}");
                }
                tracing::debug!(plugin, providers = providers.len(), "the plugin's worker is ready");
                Ok((link, Ready { providers, unenforced }))
            }
            Welcome::Ready { protocol, .. } => {
                link.part();
                let reason = format!(
                    "it speaks version {protocol} of the worker's protocol, and this Hostel version {PROTOCOL}"
                );
                Err(failed(reason, "update the older one of the two"))
            }
            Welcome::Failed { step, reason, hint } => {
                link.part();
                let (reason, hint) = (version.masks.hide(&reason), version.masks.hide(&hint));
                Err(LoadError::new(plugin, step, reason, hint))
            }
        }
    }

    /// Makes a call that only waits for its answer, starting a worker if there is none.
    pub(super) fn ask<T: DeserializeOwned>(&self, call: &Call, limit: Duration) -> Result<T, Error> {
        let link = self.live()?;
        self.ask_with(&link, call, &Stdin::Empty, 0, limit).map(|(answer, _)| answer)
    }

    /// Makes a call on a worker that is running, and returns its answer and its data, of which there are `most` bytes at the most.
    pub(super) fn ask_with<T: DeserializeOwned>(
        &self,
        link: &Link,
        call: &Call,
        input: &Stdin,
        most: usize,
        limit: Duration,
    ) -> Result<(T, Vec<u8>), Error> {
        let until = Instant::now() + limit;
        let sent = link.send(call, input, Slot::quiet(most)).map_err(|unsent| self.unsent(unsent, call))?;
        let mut collected = Vec::new();
        loop {
            let Some((data, end)) = link.wait(&sent, until) else {
                link.kill(&format!("did not answer `{}` within {} s", call.name(), limit.as_secs_f64()));
                link.forget(sent.id);
                let message = format!("it did not answer within {} s", limit.as_secs_f64());
                return Err(Error::new(ErrorKind::TIMEOUT, message));
            };
            let bytes: usize = data.iter().map(Vec::len).sum();
            for piece in data {
                collected.extend(piece);
            }
            match end {
                Some(End::Reply(text)) => return self.answer(&text).map(|answer| (answer, collected)),
                Some(End::Died(death)) => return Err(self.crashed(&death, call)),
                None => grant(link, sent.id, bytes),
            }
        }
    }

    /// Reads an answer.
    pub(super) fn answer<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, Error> {
        let nonsense = |error: serde_json::Error| {
            let message = format!("plugin `{}` gave an answer that cannot be read: {error}", self.plugin());
            Error::new(ErrorKind::OTHER, message)
        };
        match serde_json::from_slice(text).map_err(nonsense)? {
            Reply::Ok(value) => serde_json::from_value(value).map_err(nonsense),
            Reply::Error(failure) => Err(self.explained(failure.hiding(&self.version().masks).into())),
        }
    }

    /// Says why the system may have said no to a confined plugin.
    fn explained(&self, error: Error) -> Error {
        let denied = ["os error 1)", "os error 13)"].iter().any(|code| error.message().contains(code));
        if !denied || error.hint().is_some() || self.version().plan.found.manifest.permissions.is_everything()
        {
            return error;
        }
        let plugin = self.plugin();
        error.with_hint(format!(
            "its manifest may not ask for this: `hostel plugins show {plugin}` lists what it may do"
        ))
    }

    /// The error of a call that was not sent.
    pub(super) fn unsent(&self, unsent: Unsent, call: &Call) -> Error {
        match unsent {
            Unsent::Died(death) => self.crashed(&death, call).not_started(),
            Unsent::Refused(error) => error,
        }
    }

    /// The error of a call whose worker has died.
    pub(super) fn crashed(&self, death: &Death, call: &Call) -> Error {
        let message = format!("plugin `{}` {} during `{}`", self.plugin(), death.how, call.name());
        let message = match &death.last_words {
            Some(words) => format!("{message}; its last words: {words}"),
            None => message,
        };
        let hint = if death.from_outside {
            "somebody killed its process; the next command starts it again"
        } else {
            "the next command starts it again; this is a bug in the plugin: report it to its author"
        };
        Error::new(ErrorKind::CRASHED, message).with_hint(hint)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.part();
    }
}

fn said(death: &Death) -> String {
    match &death.last_words {
        Some(words) => format!("{}; its last words: {words}", death.how),
        None => death.how.clone(),
    }
}

/// Lets the worker send so much more.
pub(super) fn grant(link: &Link, call: u32, bytes: usize) {
    if let Ok(bytes @ 1..) = u32::try_from(bytes) {
        link.say(super::frame::Kind::CREDIT, call, &bytes.to_le_bytes());
    }
}
