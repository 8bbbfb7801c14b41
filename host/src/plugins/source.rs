//! Fills the registry from the catalog.

use std::sync::{Arc, Mutex, PoisonError};

use hostel_plugin_api::{Error, ErrorKind};

use super::catalog::{Candidate, Catalog, Choice};
use super::error::{LoadError, Step};
use super::load::{Discovered, Registered};
use super::manifest::Kind;
use super::record::Record;
use super::secrets;
use super::signature::Signing;
use super::worker::{Limits, Plan, RemoteProvider, Worker, message};
use crate::config::{Config, ConfigError};
use crate::home::Home;
use crate::registry::{Entry, Origin, Provider, Registry};

/// On which terms plugins run.
#[derive(Debug, Clone)]
pub struct Terms {
    /// What each may use up.
    pub limits: Limits,
    /// Whose signatures count.
    pub signing: Signing,
}

impl Terms {
    /// Reads them from the configuration.
    ///
    /// # Errors
    ///
    /// Fails if a value is of another type.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self { limits: Limits::read(config)?, signing: Signing::read(config)? })
    }
}

/// Takes every backend that a plugin provides into the registry, usable or not. Returns a line for each that was refused,
/// and for each whose secrets are not known.
pub fn fill(
    registry: &mut Registry,
    catalog: &Catalog,
    home: &Home,
    config: &Config,
    terms: &Terms,
) -> Vec<String> {
    let mut refused = Vec::new();
    // Whatever has become of its folder: what an enabled plugin has named as its secret stays one.
    for name in &catalog.enabled {
        let mut candidates = catalog.candidates.iter().filter(|candidate| candidate.name == *name);
        let read = candidates.find_map(|candidate| candidate.record.clone());
        let Some(record) = read.or_else(|| Record::load(home, name)) else {
            let what = "its library was never pinned, so its secrets may not all be known";
            refused
                .push(format!("plugin `{name}` is enabled, but {what}: run `hostel plugins enable {name}`"));
            continue;
        };
        let providers = record.providers.into_iter().flat_map(|provider| provider.strip_env_keys);
        registry.strip_always(record.secrets.into_iter().chain(providers));
    }
    let forbidden = |candidate: &&Candidate| candidate.choice == Choice::Disabled;
    // What is forbidden comes last, and has only the names that nobody else wants.
    let allowed = catalog.candidates.iter().filter(|candidate| !forbidden(candidate));
    for candidate in allowed.chain(catalog.candidates.iter().filter(forbidden)) {
        if candidate.problem.is_some() {
            continue;
        }
        let Some(found) = &candidate.found else { continue };
        if !found.manifest.kinds.contains(&Kind::Backend) {
            continue;
        }
        let library = Arc::new(library(candidate, found, home, config, terms));
        for name in &found.manifest.provides {
            if forbidden(&candidate) && registry.get(name).is_ok() {
                continue;
            }
            refused.extend(
                registry.add(entry(name, candidate, found, &library)).err().map(|error| error.to_string()),
            );
        }
    }
    refused
}

fn library(
    candidate: &Candidate,
    found: &Discovered,
    home: &Home,
    config: &Config,
    terms: &Terms,
) -> Library {
    let record = candidate.record.as_ref();
    let plan = Plan {
        found: found.clone(),
        pin: record.map(|record| record.pin.clone()),
        record: record.cloned(),
        signing: terms.signing.clone(),
        home: home.clone(),
        settings: config.section(&format!("plugins.settings.{}", candidate.name)),
        secrets: secrets::named(candidate.record.as_ref(), &found.manifest),
        limits: terms.limits,
        trap_network: false,
        watched: false,
    };
    let isolation = Isolation::of(config, &candidate.name);
    Library { plan, isolation, loaded: Mutex::new(None) }
}

fn entry(name: &str, candidate: &Candidate, found: &Discovered, library: &Arc<Library>) -> Entry {
    let plugin = &candidate.name;
    let origin = Origin::Plugin(plugin.clone());
    let closed = |message: String, hint: String| {
        let error = Error::new(ErrorKind::NOT_CONFIGURED, message).with_hint(hint).not_started();
        Entry::closed(name, origin.clone(), error)
    };
    let described =
        candidate.record.as_ref().and_then(|record| record.providers.iter().find(|known| known.name == name));
    let description = described.map_or(&found.manifest.description, |known| &known.description);
    let entry = match candidate.choice {
        Choice::Disabled => closed(
            format!("backend `{name}` comes from plugin `{plugin}`, which `plugins.disabled` forbids"),
            format!("run `hostel plugins enable {plugin}` to allow it"),
        ),
        Choice::NotEnabled => closed(
            format!("backend `{name}` comes from plugin `{plugin}`, which is not enabled"),
            format!("run `hostel plugins enable {plugin}`"),
        ),
        Choice::Enabled => {
            let (library, name) = (Arc::clone(library), name.to_owned());
            Entry::new(&name.clone(), origin, move || library.provider(&name))
                .stripping(secrets::named(candidate.record.as_ref(), &found.manifest))
        }
    };
    entry.described(description)
}

/// Where a plugin's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of its own.
    Process,
    /// In ours.
    InProcess,
}

impl Isolation {
    /// Returns what is set for `plugin`: its own setting, or the one for all.
    #[must_use]
    pub fn of(config: &Config, plugin: &str) -> Self {
        let own = config.section(&format!("plugins.settings.{plugin}"));
        let own = own.get("isolation").and_then(|word| word.as_str()).map(str::to_owned);
        // A word that is none of the two is refused before anything runs; see `Config::sound`.
        match own.or_else(|| config.text("plugins.isolation").ok().flatten()).as_deref() {
            Some("in_process") => Self::InProcess,
            _ => Self::Process,
        }
    }
}

/// One plugin's library, loaded when the first of its backends is used.
struct Library {
    plan: Plan,
    isolation: Isolation,
    loaded: Mutex<Option<Result<Vec<Loaded>, LoadError>>>,
}

struct Loaded {
    name: String,
    provider: Provider,
    /// Why commands must not run through it, if they must not.
    closed: Option<String>,
}

impl Library {
    fn provider(&self, name: &str) -> Result<Provider, Error> {
        let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        // A worker that did not start may do so the next time; code in our own process must not be tried twice.
        if self.isolation == Isolation::Process {
            kept.take_if(|loaded| loaded.is_err());
        }
        let loaded = kept.get_or_insert_with(|| self.load());
        let loaded = loaded.as_ref().map_err(|error| Error::from(error.clone()))?;
        let plugin = &self.plan.found.manifest.name;
        let Some(found) = loaded.iter().find(|loaded| loaded.name == name) else {
            let reason = format!("its manifest provides `{name}`, but it did not register it");
            let hint = "this is a bug in the plugin; report it to its author";
            return Err(LoadError::new(plugin, Step::Register, reason, hint).into());
        };
        match &found.closed {
            None => Ok(Provider::clone(&found.provider)),
            Some(reason) => {
                let message = format!("backend `{name}` cannot say which of its secrets to hide ({reason})");
                let hint = "commands that could see a secret are not run; this is a bug in the plugin; report it to its author";
                // It will not be able to the next time either.
                Err(Error::new(ErrorKind::OTHER, message).with_hint(hint).not_started())
            }
        }
    }

    fn load(&self) -> Result<Vec<Loaded>, LoadError> {
        let renewed = self.plan.renewed()?;
        let plan = renewed.as_ref().unwrap_or(&self.plan);
        let Plan { found, pin, home, settings, .. } = plan;
        let plugin = &found.manifest.name;
        let Some(pin) = pin else { return Err(LoadError::never_pinned(plugin)) };
        let loaded: Vec<Loaded> = match self.isolation {
            Isolation::InProcess => {
                plan.admit()?;
                let registered = found.verify(Some(pin))?.open()?;
                let registered = registered.register(found.surroundings(home, settings.clone()))?;
                registered.into_iter().map(Loaded::from).collect()
            }
            Isolation::Process => {
                let worker = Worker::new(plan.clone());
                let ready = worker.start()?;
                let remote = |registered: message::Registered| Loaded {
                    closed: registered.strip_env_error,
                    provider: Arc::new(RemoteProvider::new(registered.name.clone(), Arc::clone(&worker))),
                    name: registered.name,
                };
                ready.providers.into_iter().map(remote).collect()
            }
        };
        tracing::debug!(plugin, providers = loaded.len(), "plugin loaded");
        Ok(loaded)
    }
}

impl From<Registered> for Loaded {
    fn from(registered: Registered) -> Self {
        let provider: Provider = Arc::new(registered.provider);
        Self { name: provider.name().to_owned(), provider, closed: registered.strip_env.err() }
    }
}
