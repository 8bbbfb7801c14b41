//! Putting a folder in the place of another, so that at any moment the whole of one of them can be found.
//!
//! The old folder is renamed, the new one is renamed into its place, and only when that one has been checked there the old one
//! is removed. Whoever has a file of the old one open keeps it. A process that is killed in between leaves either a folder
//! under its old name or one that the next command puts back; if both are there, that one stays which was enabled. There is no waiting for the disk: what a power failure tears is
//! noticed by its checksum.
//!
//! Everything lies in `plugins/` under names with a dot in front, which the catalog passes over:
//!
//! | name | what |
//! | --- | --- |
//! | `.staging-MARK` | where a new folder is made; its `lock` is held by whoever makes it, and so tells whether that one lives |
//! | `.old-NAME.MARK` | the folder of plugin NAME that is being replaced |
//! | `.removed-MARK` | a folder that is being removed |

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hostel_plugin_api::shell::{lock_within, open_lock};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use super::error::InstallError;
use crate::home::{Home, make_private, open_regular};
use crate::plugins::Record;
use crate::registry::check_name;

const STAGING: &str = ".staging-";
const OLD: &str = ".old-";
const REMOVED: &str = ".removed-";

/// The lock in a staging folder.
const LOCK: &str = "lock";

/// How long another command is waited for. It holds the lock while it renames, and while a new library is asked about itself,
/// which may take 20 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// No folder is worked on for so long without being touched.
const STALE: Duration = Duration::from_secs(3600);

/// The folder of plugins, which only one command changes at a time.
#[derive(Debug)]
pub(super) struct Place {
    home: Home,
    plugins: PathBuf,
    _lock: File,
}

/// Moves a folder. A parameter, because no test can make the second of two renames fail otherwise.
pub(super) type Rename<'a> = &'a dyn Fn(&Path, &Path) -> io::Result<()>;

/// Moves a folder as the system does.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// A folder beside the plugins for a new one, which is removed with all that is still in it.
#[derive(Debug)]
pub(super) struct Staging {
    folder: TempDir,
    /// Held as long as this process works on it.
    _lock: File,
}

impl Staging {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the part of its name that no other one has.
    pub(super) fn mark(&self) -> String {
        let name = self.path().file_name().unwrap_or_default().to_string_lossy();
        name.trim_start_matches(STAGING).to_owned()
    }
}

fn beside(plugins: &Path, prefix: &str) -> io::Result<TempDir> {
    make_private(plugins)?;
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir_in(plugins)
}

impl Place {
    /// Waits for the folder of plugins, and cleans up after commands that were killed.
    pub(super) fn hold(home: &Home) -> Result<Self, InstallError> {
        let open = || -> io::Result<File> {
            make_private(&home.plugins())?;
            make_private(&home.locks())?;
            let lock = open_lock(&home.locks().join("plugins"))?;
            lock_within(&lock, PATIENCE)?;
            Ok(lock)
        };
        let lock = open().map_err(InstallError::Lock)?;
        let place = Self { home: home.clone(), plugins: home.plugins(), _lock: lock };
        place.recover(STALE);
        Ok(place)
    }

    /// Makes a folder for a new plugin. While this holds the folder of plugins, nobody can take it for abandoned before it is locked.
    pub(super) fn staging(&self) -> Result<Staging, InstallError> {
        let make = || -> io::Result<Staging> {
            let folder = beside(&self.plugins, STAGING)?;
            let path = folder.path().join(LOCK);
            let lock = File::options().create_new(true).write(true).mode(0o600).open(path)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Staging { folder, _lock: lock })
        };
        make().map_err(|error| InstallError::Write(self.plugins.clone(), error))
    }

    /// Puts back what was being replaced, and removes what nobody works on any more.
    pub(super) fn recover(&self, stale: Duration) {
        let Ok(entries) = fs::read_dir(&self.plugins) else { return };
        for entry in entries.filter_map(Result::ok) {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else { continue };
            let outcome = if let Some(plugin) = replaced(name) {
                let target = self.plugins.join(plugin);
                // Nobody else can be at it: this is done by one command at a time.
                self.settle(plugin, &path, &target)
            } else if is_ours(name) && is_abandoned(&path, stale) {
                discard(&path)
            } else {
                continue;
            };
            if let Err(error) = outcome {
                tracing::warn!(path = %path.display(), %error, "what an earlier command left behind stays");
            }
        }
    }

    /// Decides between the `old` folder of a plugin and whatever is in its place.
    fn settle(&self, plugin: &str, old: &Path, target: &Path) -> io::Result<()> {
        if target.symlink_metadata().is_err() {
            return rename(old, target);
        }
        let record = Record::load(&self.home, plugin);
        let enabled = |folder: &Path| record.as_ref().is_some_and(|record| record.pins(folder));
        if enabled(target) || !enabled(old) {
            return discard(old);
        }
        let aside = beside(&self.plugins, REMOVED)?;
        rename(target, &aside.path().join(plugin))?;
        rename(old, target)
    }

    /// Puts the folder `staged` in place as plugin `name`, where `check` has a last look at it. Returns where the old folder is
    /// now, if there was one; `mark` becomes part of its name.
    ///
    /// If anything fails, the old folder is put back.
    pub(super) fn put(
        &self,
        name: &str,
        staged: &Path,
        mark: &str,
        rename: Rename<'_>,
        check: &mut dyn FnMut(&Path) -> Result<(), InstallError>,
    ) -> Result<Option<PathBuf>, InstallError> {
        let target = self.plugins.join(name);
        let old = self.plugins.join(format!("{OLD}{name}.{mark}"));
        let failed = |error| InstallError::Place(target.clone(), error);
        let replaces = target.symlink_metadata().is_ok();
        if replaces {
            rename(&target, &old).map_err(failed)?;
        }
        let placed = rename(staged, &target).map_err(failed).and_then(|()| {
            check(&target).inspect_err(|_| {
                // If that fails, so does putting back the old one, which tells.
                let _ = rename(&target, staged);
            })
        });
        let Err(error) = placed else {
            // Under this name nobody puts it back.
            let removed = self.plugins.join(format!("{REMOVED}{mark}"));
            return Ok(replaces.then(|| if rename(&old, &removed).is_ok() { removed } else { old }));
        };
        if replaces && let Err(second) = rename(&old, &target) {
            return Err(InstallError::Stranded { reason: error.to_string(), error: second, old });
        }
        Err(error)
    }

    /// Takes a folder out of the plugins; it is gone when what is returned is dropped.
    pub(super) fn take(&self, folder: &Path) -> Result<Taken, InstallError> {
        let failed = |error| InstallError::Remove(folder.to_owned(), error);
        let parent = folder.parent().and_then(|parent| parent.canonicalize().ok());
        let (Some(parent), Some(name)) = (parent, folder.file_name()) else {
            return Err(InstallError::Outside(folder.to_owned()));
        };
        if parent != self.plugins.canonicalize().map_err(failed)? {
            return Err(InstallError::Outside(folder.to_owned()));
        }
        let aside = beside(&self.plugins, REMOVED).map_err(failed)?;
        // Of a link, only the link.
        rename(folder, &aside.path().join(name)).map_err(failed)?;
        Ok(Taken { folder: folder.to_owned(), aside })
    }
}

/// A folder that was taken out.
#[derive(Debug)]
pub(super) struct Taken {
    folder: PathBuf,
    aside: TempDir,
}

impl Taken {
    /// Puts it back.
    pub(super) fn back(self) {
        let name = self.folder.file_name().unwrap_or_default();
        if let Err(error) = rename(&self.aside.path().join(name), &self.folder) {
            // Dropping it would remove it for good.
            let kept = self.aside.keep();
            tracing::warn!(path = %kept.display(), %error, "the plugin's folder could not be put back");
        }
    }

    /// Removes it for good.
    pub(super) fn discard(self) -> io::Result<()> {
        self.aside.close()
    }
}

/// Removes a folder or a link, of which only the link.
pub(super) fn discard(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Returns the name of the plugin whose old folder has this name.
fn replaced(name: &str) -> Option<&str> {
    let (plugin, mark) = name.strip_prefix(OLD)?.split_once('.')?;
    (check_name(plugin).is_ok() && is_mark(mark)).then_some(plugin)
}

/// Returns whether a folder of this name is made here, and never to stay.
fn is_ours(name: &str) -> bool {
    [STAGING, REMOVED].iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_mark))
}

/// Returns whether a text is as `tempfile` makes names unique: a folder that a user keeps aside is not called so.
fn is_mark(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns whether nobody works on a folder any more. One that has no lock is judged by its age.
fn is_abandoned(path: &Path, stale: Duration) -> bool {
    match open_regular(&path.join(LOCK)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => is_older(path, stale),
    }
}

fn is_older(path: &Path, age: Duration) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The time of the last change, and not that of the contents: a rename changes only the first.
    let changed = path.symlink_metadata().map(|meta| u64::try_from(meta.ctime()).unwrap_or(0));
    changed.is_ok_and(|changed| now.saturating_sub(Duration::from_secs(changed)) >= age)
}

#[cfg(test)]
mod tests;
