//! The cgroups of one session's calls, from their making to their removal.
//!
//! Each costs some ten microseconds to make and to remove, which a command shall not wait for. So that of a shell that is started is made
//! before it, which is little beside its start; those of copies are made by the resident shell while nobody waits; and one is removed
//! while a later command runs already. It can be removed only when nobody is in it, so what lives on in the background keeps it. Then it
//! goes when a later session of any process of the host ends and finds it empty, or with what is in it when the environment is
//! cleaned up.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::cgroup::{self, Cgroup, Owner};
use super::launch::random;
use super::spawn::birth_in_cgroups_may_be_possible;
use super::stat::started;

/// How many folders each call tries to remove: one more than it leaves behind.
const TRIES: usize = 2;

/// The number of the next session. A process that becomes another program keeps its id and its start, but not what it has counted: so
/// it begins anywhere.
static NEXT: LazyLock<AtomicU32> =
    LazyLock::new(|| AtomicU32::new(u32::try_from(random() >> 32).unwrap_or(0)));

/// The sessions of this process that have cgroups.
static SESSIONS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn own_id() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cgroups of a session's calls.
#[derive(Debug)]
pub(super) struct SessionCgroups {
    /// The cgroup in which they are made.
    parent: PathBuf,
    owner: Owner,
    made: AtomicU32,
    /// Whether making one has failed.
    failed: AtomicBool,
    /// Those whose shell was started, and that have not been removed.
    left: Mutex<VecDeque<Cgroup>>,
}

impl SessionCgroups {
    /// Makes ready for those of a session whose cgroups are in that of this process. None where there can be none.
    pub(super) fn new() -> Option<Self> {
        let parent = cgroup::own().filter(|folder| cgroup::may_hold_more(folder))?;
        let since = started(own_id())?;
        let session = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&SESSIONS).insert(session);
        let owner = Owner { process: own_id(), since, session };
        Some(Self {
            parent,
            owner,
            made: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            left: Mutex::default(),
        })
    }

    /// Makes one for a call whose processes carry `marks`, and opens it. None where that fails.
    pub(super) fn make(&self, marks: &[u8]) -> Option<(Cgroup, OwnedFd)> {
        if self.has_failed() {
            return None;
        }
        let cgroup = Cgroup::at(self.parent.join(format!("{}{}", self.owner.prefix(), self.number())));
        let made = cgroup.make().and_then(|()| {
            // Without a label it is still found by us.
            let _ = cgroup.label(marks);
            cgroup.open().inspect_err(|_| _ = cgroup.remove())
        });
        if let Err(error) = &made {
            tracing::debug!(%error, "no cgroup could be made in `{}`", self.parent.display());
            self.failed.store(true, Ordering::Relaxed);
        }
        made.ok().map(|opened| (cgroup, opened))
    }

    /// Returns whether it is of no use to try again.
    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || !birth_in_cgroups_may_be_possible()
    }

    fn number(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets somebody else make cgroups for this session: returns the folder for them, and how their names must begin.
    pub(super) fn lend(&self) -> Option<Lent> {
        if self.has_failed() {
            return None;
        }
        let opened = Cgroup::at(self.parent.clone()).open().ok()?;
        let prefix = format!("{}r{}.", self.owner.prefix(), self.number());
        Some(Lent { parent: self.parent.clone(), opened, prefix })
    }

    /// Has one removed once nobody is in it.
    pub(super) fn leave(&self, cgroup: Cgroup) {
        lock(&self.left).push_back(cgroup);
    }

    /// Removes some of those that were left, if nobody is in them.
    pub(super) fn tidy(&self) {
        let first: Vec<Cgroup> = {
            let mut left = lock(&self.left);
            let count = left.len().min(TRIES);
            left.drain(..count).collect()
        };
        for cgroup in first {
            if !cgroup.remove() {
                self.leave(cgroup);
            }
        }
    }

    /// Removes the cgroups beside ours in which nobody is, and whose session has ended, in whatever process it was.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.parent) else { return };
        // Asked of each only once its folder was seen: whoever makes one has said so before.
        let lives = |owner: &Owner| {
            if owner.process == self.owner.process && owner.since == self.owner.since {
                lock(&SESSIONS).contains(&owner.session)
            } else {
                started(owner.process) == Some(owner.since)
            }
        };
        for entry in entries.flatten() {
            if Owner::parse(&entry.file_name()).is_some_and(|owner| !lives(&owner)) {
                Cgroup::at(entry.path()).remove();
            }
        }
    }
}

impl Drop for SessionCgroups {
    fn drop(&mut self) {
        lock(&SESSIONS).remove(&self.owner.session);
        self.sweep();
    }
}

/// What it takes to make cgroups for a session.
#[derive(Debug)]
pub(super) struct Lent {
    parent: PathBuf,
    pub(super) opened: OwnedFd,
    pub(super) prefix: String,
}

impl Lent {
    /// Returns the one that was made with this number.
    pub(super) fn cgroup(&self, number: u32) -> Cgroup {
        Cgroup::at(self.parent.join(format!("{}{number}", self.prefix)))
    }
}
