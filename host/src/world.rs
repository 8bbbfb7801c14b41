//! The one way in which every face builds its world.
//!
//! Command line, MCP and server all come through [`World::open`], so that none can miss a plugin, a setting or a rule.

use std::sync::Arc;

use hostel_plugin_api::{Error, ErrorKind};

use crate::backends;
use crate::config::{Config, ConfigError, FileError, Finding, declared};
use crate::dotenv;
use crate::exec::Outputs;
use crate::home::{Home, HomeError};
use crate::plugins::{self, Catalog};
use crate::policy;
use crate::registry::{Entry, Registry};

/// Why there is no world.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no home.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value in it cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The built-in backends clash.
    #[error(transparent)]
    Backends(#[from] Error),
    /// Nobody can look after what is idle.
    #[error("failed to start a thread: {0}")]
    Reaper(#[source] std::io::Error),
}

/// What the caller settles.
#[derive(Debug, Default, Clone)]
pub struct Options {
    /// The home; None finds it.
    pub home: Option<Home>,
    /// Overrides the selected backend.
    pub backend: Option<String>,
}

/// A home with its configuration, its plugins and its backends.
pub struct World {
    /// The folders.
    pub home: Home,
    /// The configuration in force.
    pub config: Config,
    /// The plugins, good and bad.
    pub catalog: Catalog,
    /// The backends.
    pub registry: Registry,
    /// What the user should know of the plugins, a line each.
    pub remarks: Vec<String>,
}

impl World {
    /// Reads the home's configuration and manifests, and fills the registry. Opens no library.
    ///
    /// # Errors
    ///
    /// Fails if there is no home, or the configuration cannot be used. A broken plugin is no failure.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let home = options.home.map_or_else(Home::find, Ok)?;
        let config = Config::load(&home, options.backend)?;
        let (enabled, disabled) = (config.list("plugins.enabled")?, config.list("plugins.disabled")?);
        let catalog = Catalog::scan(&home, &enabled, &disabled);
        let mut registry = Registry::default();
        backends::fill(&mut registry)?;
        let terms = plugins::Terms::read(&config)?;
        let mut remarks = plugins::fill(&mut registry, &catalog, &home, &config, &terms);
        remarks.extend(catalog.unread.clone());
        // What is kept there is kept because it is secret. A file that cannot be read is told where it is taken over.
        let kept = dotenv::load(&home).map(|kept| kept.pairs().map(|(name, _)| name.to_owned()).collect());
        registry.strip_always(kept.unwrap_or_else(|_| Vec::new()));
        registry.strip_always([policy::secrets::MCP_TOKEN.to_owned()]);
        Ok(Self { home, config, catalog, registry, remarks })
    }

    /// Returns the entry of the backend `name`.
    ///
    /// # Errors
    ///
    /// Fails if there is none; the message says what is wrong with the plugin that would provide it.
    pub fn backend(&self, name: &str) -> Result<&Arc<Entry>, Error> {
        self.registry.get(name).map_err(|error| match self.catalog.why_not(name) {
            None => error,
            Some(reason) => Error::new(error.kind(), format!("there is no backend `{name}`: {reason}"))
                .with_hint("`hostel doctor` looks at every plugin")
                .not_started(),
        })
    }

    /// Returns where whole outputs are kept, and the limits on that.
    ///
    /// # Errors
    ///
    /// Fails if the configuration has a limit that does not fit.
    pub fn outputs(&self) -> Result<Outputs, Error> {
        Outputs::read(&self.config, &self.home)
            .map_err(|error| Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started())
    }

    /// Looks the configuration over, also what plugins have declared of their own settings.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        let records = self.catalog.candidates.iter().filter_map(|candidate| candidate.record.as_ref());
        let wrong = records.flat_map(|record| &record.providers).filter_map(|provider| {
            let section = format!("terminal.backends.{}", provider.name);
            let reason = declared::check(&provider.config_schema, &self.config.section(&section)).err()?;
            Some(Finding { is_error: true, message: format!("`{section}`: {reason}") })
        });
        let keys = plugins::Signing::read(&self.config).ok().and_then(|signing| signing.flaw());
        let keys = keys.map(|message| Finding { is_error: true, message });
        self.config.check().into_iter().chain(wrong).chain(keys).collect()
    }

    /// Returns the entry of the selected backend.
    ///
    /// # Errors
    ///
    /// Fails if what is selected is unknown; the message names where the selection comes from.
    pub fn selected(&self) -> Result<&Arc<Entry>, Error> {
        let setting = self.config.sound().and_then(|()| self.config.backend()).map_err(|error| {
            let error = Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started();
            error.with_hint("`hostel config check` lists everything that is wrong")
        })?;
        let name = setting.value.as_str().unwrap_or_default();
        self.backend(name)
            .map_err(|error| error.with_context(format_args!("`terminal.backend` ({})", setting.origin)))
    }
}
