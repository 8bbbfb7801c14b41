//! Installing.

use std::path::{Path, PathBuf};

use super::error::InstallError;
use super::fetch::Progress;
use super::place::{Place, discard, rename};
use super::receipt::Receipt;
use super::source::{Source, checked_reference};
use super::stage::{Staged, stage};
use crate::home::Home;
use crate::plugins::{Catalog, Discovered, Manifest};
use crate::registry::fold;

/// How a plugin is to be installed.
#[derive(Debug, Clone, Default)]
pub struct InstallOptions {
    /// The SHA-256 that the archive must have, in hexadecimal.
    pub sha256: Option<String>,
    /// Whether a plugin of the same name is replaced.
    pub force: bool,
    /// The branch, tag or commit of a git repository, in place of the one in the source.
    pub reference: Option<String>,
}

/// A plugin that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The version that was there before, if one was.
    pub replaced: Option<String>,
    /// What the user or the author should know.
    pub warnings: Vec<String>,
}

/// What is done with a plugin once it is in place, while the one before can still be put back. It must not take long: until it has returned
/// there is neither.
pub type Placed = Box<dyn FnOnce(&Discovered) -> Result<(), InstallError>>;

/// What is done with a plugin that was checked, before anything is put in its place, however long that takes.
pub type Then<'a> = &'a mut dyn FnMut(&Discovered) -> Result<Placed, InstallError>;

/// Installs the plugin in `source`. It is not enabled, and nothing of it is run.
///
/// # Errors
///
/// Fails with everything as it was if the source cannot be fetched, or holds anything but one plugin that this host could load.
pub fn install(
    home: &Home,
    source: &Source,
    options: &InstallOptions,
    progress: &dyn Progress,
) -> Result<Installed, InstallError> {
    install_then(home, source, options, progress, &mut |_| Ok(nothing()))
}

/// Nothing more.
pub(super) fn nothing() -> Placed {
    Box::new(|_| Ok(()))
}

/// As [`install`], and does something with the plugin that belongs to it: if that fails, the plugin is not installed either.
///
/// # Errors
///
/// As [`install`], and as `then` does.
pub fn install_then(
    home: &Home,
    source: &Source,
    options: &InstallOptions,
    progress: &dyn Progress,
    then: Then<'_>,
) -> Result<Installed, InstallError> {
    let source = chosen(source, options)?;
    let sha256 = checked_sha256(&source, options)?;
    let staged = stage(home, &source, sha256.as_deref(), progress)?;
    put(home, staged, &source, options.force, progress, then)
}

/// Puts a checked folder in place, and remembers where it came from.
pub(super) fn put(
    home: &Home,
    staged: Staged,
    source: &Source,
    force: bool,
    progress: &dyn Progress,
    then: Then<'_>,
) -> Result<Installed, InstallError> {
    let Discovered { folder: staged_folder, manifest } = &staged.found;
    let (name, version) = (manifest.name.clone(), manifest.version.clone());
    let target = home.plugins().join(&name);
    // Nobody is asked in vain, and nobody waits meanwhile.
    replaced(home, &name, force)?;
    let placed = then(&staged.found);
    let mut placed = Some(placed.map_err(|error| error.moved(staged_folder, &target))?);
    let place = Place::hold(home)?;
    let replaced = replaced(home, &name, force)?;
    let earlier = Receipt::load(home, &name);
    let receipt = Receipt::new(source, staged.sha256, staged.commit, version.clone());
    let mut check = |folder: &Path| -> Result<(), InstallError> {
        let folder = folder.canonicalize().map_err(|error| InstallError::Place(folder.to_owned(), error))?;
        let found = Discovered { folder, manifest: manifest.clone() };
        found.glance()?;
        receipt.save(home, &name)?;
        placed.take().map_or(Ok(()), |placed| placed(&found)).inspect_err(|_| match &earlier {
            // The error that led here is the one to tell.
            Some(earlier) => drop(earlier.save(home, &name)),
            None => Receipt::remove(home, &name),
        })
    };
    let undisturbed = progress.undisturbed();
    let old = place.put(&name, staged_folder, &staged.staging.mark(), &rename, &mut check);
    drop(undisturbed);
    let mut warnings = staged.warnings;
    if let Some((old, error)) = old?.and_then(|old| discard(&old).err().map(|error| (old, error))) {
        let old = old.display();
        warnings.push(format!("failed to remove the old folder, which is now `{old}`: {error}"));
    }
    Ok(Installed { name, version, folder: target, replaced, warnings })
}

/// Returns the version that would be replaced, if one would. Fails if it may not, or another folder has the name.
fn replaced(home: &Home, name: &str, force: bool) -> Result<Option<String>, InstallError> {
    let target = home.plugins().join(name);
    let others = Catalog::scan(home, &[], &[]).candidates;
    let other = others.into_iter().find(|other| fold(&other.name) == fold(name) && other.path != target);
    if let Some(other) = other {
        return Err(InstallError::Taken { name: name.to_owned(), folder: other.path });
    }
    let is_there = target.symlink_metadata().is_ok();
    let version = is_there.then(|| version_in(&target, Receipt::load(home, name).as_ref()));
    match version {
        Some(version) if !force => Err(InstallError::Exists { name: name.to_owned(), version }),
        version => Ok(version),
    }
}

fn version_in(folder: &Path, receipt: Option<&Receipt>) -> String {
    let version = Manifest::read(folder).ok().map(|(manifest, _)| manifest.version);
    version.or_else(|| receipt.map(|receipt| receipt.version.clone())).unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the source with the branch, tag or commit that the options name.
fn chosen(source: &Source, options: &InstallOptions) -> Result<Source, InstallError> {
    let Some(reference) = checked_reference(options.reference.as_deref())? else { return Ok(source.clone()) };
    match source {
        Source::Git { url, .. } => Ok(Source::Git { url: url.clone(), reference: Some(reference) }),
        other => Err(InstallError::NoReference(other.to_string())),
    }
}

fn checked_sha256(source: &Source, options: &InstallOptions) -> Result<Option<String>, InstallError> {
    let Some(sha256) = &options.sha256 else { return Ok(None) };
    let sha256 = sha256.trim().to_ascii_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(InstallError::NotSha256(sha256.chars().take(100).collect()));
    }
    match source {
        Source::Archive(_) | Source::Url { .. } => Ok(Some(sha256)),
        other => Err(InstallError::NoSha256(other.to_string())),
    }
}
