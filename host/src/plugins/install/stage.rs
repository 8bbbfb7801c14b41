//! From a source to a folder that could be put in place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::InstallError;
use super::fetch::{self, Fetched, Progress};
use super::place::{Place, Staging};
use super::source::{ArchiveKind, Source};
use super::tree::{Flaw, Tree};
use super::unpack::unpack;
use super::{folder, git};
use crate::home::{Home, make_private};
use crate::plugins::{Discovered, Manifest};

/// A folder that was checked, and lies beside the plugins.
#[derive(Debug)]
pub(super) struct Staged {
    /// What is removed when it is not put in place.
    pub(super) staging: Staging,
    /// The plugin.
    pub(super) found: Discovered,
    /// What its author should know.
    pub(super) warnings: Vec<String>,
    /// The checksum of the archive that it came in.
    pub(super) sha256: Option<String>,
    /// The commit that it is.
    pub(super) commit: Option<String>,
}

/// Fetches a source, and checks what it holds. If `sha256` is given, it must be an archive with that checksum.
pub(super) fn stage(
    home: &Home,
    source: &Source,
    sha256: Option<&str>,
    progress: &dyn Progress,
) -> Result<Staged, InstallError> {
    let what = source.to_string();
    // Held for a moment only: what is fetched may take long.
    let staging = Place::hold(home)?.staging()?;
    let near = staging.path();
    progress.staged(near);
    let into = near.join("tree");
    // Whatever the umask is: a folder that others may write to is not loaded from.
    let made =
        fs::create_dir(&into).and_then(|()| fs::set_permissions(&into, fs::Permissions::from_mode(0o755)));
    made.map_err(|error| InstallError::Write(into.clone(), error))?;
    let broken = |flaw| InstallError::Content(what.clone(), flaw);
    let archive = |fetched: Fetched, kind, into| {
        if let Some(wanted) = sha256.filter(|wanted| *wanted != fetched.sha256) {
            let (wanted, found) = (wanted.to_owned(), fetched.sha256);
            return Err(InstallError::Sha256 { what: what.clone(), wanted, found });
        }
        let root = unpack(&fetched, kind, into).map_err(broken)?;
        Ok((root, Some(fetched.sha256), None))
    };
    let (root, sha256, commit) = match source {
        Source::Folder(path) => {
            let path = checked_folder(home, path, &what)?;
            (copied(&path, into).map_err(broken)?, None, None)
        }
        Source::Archive(path) => {
            let kind = ArchiveKind::of(&path.to_string_lossy()).unwrap_or(ArchiveKind::TarGz);
            archive(fetch::read(path, near)?, kind, into)?
        }
        Source::Url { url, kind } => archive(fetch::download(url, near, progress)?, *kind, into)?,
        Source::Git { url, reference } => {
            let clone = near.join("clone");
            let commit = git::fetch(url, reference.as_deref(), &clone, progress)?;
            (copied(&clone, into).map_err(broken)?, None, Some(commit))
        }
    };
    let (found, warnings) = checked(&root, &what)?;
    let found = named(found, near)?;
    Ok(Staged { staging, found, warnings, sha256, commit })
}

/// Gives the folder the name that it will have: a plugin may look at what its folder is called.
fn named(found: Discovered, near: &Path) -> Result<Discovered, InstallError> {
    let Discovered { folder, manifest } = found;
    let named = near.join(READY).join(&manifest.name);
    let failed = |error| InstallError::Write(named.clone(), error);
    make_private(&near.join(READY)).and_then(|()| fs::rename(&folder, &named)).map_err(failed)?;
    Ok(Discovered { folder: named.canonicalize().map_err(failed)?, manifest })
}

/// Where the checked folder lies, beside nothing that it could be called.
const READY: &str = "ready";

/// Looks at a folder on this machine before anything of it is copied. Returns it without links.
fn checked_folder(home: &Home, path: &Path, what: &str) -> Result<PathBuf, InstallError> {
    let path = path.canonicalize().map_err(|error| InstallError::Read(path.to_owned(), error))?;
    if home.plugins().canonicalize().is_ok_and(|plugins| plugins.starts_with(&path)) {
        return Err(InstallError::Itself(path));
    }
    read(&path, what)?;
    Ok(path)
}

fn copied(from: &Path, into: PathBuf) -> Result<PathBuf, Flaw> {
    let mut tree = Tree::new(into, None);
    folder::copy(from, &mut tree)?;
    tree.finish()
}

/// Checks the plugin in `folder`, as `hostel plugins list` would. Nothing of it is run.
fn checked(folder: &Path, what: &str) -> Result<(Discovered, Vec<String>), InstallError> {
    let (manifest, warnings) = read(folder, what)?;
    let folder = folder.canonicalize().map_err(|error| InstallError::Write(folder.to_owned(), error))?;
    let found = Discovered { folder, manifest };
    found.glance().map_err(|mut error| {
        // The user knows the source, and not the folder that it was brought to.
        let folder = found.folder.display().to_string();
        error.reason = error.reason.replace(&folder, what);
        error.hint = error.hint.replace(&folder, what);
        error
    })?;
    Ok((found, warnings))
}

/// Reads the manifest in `folder`, and sees that there is a library.
fn read(folder: &Path, what: &str) -> Result<(Manifest, Vec<String>), InstallError> {
    let (manifest, warnings) =
        Manifest::read(folder).map_err(|error| InstallError::Manifest(what.to_owned(), error))?;
    let names = manifest.library_names();
    if names.iter().any(|name| folder.join(name).symlink_metadata().is_ok()) {
        return Ok((manifest, warnings));
    }
    let is_crate = folder.join("Cargo.toml").is_file();
    let library = names.into_iter().next().unwrap_or_default();
    Err(InstallError::NoLibrary { what: what.to_owned(), library, is_crate })
}
