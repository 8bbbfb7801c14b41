//! Who may write to a plugin's files: nobody but the user and root, or the host would run what others put there.
//!
//! That goes for the plugin's folder and all in it, and for the folders above: who may write to one of these may put another folder
//! in the place of what is below. As `ssh` does, it goes up to the user's home, or to the root where the way does not lead
//! through that. A folder with the sticky bit, such as `/tmp`, lets nobody touch what is another's.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::{LoadError, Step};
use super::group::OwnGroup;

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// So many files and folders are looked at below a plugin's folder. A plugin has a handful; a crate with all that was built of it
/// must not hold up every command.
const MOST: usize = 10_000;

/// What is wrong with a file or folder, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// What is wrong.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) hint: String,
}

impl Flaw {
    fn unseen(path: &Path, error: &io::Error) -> Self {
        let reason = format!("failed to look at `{}`: {error}", path.display());
        Self { reason, hint: "check its permissions".into() }
    }

    fn of(self, plugin: &str) -> LoadError {
        LoadError::new(plugin, Step::Permissions, self.reason, self.hint)
    }
}

/// Checks the `folder` of `plugin`, which must be without links, the folders above it, and all in it.
pub(super) fn check_folder(plugin: &str, folder: &Path) -> Result<(), LoadError> {
    check(plugin, folder)?;
    check_way(plugin, folder)?;
    check_below(plugin, folder)
}

/// Checks one file or folder of `plugin`.
pub(super) fn check(plugin: &str, path: &Path) -> Result<(), LoadError> {
    let flaw = match fs::metadata(path) {
        Ok(meta) => {
            let folder = if meta.is_dir() { path } else { path.parent().unwrap_or(path) };
            flaw(path, &meta, &OwnGroup::default(), Kind::In(folder))
        }
        Err(error) => Some(Flaw::unseen(path, &error)),
    };
    flaw.map_or(Ok(()), |flaw| Err(flaw.of(plugin)))
}

fn check_way(plugin: &str, folder: &Path) -> Result<(), LoadError> {
    let above = folder.parent().and_then(flaw_on_the_way);
    above.map_or(Ok(()), |flaw| Err(flaw.of(plugin)))
}

/// Files that the manifest does not name count as well: the plugin may read them.
fn check_below(plugin: &str, folder: &Path) -> Result<(), LoadError> {
    let (whole, group) = (Kind::In(folder), OwnGroup::default());
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        // What this user cannot list, the plugin cannot read.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST {
                tracing::debug!(plugin, "not all of the plugin's folder was looked at: it is too large");
                return Ok(());
            }
            // Of a link nobody asks for the mode, and what it leads to lies in the folder, or is no part of the plugin.
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_dir() && !meta.is_file() {
                continue;
            }
            let path = entry.path();
            if let Some(flaw) = flaw(&path, &meta, &group, whole) {
                return Err(flaw.of(plugin));
            }
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// Returns what is wrong with a folder or one of those above it, the lowest first. `folder` must be without links.
pub(crate) fn flaw_on_the_way(folder: &Path) -> Option<Flaw> {
    let group = OwnGroup::default();
    let home = dirs::home_dir().and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| folder.starts_with(home));
    let way = folder.ancestors().take_while(|path| home.as_ref().is_none_or(|home| path.starts_with(home)));
    way.into_iter().find_map(|path| match fs::metadata(path) {
        Ok(meta) => flaw(path, &meta, &group, Kind::Above),
        Err(error) => Some(Flaw::unseen(path, &error)),
    })
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    /// This folder of a plugin, or something in it: whoever mends that mends all of it.
    In(&'a Path),
    /// A folder above.
    Above,
}

/// Returns what is wrong with one file or folder.
fn flaw(path: &Path, meta: &Metadata, group: &OwnGroup, kind: Kind<'_>) -> Option<Flaw> {
    let own = rustix::process::geteuid().as_raw();
    let shown = path.display();
    let (option, mended) = match kind {
        Kind::In(folder) => ("-R ", folder),
        Kind::Above => ("", path),
    };
    let run = |command: &str, to: &str| format!("`{command} {option}{to} '{}'`", mended.display());
    if meta.uid() != own && meta.uid() != 0 {
        let reason = format!("`{shown}` belongs to another user (uid {})", meta.uid());
        return Some(Flaw {
            reason,
            hint: format!("if you trust it, make it yours: {}", run("chown", &own.to_string())),
        });
    }
    let by_group = meta.mode() & WRITABLE_BY_GROUP != 0 && !group.is_private(meta.gid());
    let by_others = meta.mode() & WRITABLE_BY_OTHERS != 0;
    let is_shared = kind == Kind::Above && meta.mode() & STICKY != 0;
    if (by_group || by_others) && !is_shared {
        let reason = format!("others may write to `{shown}` (mode {:o})", meta.mode() & 0o7777);
        return Some(Flaw { reason, hint: format!("run {}", run("chmod", "go-w")) });
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let private = OwnGroup::default().is_private(dir.path().metadata().unwrap().gid());
        for (bits, good) in [(0o700, true), (0o755, true), (0o775, private), (0o757, false), (0o1777, false)]
        {
            mode(dir.path(), bits);
            assert_eq!(check("p", dir.path()).is_ok(), good, "{bits:o}");
        }
        let error = check("p", dir.path()).unwrap_err();
        assert_eq!(error.hint, format!("run `chmod -R go-w '{}'`", dir.path().display()));
    }

    #[test]
    fn the_folders_above_count_unless_they_are_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (open, folder) = (dir.join("open"), dir.join("open/inner/plugin"));
        fs::create_dir_all(&folder).unwrap();
        mode(&dir.join("open/inner"), 0o755);
        for (bits, good) in [(0o755, true), (0o757, false), (0o1777, true)] {
            mode(&open, bits);
            assert_eq!(check_way("p", &folder).is_ok(), good, "{bits:o}");
        }
        mode(&open, 0o757);
        assert_eq!(
            check_way("p", &folder).unwrap_err().hint,
            format!("run `chmod go-w '{}'`", open.display())
        );
        // Only those above.
        mode(&open, 0o755);
        mode(&folder, 0o777);
        assert_eq!(check_way("p", &folder), Ok(()));
    }

    #[test]
    fn all_in_the_folder_counts_and_links_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plugin");
        fs::create_dir_all(folder.join("a/b")).unwrap();
        let (outside, file) = (dir.path().join("outside"), folder.join("a/b/file"));
        fs::write(&outside, "").unwrap();
        fs::write(&file, "").unwrap();
        mode(&outside, 0o666);
        symlink(&outside, folder.join("link")).unwrap();
        for (path, bad) in [(folder.join("a"), 0o757), (folder.join("a/b"), 0o1777), (file, 0o646)] {
            mode(&path, 0o755);
            assert_eq!(check_below("p", &folder), Ok(()));
            mode(&path, bad);
            let error = check_below("p", &folder).unwrap_err();
            assert!(error.reason.contains(&format!("`{}`", path.display())), "{error}");
            mode(&path, 0o755);
        }
    }
}
