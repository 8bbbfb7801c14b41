//! Fills the registry from the catalog.

use std::sync::{Arc, Mutex, PoisonError};

use hostel_plugin_api::shell::StripList;
use hostel_plugin_api::{Error, ErrorKind};

use super::catalog::{Candidate, Catalog, Choice};
use super::error::{LoadError, Step};
use super::load::{Discovered, Pin, Registered};
use super::manifest::Kind;
use super::record::Record;
use crate::config::Config;
use crate::home::Home;
use crate::registry::{Entry, Origin, Provider, Registry};

/// Takes every backend that a plugin provides into the registry, usable or not. Returns a line for each that was refused,
/// and for each whose secrets are not known.
pub fn fill(registry: &mut Registry, catalog: &Catalog, home: &Home, config: &Config) -> Vec<String> {
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
        let settings = config.section(&format!("plugins.settings.{}", candidate.name));
        let library = Arc::new(Library::of(candidate, found, home, settings));
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
                .stripping(strip_env(candidate, found))
        }
    };
    entry.described(description)
}

/// What no command may see because a plugin is enabled: what its providers said when they were asked, and what its manifest
/// calls a secret.
fn strip_env(candidate: &Candidate, found: &Discovered) -> Vec<String> {
    let recorded = candidate.record.iter().flat_map(|record| &record.providers);
    let recorded = recorded.flat_map(|provider| provider.strip_env_keys.iter().cloned());
    recorded.chain(found.manifest.secrets()).filter(|pattern| StripList::is_valid(pattern)).collect()
}

/// One plugin's library, loaded when the first of its backends is used.
struct Library {
    found: Discovered,
    pin: Option<Pin>,
    home: Home,
    settings: serde_json::Value,
    loaded: Mutex<Option<Result<Vec<Loaded>, LoadError>>>,
}

struct Loaded {
    name: String,
    provider: Provider,
    /// Why commands must not run through it, if they must not.
    closed: Option<String>,
}

impl Library {
    fn of(candidate: &Candidate, found: &Discovered, home: &Home, settings: serde_json::Value) -> Self {
        let pin = candidate.record.as_ref().map(|record| record.pin.clone());
        Self { found: found.clone(), pin, home: home.clone(), settings, loaded: Mutex::new(None) }
    }

    fn provider(&self, name: &str) -> Result<Provider, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded =
            loaded.get_or_insert_with(|| self.load()).as_ref().map_err(|error| Error::from(error.clone()))?;
        let plugin = &self.found.manifest.name;
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
                Err(Error::new(ErrorKind::UNAVAILABLE, message).with_hint(hint).not_started())
            }
        }
    }

    fn load(&self) -> Result<Vec<Loaded>, LoadError> {
        let plugin = &self.found.manifest.name;
        let pin = self.pin.as_ref().ok_or_else(|| LoadError::never_pinned(plugin))?;
        let registered = self.found.verify(Some(pin))?.open()?;
        let registered = registered.register(self.found.surroundings(&self.home, self.settings.clone()))?;
        tracing::debug!(plugin, providers = registered.len(), "plugin loaded");
        Ok(registered.into_iter().map(Loaded::from).collect())
    }
}

impl From<Registered> for Loaded {
    fn from(registered: Registered) -> Self {
        let bad = registered
            .strip_env
            .as_ref()
            .ok()
            .and_then(|keys| keys.iter().find(|key| !StripList::is_valid(key)));
        if let Some(bad) = bad {
            tracing::warn!(
                "`{}` cannot be the name of a variable to strip; it is passed over",
                bad.escape_debug()
            );
        }
        let provider: Provider = Arc::new(registered.provider);
        Self { name: provider.name().to_owned(), provider, closed: registered.strip_env.err() }
    }
}
