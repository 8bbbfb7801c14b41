//! Where tests can make cgroups, if they can.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the folder of this process's cgroup, of version 2. None where there is none.
pub(crate) fn seen() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(Path::new(mount.split(' ').nth(4)?).join(own))
}

/// Returns it where more can be made in it.
pub(crate) fn writable() -> Option<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let folder = seen()?;
    let trial =
        folder.join(format!("trial-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial)).is_ok().then_some(folder)
}

macro_rules! cgroup_or_skip {
    () => {{
        let Some(folder) = crate::cgroup::writable() else {
            // Nothing that could be installed: it is for the machine to allow.
            eprintln!(
                "SKIPPED: no cgroup of version 2 can be made here; run as root with a writable /sys/fs/cgroup"
            );
            return;
        };
        folder
    }};
}
