//! One cgroup, as the kernel shows it in files.
//!
//! A process can clear its environment, leave its session and lose its parents; what it cannot leave without the right to do so is its
//! cgroup, and its children are born in the same one. So each call has one of its own, where this process may make any: a folder
//! below the cgroup that this process itself is in. The folder's name says which process of the host made it, and an extended
//! attribute which call it is for, so that also another process of the host finds what is left of a call. It sets no limits.
//!
//! Only version 2 will do, since Linux 5.7. Where it is not mounted, or not ours to write to, there are none, and the other marks of
//! a call have to suffice.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, Mode, OFlags, XattrFlags, access, getxattr, open, setxattr};
use rustix::io::Errno;

/// The attribute that holds what the processes of a folder's call carry as their mark.
const LABEL: &str = "user.hostel.call";

/// The longest label that is read.
const LONGEST_LABEL: usize = 4096;

/// How the names of all folders of calls begin.
const PREFIX: &str = "hostel";

/// Deeper than this nobody nests cgroups, and a loop ends.
const DEEPEST: usize = 32;

/// A part of the kernel's tree of cgroups that can be seen here.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The folder where it is.
    point: PathBuf,
    /// Its own place in the tree.
    root: PathBuf,
}

/// Where cgroups can be seen. Empty where there is no version 2.
static MOUNTS: LazyLock<Vec<Mount>> =
    LazyLock::new(|| mounts(&fs::read("/proc/self/mountinfo").unwrap_or_default()));

/// Reads the mounts of version 2 from a list after `man 5 proc_pid_mountinfo`.
fn mounts(list: &[u8]) -> Vec<Mount> {
    let mount = |line: &[u8]| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        (*fields.get(dash + 1)? == b"cgroup2").then_some(())?;
        Some(Mount { root: unescaped(fields.get(3)?), point: unescaped(fields.get(4)?) })
    };
    list.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

/// Reads a path in which some bytes stand as `\OOO`.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// Returns the folder of the cgroup whose place in the tree is `path`.
fn folder(mounts: &[Mount], path: &Path) -> Option<PathBuf> {
    // One that lies outside of our namespace begins with `..`.
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // A later mount may cover an earlier one.
    mounts.iter().rev().filter(|_| plain).find_map(|mount| {
        let inside = path.strip_prefix(&mount.root).ok()?;
        Some(if inside == Path::new("") { mount.point.clone() } else { mount.point.join(inside) })
    })
}

/// Returns the folder of the cgroup of a process. None where it cannot be seen.
pub(super) fn of_process(id: i32) -> Option<PathBuf> {
    let mounts = LazyLock::force(&MOUNTS);
    if mounts.is_empty() {
        return None;
    }
    let text = fs::read(format!("/proc/{id}/cgroup")).ok()?;
    let path = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    folder(mounts, Path::new(OsStr::from_bytes(path)))
}

/// Returns the folder of this process's own cgroup. None where it cannot be seen.
pub(super) fn own() -> Option<PathBuf> {
    of_process(i32::try_from(std::process::id()).ok()?)
}

/// Returns whether cgroups may be made in this folder.
pub(super) fn may_hold_more(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() && folder.join("cgroup.procs").exists()
}

/// Whose a folder is: the process of the host that made it, and which of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) process: i32,
    /// When that was started.
    pub(super) since: u64,
    pub(super) session: u32,
}

impl Owner {
    /// Returns how the names of its folders begin.
    pub(super) fn prefix(&self) -> String {
        format!("{PREFIX}-{}-{}-{}-", self.process, self.since, self.session)
    }

    /// Reads it from the name of a folder. None if that is not a call's.
    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let mut parts = name.to_str()?.splitn(5, '-');
        (parts.next()? == PREFIX).then_some(())?;
        let owner = Self {
            process: parts.next()?.parse().ok()?,
            since: parts.next()?.parse().ok()?,
            session: parts.next()?.parse().ok()?,
        };
        parts.next().map(|_| owner)
    }
}

/// Returns the folders of calls in which a process of the cgroup `folder` is, the innermost first: a command may be a host itself.
pub(super) fn calls_around(folder: &Path) -> impl Iterator<Item = &Path> {
    folder.ancestors().filter(|folder| folder.file_name().is_some_and(|name| Owner::parse(name).is_some()))
}

/// Opens the cgroup in which nothing belongs to a call, for a process that shall outlive the command that starts it. None where this
/// process is in no call's cgroup, so that its children are in none either.
#[must_use]
pub fn outside_of_calls() -> Option<OwnedFd> {
    let own = own()?;
    let outermost = calls_around(&own).last()?;
    Cgroup::at(outermost.parent()?.to_owned()).open().ok()
}

/// One cgroup, which may be gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Makes it. Who may see that of the host may see it too: programs look there for their limits.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o755).create(&self.0)
    }

    /// Opens it as one into which a process can be born.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        Ok(open(&self.0, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Writes down for which call it is: `marks` is what the processes carry.
    pub(super) fn label(&self, marks: &[u8]) -> io::Result<()> {
        Ok(setxattr(&self.0, LABEL, marks, XattrFlags::empty())?)
    }

    /// Returns what the processes of its call carry. None where it was never said.
    pub(super) fn marks(&self) -> Option<Vec<u8>> {
        let mut marks = vec![0; LONGEST_LABEL];
        let length = getxattr(&self.0, LABEL, &mut marks).ok()?;
        marks.truncate(length);
        Some(marks)
    }

    /// Returns whether the cgroup `folder` is this one or below it.
    pub(super) fn holds(&self, folder: &Path) -> bool {
        folder.starts_with(&self.0)
    }

    /// Returns the processes in it and below it.
    pub(super) fn members(&self) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        self.collect(&mut found, DEEPEST);
        found
    }

    fn collect(&self, found: &mut BTreeSet<i32>, depth: usize) {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        // Zero stands for one that our namespace does not show.
        found.extend(text.lines().filter_map(|line| line.parse().ok()).filter(|id: &i32| *id > 0));
        if depth > 0 {
            for inner in self.inner() {
                inner.collect(found, depth - 1);
            }
        }
    }

    /// Returns those directly below it.
    fn inner(&self) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| Self(entry.path())).collect()
    }

    /// Has the kernel kill all in it and below it, also those that are born meanwhile. Since Linux 5.14.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Removes it, and what a command may have made below it, if nobody is in there. Returns whether it is gone.
    pub(super) fn remove(&self) -> bool {
        self.remove_to(DEEPEST)
    }

    fn remove_to(&self, depth: usize) -> bool {
        match rustix::fs::rmdir(&self.0) {
            Ok(()) | Err(Errno::NOENT | Errno::NODEV) => true,
            Err(Errno::BUSY) if depth > 0 && self.is_empty_within(Duration::ZERO) => {
                self.inner().iter().all(|inner| inner.remove_to(depth - 1))
                    && rustix::fs::rmdir(&self.0).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Returns whether nobody is in it or below it, now or within the time given.
    pub(super) fn is_empty_within(&self, limit: Duration) -> bool {
        // Who opens it can wait for it to change after having read it.
        let Ok(events) = File::open(self.0.join("cgroup.events")) else { return true };
        let until = Instant::now() + limit;
        loop {
            let mut text = [0; 256];
            // It is gone if this fails.
            let Ok(length) = events.read_at(&mut text, 0) else { return true };
            if text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 0") {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&events, PollFlags::PRI)];
            let waited = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
            if left.is_zero() || waited.is_err_and(|error| error != Errno::INTR) {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 /docker/a\\040b /sys/fs/cgroup/uni\\134fied rw,relatime shared:4 - cgroup2 cgroup2 rw
";

    #[test]
    fn the_folder_of_a_cgroup_is_found_below_its_mount() {
        let mounts = mounts(LIST);
        let (point, root) = ("/sys/fs/cgroup/uni\\fied".into(), "/docker/a b".into());
        assert_eq!(mounts, [Mount { point, root }]);
        let find = |path: &str| folder(&mounts, Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(find("/docker/a b").as_deref(), Some("/sys/fs/cgroup/uni\\fied"));
        assert_eq!(find("/docker/a b/c").as_deref(), Some("/sys/fs/cgroup/uni\\fied/c"));
        assert_eq!(find("/docker/other"), None);
        assert_eq!(find("/docker/a b/../other"), None);
        assert_eq!(folder(&super::mounts(b"31 23 0:28 / /x rw - cgroup cgroup rw"), Path::new("/")), None);
    }

    #[test]
    fn the_names_of_calls_folders_are_told_from_others() {
        let owner = Owner { process: 7, since: 8, session: 9 };
        assert_eq!(Owner::parse(OsStr::new(&format!("{}r1.2", owner.prefix()))), Some(owner));
        for other in ["hostel-7-8-9", "hostel-7-8-x-1", "hotel-7-8-9-1", "user.slice", "hostel.service"] {
            assert_eq!(Owner::parse(OsStr::new(other)), None, "{other}");
        }
        let nested = format!("/c/a.slice/{0}1/own/{0}2/x", owner.prefix());
        let around: Vec<_> =
            calls_around(Path::new(&nested)).map(|path| path.display().to_string()).collect();
        assert_eq!(
            around,
            [format!("/c/a.slice/{0}1/own/{0}2", owner.prefix()), format!("/c/a.slice/{}1", owner.prefix())]
        );
    }
}
