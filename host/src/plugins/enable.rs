//! Enabling a plugin: its files are checked and pinned, and its library is asked about itself.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use hostel_plugin_api::shell::{StripList, lock_within, open_lock};

use super::catalog::{Candidate, Catalog};
use super::error::LoadError;
use super::granted;
use super::inspect::inspect;
use super::load::Discovered;
use super::record::Record;
use super::secrets::may_be_secret;
use super::source::{Isolation, Terms};
use super::worker::Plan;
use crate::config::{ConfigError, ConfigFile, FileError, Key, KeyError};
use crate::home::{Home, make_private};
use crate::world::World;

/// Why a plugin was not enabled or disabled.
#[derive(Debug, thiserror::Error)]
pub enum EnableError {
    /// No folder has it.
    #[error("there is no plugin `{0}`")]
    Unknown(String),
    /// Its folder cannot be used.
    #[error("plugin `{0}` cannot be enabled: {1}")]
    Problem(String, String),
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What was found could not be written down.
    #[error("failed to write `{0}`: {1}; nothing was changed")]
    Record(std::path::PathBuf, std::io::Error),
    /// The configuration could not be changed.
    #[error(transparent)]
    Config(#[from] FileError),
    /// A value in the configuration cannot be used.
    #[error(transparent)]
    Value(#[from] ConfigError),
    /// Never happens: the keys are constants.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Lets `name` be loaded: pins its library, and puts it on the list. Returns it, and what its author should know.
///
/// # Errors
///
/// Fails with nothing changed if the plugin cannot be loaded.
pub fn enable<'a>(world: &'a World, name: &str) -> Result<(&'a Candidate, Vec<String>), EnableError> {
    let candidate = sound(&world.catalog, name)?;
    let Some(found) = &candidate.found else { return Err(EnableError::Unknown(name.to_owned())) };
    let asked = Asked::of(world, found)?;
    let warnings = asked.warnings.clone();
    asked.enable(&world.home, found.folder.clone())?;
    Ok((candidate, warnings))
}

/// Returns plugin `name` if nothing keeps it from being enabled that can be seen from outside.
pub(crate) fn sound<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Candidate, EnableError> {
    let candidate = catalog.get(name).ok_or_else(|| EnableError::Unknown(name.to_owned()))?;
    match &candidate.problem {
        Some(problem) => Err(EnableError::Problem(name.to_owned(), problem.reason().to_owned())),
        None => Ok(candidate),
    }
}

/// A plugin whose library was asked about itself, and that is not enabled yet.
#[derive(Debug)]
pub struct Asked {
    record: Record,
    name: String,
    /// What its author should know.
    pub warnings: Vec<String>,
}

impl Asked {
    /// Checks and pins the plugin's files, and asks its library, in a worker.
    ///
    /// # Errors
    ///
    /// Fails if the plugin cannot be loaded. Nothing was changed in any case.
    pub fn of(world: &World, found: &Discovered) -> Result<Self, EnableError> {
        let World { home, config, .. } = world;
        let name = &found.manifest.name;
        let verified = found.verify(None)?;
        let files = granted::files(found)?;
        let terms = Terms::read(config)?;
        let plan = Plan {
            found: found.clone(),
            pin: Some(verified.pin().clone()),
            home: home.clone(),
            settings: config.section(&format!("plugins.settings.{name}")),
            secrets: found.manifest.secrets().collect(),
            limits: terms.limits,
            record: None,
            signing: terms.signing,
            trap_network: false,
            watched: false,
        };
        let (mut providers, mut warnings) = inspect(plan)?;
        if Isolation::of(config, name) == Isolation::InProcess {
            let why = "it runs in Hostel's own process, where it is not held to its permissions";
            warnings.push(format!("{why} (`plugins.isolation`)"));
        }
        for provider in &mut providers {
            provider.strip_env_keys.retain(|key| {
                let why = match (StripList::is_valid(key), may_be_secret(key)) {
                    (true, true) => return true,
                    (true, false) => "which every command needs, or is too much at once",
                    (false, _) => "which is no variable's name",
                };
                let key = key.escape_debug();
                warnings.push(format!("`{}` wants `{key}` stripped, {why}", provider.name));
                false
            });
        }
        let record = Record {
            folder: found.folder.clone(),
            pin: verified.pin().clone(),
            files,
            permissions: found.manifest.asked(),
            api_version: verified.api_version().to_owned(),
            secrets: found.manifest.secrets().collect(),
            providers,
        };
        Ok(Self { record, name: name.clone(), warnings })
    }

    /// Enables it: writes down what was found, and puts it on the list. `folder` is where it lies now.
    ///
    /// # Errors
    ///
    /// Fails with nothing changed if that cannot be written.
    pub fn enable(self, home: &Home, folder: PathBuf) -> Result<(), EnableError> {
        let Self { record, name, .. } = self;
        // Record and list belong together, whoever else is at it.
        let _turn = turn(home)?;
        let before = Record::load(home, &name);
        let record = Record { folder, ..record };
        record.save(home, &name).map_err(|(path, error)| EnableError::Record(path, error))?;
        list(home, &name, true).map(drop).inspect_err(|_| match before {
            Some(before) => drop(before.save(home, &name)),
            None => Record::remove(home, &name),
        })
    }
}

/// Takes `name` off the list. Returns whether it was on it.
///
/// # Errors
///
/// Fails with nothing changed if there is neither a folder nor a listing of that name, or the configuration cannot be written.
pub fn disable(home: &Home, catalog: &Catalog, name: &str) -> Result<bool, EnableError> {
    if catalog.get(name).is_none() && !catalog.missing.iter().any(|missing| missing == name) {
        return Err(EnableError::Unknown(name.to_owned()));
    }
    let _turn = turn(home)?;
    let changed = list(home, name, false)?;
    Record::remove(home, name);
    Ok(changed)
}

/// Waits until no other command enables or disables a plugin.
fn turn(home: &Home) -> Result<File, EnableError> {
    let path = home.locks().join("enabling");
    let open = || -> std::io::Result<File> {
        make_private(&home.locks())?;
        let lock = open_lock(&path)?;
        lock_within(&lock, PATIENCE)?;
        Ok(lock)
    };
    open().map_err(|error| EnableError::Record(path.clone(), error))
}

/// How long another command is waited for, which only writes two small files.
const PATIENCE: Duration = Duration::from_secs(10);

/// Puts `name` on the list of enabled plugins, and takes it off that of disabled ones; or takes it off the first.
fn list(home: &Home, name: &str, enabled: bool) -> Result<bool, EnableError> {
    let (on, off) = (Key::parse("plugins.enabled")?, Key::parse("plugins.disabled")?);
    let changed = ConfigFile::change_lists(home, &[on, off], |lists| {
        lists[0].retain(|listed| listed != name || enabled);
        if enabled {
            lists[1].retain(|listed| listed != name);
            if !lists[0].iter().any(|listed| listed == name) {
                lists[0].push(name.to_owned());
            }
        }
    });
    Ok(changed?)
}
