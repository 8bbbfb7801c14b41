//! Who may write to a plugin's files: nobody but the user and root, or the host would run what others put there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::{LoadError, Step};

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// Checks one file or folder of `plugin`.
pub(super) fn check(plugin: &str, path: &Path) -> Result<(), LoadError> {
    let failed = |reason: String, hint: String| Err(LoadError::new(plugin, Step::Permissions, reason, hint));
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            let reason = format!("failed to look at `{}`: {error}", path.display());
            return failed(reason, "check its permissions".into());
        }
    };
    let own = rustix::process::geteuid().as_raw();
    if meta.uid() != own && meta.uid() != 0 {
        let reason = format!("`{}` belongs to another user (uid {})", path.display(), meta.uid());
        return failed(reason, format!("if you trust it, make it yours: `chown {own} '{}'`", path.display()));
    }
    let group = if is_private_group(meta.gid()) { 0 } else { WRITABLE_BY_GROUP };
    if meta.mode() & (group | WRITABLE_BY_OTHERS) != 0 {
        let reason = format!("others may write to `{}` (mode {:o})", path.display(), meta.mode() & 0o7777);
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        return failed(reason, format!("run `chmod -R go-w '{}'`", folder.display()));
    }
    Ok(())
}

/// Returns whether a group is that of this user alone, which has the user's own number where each user has one. Its members
/// may write to all that is made under a umask of 002, and are nobody else.
fn is_private_group(group: u32) -> bool {
    let (user, own) = (rustix::process::geteuid(), rustix::process::getegid());
    !user.is_root() && group == own.as_raw() && user.as_raw() == own.as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, good) in [(0o700, true), (0o755, true), (0o775, false), (0o757, false), (0o1777, false)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check("p", dir.path()).is_ok(), good, "{mode:o}");
        }
        let error = check("p", dir.path()).unwrap_err();
        assert!(error.hint.starts_with("run `chmod -R go-w"), "{error:?}");
    }
}
