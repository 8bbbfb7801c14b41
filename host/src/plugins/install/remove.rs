//! Removing a plugin.

use std::path::PathBuf;

use super::error::InstallError;
use super::place::{Place, Taken, discard};
use super::receipt::Receipt;
use crate::home::Home;
use crate::plugins::{Catalog, disable};
use crate::registry::{NameError, check_name};

/// A plugin that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// Its folder, if it had one.
    pub folder: Option<PathBuf>,
    /// Where that was a link: what it leads to, which was left alone.
    pub linked: Option<PathBuf>,
    /// Whether it was on the list of the enabled.
    pub was_enabled: bool,
    /// Its own data, if there is any and it was kept.
    pub kept_data: Option<PathBuf>,
    /// What could not be cleaned up.
    pub warnings: Vec<String>,
}

/// Removes plugin `name`: its folder, and what is known of it. Its own data stays if `keep_data` is set.
///
/// # Errors
///
/// Fails with everything as it was if there is no such plugin, its folder does not lie in that of plugins, or the configuration
/// cannot be written.
pub fn remove(home: &Home, catalog: &Catalog, name: &str, keep_data: bool) -> Result<Removed, InstallError> {
    // A folder with a reserved name can be there, and is of no use.
    if let Err(error) = check_name(name)
        && (matches!(error, NameError::Form(_)) || !is_plain(name))
    {
        return Err(error.into());
    }
    let place = Place::hold(home)?;
    let folder = catalog.get(name).map(|candidate| candidate.path.clone());
    let folder = folder.filter(|folder| folder.symlink_metadata().is_ok());
    if folder.is_none() && !catalog.missing.iter().any(|missing| missing == name) {
        return Err(InstallError::Unknown(name.to_owned()));
    }
    let linked = folder.as_ref().and_then(|folder| folder.read_link().ok());
    let taken = folder.as_ref().map(|folder| place.take(folder)).transpose()?;
    let was_enabled = match disable(home, catalog, name) {
        Ok(was_enabled) => was_enabled,
        Err(error) => {
            if let Some(taken) = taken {
                taken.back();
            }
            return Err(error.into());
        }
    };
    // From here on it is removed; what is still in the way is told.
    let mut warnings = Vec::new();
    if let Some(Err(error)) = taken.map(Taken::discard) {
        warnings.push(format!("failed to remove all of its folder: {error}"));
    }
    Receipt::remove(home, name);
    let data = home.plugin_data(name);
    let mut kept_data = data.symlink_metadata().is_ok().then(|| data.clone());
    if !keep_data && kept_data.is_some() {
        match discard(&data) {
            Ok(()) => kept_data = None,
            Err(error) => warnings.push(format!("failed to remove `{}`: {error}", data.display())),
        }
    }
    if !keep_data {
        let provides = catalog.get(name).and_then(|candidate| candidate.found.as_ref());
        let backends = provides.map_or_else(Vec::new, |found| found.manifest.provides.clone());
        for tasks in backends.iter().map(|backend| home.tasks_of(backend)).filter(|tasks| tasks.exists()) {
            if let Err(error) = discard(&tasks) {
                warnings.push(format!("failed to remove `{}`: {error}", tasks.display()));
            }
        }
    }
    Ok(Removed { name: name.to_owned(), folder, linked, was_enabled, kept_data, warnings })
}

/// Returns whether a name, reserved or not, is one path component of harmless letters.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(plain)
}
