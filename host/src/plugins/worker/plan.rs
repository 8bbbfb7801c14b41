//! What a worker is started with, and what becomes of that when the plugin is updated under a host that runs.
//!
//! A host reads once what it knows of its plugins. If one is updated and enabled meanwhile, the worker that runs goes on with the
//! library that it has; but the next one, after a crash, finds another file than the one that was enabled when the host started.
//! So what was enabled is read once more then. The new version takes over where nothing is different that the rest of the host has
//! gone by; elsewhere the host must be restarted, and says so.

use super::super::error::{LoadError, Step};
use super::super::load::{Discovered, Pin};
use super::super::record::Record;
use super::super::signature::Signing;
use super::super::{Manifest, granted, secrets};
use super::limits::Limits;
use super::start;
use crate::home::Home;

/// Everything that is needed to start a worker.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The plugin.
    pub found: Discovered,
    /// The library that is to be loaded.
    pub pin: Option<Pin>,
    /// What was enabled; none while it is being enabled.
    pub record: Option<Record>,
    /// Whose signatures count.
    pub signing: Signing,
    /// The home.
    pub home: Home,
    /// The user's settings for the plugin.
    pub settings: serde_json::Value,
    /// Variables that the plugin's providers have named as theirs.
    pub secrets: Vec<String>,
    /// What it may use up.
    pub limits: Limits,
    /// Whether it dies of the first socket that it, or a program of its, makes for another machine: to see whether one does.
    pub trap_network: bool,
    /// Whether the user's other processes may look into it: to see what it leaves open.
    pub watched: bool,
}

impl Plan {
    /// Returns the values that must not be shown of the variables that the plugin gets.
    pub(super) fn values_of_secrets(&self) -> Vec<String> {
        let secrets: Vec<String> =
            self.found.manifest.secrets().chain(self.secrets.iter().cloned()).collect();
        let is_secret = |name: &str| {
            secrets.iter().any(|secret| {
                secret.strip_suffix('*').map_or(secret == name, |prefix| name.starts_with(prefix))
            })
        };
        let env = start::environment(&self.found, &self.secrets).into_iter();
        env.filter(|(name, _)| name.to_str().is_some_and(is_secret))
            .filter_map(|(_, value)| value.into_string().ok())
            .collect()
    }

    /// Checks what can be checked without loading the library: signatures, other files, permissions.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that is not as it should be.
    pub fn admit(&self) -> Result<(), LoadError> {
        self.signing.check(&self.found)?;
        self.record.as_ref().map_or(Ok(()), |record| granted::check(&self.found, record))
    }

    /// Returns the plan for what the plugin is now, if it was enabled anew since this plan was made.
    ///
    /// # Errors
    ///
    /// Fails if this host cannot run that, because it has read when it started which backends there are and what no command may see.
    pub fn renewed(&self) -> Result<Option<Self>, LoadError> {
        let Self { found: Discovered { folder, manifest: old }, record: Some(before), .. } = self else {
            return Ok(None);
        };
        let Some(record) = Record::load(&self.home, &old.name) else {
            let reason = "it was disabled while this host runs".to_owned();
            let hint = format!("`hostel plugins enable {}` enables it again", old.name);
            return Err(LoadError::new(&old.name, Step::Checksum, reason, hint));
        };
        if record == *before {
            return Ok(None);
        }
        let refused = |reason: String| {
            let reason = format!("it was updated while this host runs, and {reason}");
            LoadError::new(
                &old.name,
                Step::Checksum,
                reason,
                "restart this host, and it uses the new version",
            )
        };
        if record.folder != *folder {
            return Err(refused(format!("now lies in `{}`", record.folder.display())));
        }
        let read = Manifest::read(folder);
        let (manifest, _) = read.map_err(|error| refused(format!("its manifest cannot be read: {error}")))?;
        if manifest.name != old.name || sorted(&manifest.provides) != sorted(&old.provides) {
            return Err(refused("no longer provides the same backends".into()));
        }
        let secrets = secrets::named(Some(&record), &manifest);
        let known = |name: &&String| self.secrets.contains(name) || before.secrets.contains(name);
        if let Some(name) = secrets.iter().chain(&record.secrets).find(|name| !known(name)) {
            return Err(refused(format!(
                "now calls `{name}` a secret, which is not hidden from commands yet"
            )));
        }
        let found = Discovered { folder: folder.clone(), manifest };
        let pin = Some(record.pin.clone());
        Ok(Some(Self { found, pin, record: Some(record), secrets, ..self.clone() }))
    }
}

fn sorted(names: &[String]) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_unstable();
    names
}
