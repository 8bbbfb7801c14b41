//! Fetching a plugin again from where it came from.

use super::add::{Installed, Then, nothing, put};
use super::error::InstallError;
use super::fetch::Progress;
use super::folder::same;
use super::place::Place;
use super::receipt::Receipt;
use super::stage::stage;
use crate::home::Home;
use crate::registry::check_name;

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The source holds what is installed, to the byte.
    Already {
        /// The plugin.
        name: String,
        /// Its version.
        version: String,
    },
    /// It was replaced.
    Replaced(Installed),
}

/// Fetches plugin `name` again, and replaces it if anything of it has changed.
///
/// A library that was enabled is pinned by its checksum, so one that has changed must be enabled again.
///
/// # Errors
///
/// As [`install`](super::install), and if it is not known where the plugin came from.
pub fn update(home: &Home, name: &str, progress: &dyn Progress) -> Result<Updated, InstallError> {
    update_then(home, name, progress, &mut |_| Ok(nothing()))
}

/// As [`update`], and does something with a plugin that was replaced: if that fails, the one before is put back.
///
/// # Errors
///
/// As [`update`], and as `then` does.
pub fn update_then(
    home: &Home,
    name: &str,
    progress: &dyn Progress,
    then: Then<'_>,
) -> Result<Updated, InstallError> {
    check_name(name)?;
    drop(Place::hold(home)?);
    let installed = home.plugins().join(name);
    if !installed.is_dir() {
        return Err(InstallError::Unknown(name.to_owned()));
    }
    let Some(receipt) = Receipt::load(home, name) else {
        return Err(InstallError::NoReceipt(name.to_owned()));
    };
    let source = receipt.source;
    if !receipt.is_whole {
        return Err(InstallError::PartlyKept { name: name.to_owned(), address: source.to_string() });
    }
    let staged = stage(home, &source, None, progress)?;
    let manifest = &staged.found.manifest;
    if manifest.name != name {
        let found = manifest.name.clone();
        return Err(InstallError::Another { what: source.to_string(), name: name.to_owned(), found });
    }
    if same(&staged.found.folder, &installed) {
        return Ok(Updated::Already { name: name.to_owned(), version: manifest.version.clone() });
    }
    put(home, staged, &source, true, progress, then).map(Updated::Replaced)
}
