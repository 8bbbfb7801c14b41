//! Names and what stands behind them.
//!
//! Built-in backends and plugins fill one table, and everybody else asks it: nobody above this floor can tell the two apart,
//! and nobody anywhere compares names. An entry opens its provider when it is first needed.

mod ask;
mod name;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use hostel_plugin_api::{Error, ErrorKind, TerminalEnvironmentProvider};

pub use ask::{CHEAP, Flags, ask, open_in_time};
pub use name::{NameError, RESERVED, check_name, fold, reserved};

/// Who brought a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Part of Hostel.
    Builtin,
    /// The plugin of this name.
    Plugin(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::Plugin(name) => write!(f, "plugin:{name}"),
        }
    }
}

/// The member of an error's `extra` with which a provider says that it could only end a command by taking down what ran it: the
/// number of an [`Ended`](hostel_plugin_api::Ended).
pub const ENDED_BY_FORCE: &str = "ended_by_force";

/// A provider as the registry hands it out.
pub type Provider = Arc<dyn TerminalEnvironmentProvider>;

/// Makes the provider of an entry when it is first needed.
pub trait Source: Send + Sync {
    /// Returns the provider.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong and what to do.
    fn open(&self) -> Result<Provider, Error>;
}

impl<F: Fn() -> Result<Provider, Error> + Send + Sync> Source for F {
    fn open(&self) -> Result<Provider, Error> {
        self()
    }
}

/// One backend name.
pub struct Entry {
    name: String,
    origin: Origin,
    description: String,
    strip_env: Vec<String>,
    source: Result<Box<dyn Source>, Error>,
    opened: OnceLock<Provider>,
}

impl Entry {
    /// Makes an entry whose provider comes from `source`.
    #[must_use]
    pub fn new(name: &str, origin: Origin, source: impl Source + 'static) -> Self {
        Self::with(name, origin, Ok(Box::new(source)))
    }

    /// Makes an entry that is known and cannot be used, for the reason given.
    #[must_use]
    pub fn closed(name: &str, origin: Origin, reason: Error) -> Self {
        Self::with(name, origin, Err(reason))
    }

    fn with(name: &str, origin: Origin, source: Result<Box<dyn Source>, Error>) -> Self {
        let (description, strip_env) = (String::new(), Vec::new());
        Self { name: name.to_owned(), origin, description, strip_env, source, opened: OnceLock::new() }
    }

    /// Says what the backend is as long as its provider has not been asked.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Names the variables that no command of any backend may see because of this one.
    #[must_use]
    pub fn stripping(mut self, patterns: Vec<String>) -> Self {
        self.strip_env = patterns;
        self
    }

    /// The backend name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who brought it.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What it is, as known without opening it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the provider, opening it if nobody has yet.
    ///
    /// # Errors
    ///
    /// Fails with why it cannot be used. The next time may be another.
    pub fn provider(&self) -> Result<Provider, Error> {
        let source = self.source.as_ref().map_err(Clone::clone)?;
        if let Some(provider) = self.opened.get() {
            return Ok(Arc::clone(provider));
        }
        let provider = source.open()?;
        // Whoever was first is the one that all have.
        Ok(Arc::clone(self.opened.get_or_init(|| provider)))
    }

    /// Returns why the backend cannot be used, if that is known without opening it.
    #[must_use]
    pub fn closed_because(&self) -> Option<&Error> {
        self.source.as_ref().err()
    }
}

/// The table of backends.
#[derive(Default)]
pub struct Registry {
    entries: BTreeMap<String, Arc<Entry>>,
    strip_always: Vec<String>,
}

impl Registry {
    /// Takes an entry in.
    ///
    /// # Errors
    ///
    /// Fails if the name is taken, or is reserved and the entry is a plugin's. The message names both sides.
    pub fn add(&mut self, entry: Entry) -> Result<(), Error> {
        let folded = fold(&entry.name);
        if entry.origin != Origin::Builtin && reserved(&entry.name).is_some() {
            let message = format!(
                "{} cannot provide `{}`: that backend is built into Hostel",
                entry.origin, entry.name
            );
            return Err(Error::new(ErrorKind::INVALID_REQUEST, message));
        }
        if let Some(present) = self.entries.get(&folded) {
            let message =
                format!("{} cannot provide `{}`: {} already does", entry.origin, entry.name, present.origin);
            return Err(Error::new(ErrorKind::INVALID_REQUEST, message));
        }
        self.entries.insert(folded, Arc::new(entry));
        Ok(())
    }

    /// Names variables that no command may see, whatever backends there are.
    pub fn strip_always(&mut self, patterns: impl IntoIterator<Item = String>) {
        self.strip_always.extend(patterns);
    }

    /// Returns the entry of a backend.
    ///
    /// # Errors
    ///
    /// Fails if there is none; the message lists those there are.
    pub fn get(&self, name: &str) -> Result<&Arc<Entry>, Error> {
        let found = self.entries.get(&fold(name.trim()));
        found.ok_or_else(|| {
            let built = |entry: &&Arc<Entry>| {
                entry.closed_because().is_none_or(|error| error.kind() != ErrorKind::UNSUPPORTED)
            };
            let known = self.entries.values().filter(built).map(|entry| format!("`{}`", entry.name));
            let known: Vec<String> = known.collect();
            let message = format!("there is no backend `{}`", name.escape_debug());
            let hint = format!("use one of {}, or drop a plugin's folder into `plugins/`", known.join(", "));
            Error::new(ErrorKind::NOT_CONFIGURED, message).with_hint(hint).not_started()
        })
    }

    /// Returns all entries, the built-in ones first, each kind by name.
    #[must_use]
    pub fn entries(&self) -> Vec<&Arc<Entry>> {
        let mut entries: Vec<&Arc<Entry>> = self.entries.values().collect();
        entries.sort_by_key(|entry| (entry.origin != Origin::Builtin, entry.name.as_str()));
        entries
    }

    /// Returns the variables that no command may see, whichever backend runs it.
    #[must_use]
    pub fn strip_env(&self) -> Vec<String> {
        let entries = self.entries.values().flat_map(|entry| &entry.strip_env);
        self.strip_always.iter().chain(entries).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, origin: Origin) -> Entry {
        Entry::closed(name, origin, Error::new(ErrorKind::UNAVAILABLE, "closed"))
            .stripping(vec![format!("{name}_KEY")])
    }

    #[test]
    fn a_plugin_neither_shadows_a_builtin_nor_another_plugin() {
        let mut registry = Registry::default();
        registry.add(entry("local", Origin::Builtin)).unwrap();
        let plugin = |name: &str| Origin::Plugin(name.to_owned());
        for name in ["docker", "managed-modal"] {
            let error = registry.add(entry(name, plugin("evil"))).unwrap_err();
            assert!(error.message().contains("plugin:evil") && error.message().contains("built into Hostel"));
        }
        registry.add(entry("acme-box", plugin("a"))).unwrap();
        let error = registry.add(entry("acme_box", plugin("b"))).unwrap_err();
        assert_eq!(error.message(), "plugin:b cannot provide `acme_box`: plugin:a already does");
        assert_eq!(registry.strip_env(), ["acme-box_KEY", "local_KEY"]);
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let mut registry = Registry::default();
        registry.add(entry("local", Origin::Builtin)).unwrap();
        let error = registry.get("dokcer").err().unwrap();
        assert!(error.hint().unwrap().contains("`local`"), "{error:?}");
        assert!(registry.get(" LOCAL ").is_ok());
    }
}
