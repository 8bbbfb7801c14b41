//! The files that a permission means, found without following a link that the plugin could have laid.
//!
//! A plugin may be allowed a path and be able to write to a folder on the way to it. Were links there followed, it would choose by
//! itself what it is allowed at its next start.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

/// As many links as a kernel follows.
const LINKS: usize = 40;

/// A file or folder that rules can be made for.
pub(super) struct Granted {
    pub(super) fd: OwnedFd,
    pub(super) is_folder: bool,
}

/// Opens `path`, of which no link may lie in one of `zones`: the folders that the plugin can write to. None if it is not there,
/// or leads through such a link.
///
/// Nor is a link to the root followed: all files are granted by that name only.
pub(super) fn open(path: &Path, zones: &[PathBuf]) -> Option<Granted> {
    let fd = match without_links(path) {
        Ok(fd) => fd,
        Err(Errno::LOOP) => {
            let real = resolve(path, zones).filter(|real| *real != Path::new("/"))?;
            // Whatever was exchanged since: no link is followed now.
            without_links(&real).ok()?
        }
        Err(_) => return None,
    };
    let mode = fstat(&fd).ok()?.st_mode;
    Some(Granted { fd, is_folder: rustix::fs::FileType::from_raw_mode(mode).is_dir() })
}

fn without_links(path: &Path) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Follows the links of `path` that the plugin cannot have made.
fn resolve(path: &Path, zones: &[PathBuf]) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > LINKS || zones.iter().any(|zone| real.starts_with(zone)) {
                    tracing::warn!(path = %path.display(), link = %next.display(), "a permission is not granted: the plugin could have laid a link on the way to it");
                    return None;
                }
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(part);
                }
            }
            Err(_) => real = next,
        }
    }
    Some(real)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_but_not_those_that_lie_where_the_plugin_writes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (zone, user) = (dir.join("zone"), dir.join("user"));
        fs::create_dir(&zone).unwrap();
        fs::create_dir(&user).unwrap();
        fs::write(user.join("file"), "x").unwrap();
        symlink("user", dir.join("mine")).unwrap();
        symlink(user.join("file"), zone.join("planted")).unwrap();
        symlink("../zone/planted", user.join("detour")).unwrap();
        symlink("loop", dir.join("loop")).unwrap();
        let zones = [zone.clone()];
        assert_eq!(resolve(&dir.join("mine/file"), &zones), Some(user.join("file")));
        assert!(open(&dir.join("mine/file"), &zones).is_some_and(|granted| !granted.is_folder));
        assert!(open(&zone, &zones).is_some_and(|granted| granted.is_folder));
        for path in ["zone/planted", "user/detour", "loop", "user/missing"] {
            assert!(open(&dir.join(path), &zones).is_none(), "{path}");
        }
        symlink("/", dir.join("all")).unwrap();
        assert!(open(&dir.join("all"), &[]).is_none() && open(Path::new("/"), &[]).is_some());
        // The same link is nobody's trap where the plugin cannot write.
        assert!(open(&zone.join("planted"), &[]).is_some());
    }
}
