//! Finds and signals every process that a call has started.
//!
//! A process group is not enough: `setsid` leaves it, and once the process in the middle has ended, a walk by parents
//! misses the grandchild as well. So each call carries a mark in its environment that every child inherits, and the members
//! are those who carry it, or who are in the session of the call's shell. A process that has both cleared its
//! environment and left the session is found by the call's cgroup; where there is none, as long as its parents live, and after that
//! where this process adopts orphans (`PR_SET_CHILD_SUBREAPER`) and runs no other call that it could belong to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::cgroup::{self, Cgroup, calls_around};
use super::environ::MARK;
use super::spawn::LIMITS_VARIABLE;
use super::stat::{Stat, processes, started};

/// The processes of one call.
#[derive(Debug)]
pub(super) struct Tree {
    mark: Mark,
    leader: i32,
    /// When the call began, for one that is running.
    since: Option<u64>,
    /// Whether the leader is a program in front of the shell.
    is_fronted: bool,
    /// That of a call that is running.
    cgroup: Option<Cgroup>,
    /// For others: the cgroups of calls that were seen, and whether they are of one that is meant.
    seen: RefCell<BTreeMap<PathBuf, bool>>,
}

/// The calls that run in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What processes carry that are looked for.
#[derive(Debug)]
enum Mark {
    /// This one.
    Whole(Vec<u8>),
    /// Any that begins so.
    Beginning(Vec<u8>),
}

impl Mark {
    fn is(&self, mark: &[u8]) -> bool {
        match self {
            Self::Whole(whole) => mark == whole,
            Self::Beginning(beginning) => mark.starts_with(beginning),
        }
    }

    /// Returns whether it is one of those that a process carries, with colons between them.
    fn is_among(&self, marks: &[u8]) -> bool {
        marks.split(|byte| *byte == b':').any(|mark| self.is(mark))
    }
}

/// One process, held so that its number cannot pass to another one.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: i32,
    /// None where there are no descriptors left; the number is then checked each time.
    pub(super) fd: Option<OwnedFd>,
    started: u64,
}

impl Tree {
    /// Makes the tree of the call that is marked `mark`, whose shell is `leader`, and which has a cgroup of its own, if that could be
    /// made. It began at `since`; None: when the leader was started. The shell must not be reaped while the tree is in use, as its number
    /// names the session.
    pub(super) fn new(mark: &str, leader: Pid, cgroup: Option<Cgroup>, since: Option<u64>) -> Self {
        let leader = leader.as_raw_nonzero().get();
        RUNNING.fetch_add(1, Ordering::SeqCst);
        let since = since.or_else(|| started(leader)).or(Some(u64::MAX));
        Self {
            mark: Mark::Whole(mark.into()),
            leader,
            since,
            is_fronted: false,
            cgroup,
            seen: RefCell::default(),
        }
    }

    /// The same, where the leader is a program in front of the shell, if `is_fronted`.
    pub(super) fn fronted(mut self, is_fronted: bool) -> Self {
        self.is_fronted = is_fronted;
        self
    }

    /// Returns those of `members` who are asked to end before they are killed. A program in front of the shell is not: it would end
    /// at once, and take with it whoever is still cleaning up.
    pub(super) fn asked<'a>(&self, members: &'a [Member]) -> impl Iterator<Item = &'a Member> {
        let spared = self.is_fronted.then_some(self.leader);
        members.iter().filter(move |member| Some(member.id) != spared)
    }

    /// Makes the tree of calls of any process, of which nothing is known but this.
    fn of_others(mark: Mark) -> Self {
        Self { mark, leader: NOBODY, since: None, is_fronted: false, cgroup: None, seen: RefCell::default() }
    }

    /// Returns the members that are alive now.
    pub(super) fn members(&self) -> Vec<Member> {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let mut found = BTreeSet::new();
        let mut processes = processes();
        for process in &processes {
            let id = process.id;
            if process.session == self.leader || self.is_marked(id) || self.is_in_cgroup(id) {
                found.insert(id);
            }
        }
        // Looked up last, and each by itself: one that was born after the list was made, to a parent that has ended since, is here only.
        let known: BTreeSet<i32> = processes.iter().map(|process| process.id).collect();
        for id in self.cgroups().iter().flat_map(Cgroup::members) {
            if found.insert(id) && !known.contains(&id) {
                processes.extend(Stat::read(id));
            }
        }
        let alone = RUNNING.load(Ordering::SeqCst) == 1;
        if let (Some(since), Some(adopter)) = (self.since.filter(|_| alone), adopter()) {
            let adopted = |process: &&Stat| process.parent == adopter && process.started >= since;
            let orphans = processes.iter().filter(adopted).map(|process| process.id);
            found.extend(orphans.filter(|id| is_bare(*id) && !is_in_another_call(*id)));
        }
        // Children that carry nothing: until a round adds none.
        loop {
            let more: Vec<i32> = processes
                .iter()
                .filter(|process| found.contains(&process.parent) && !found.contains(&process.id))
                .map(|process| process.id)
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        let alive = processes.iter().filter(|process| found.contains(&process.id) && process.id != own);
        let mut alive: Vec<Member> = alive.filter_map(hold).collect();
        // The shell before its children: it would tell of their end.
        alive.sort_by_key(|member| member.id != self.leader);
        alive
    }

    fn is_marked(&self, id: i32) -> bool {
        let environ = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0);
        let marks = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
        marks.is_some_and(|marks| self.mark.is_among(marks))
    }

    /// Returns whether a process is in the cgroup of a call that is meant.
    fn is_in_cgroup(&self, id: i32) -> bool {
        // That of a call that is running is known, and its processes are listed there.
        if self.since.is_some() {
            return false;
        }
        let Some(folder) = cgroup::of_process(id) else { return false };
        let is_meant = |folder: &Path| {
            let marks = Cgroup::at(folder.to_owned()).marks();
            marks.is_some_and(|marks| self.mark.is_among(&marks))
        };
        let mut seen = self.seen.borrow_mut();
        calls_around(&folder).any(|call| *seen.entry(call.to_owned()).or_insert_with(|| is_meant(call)))
    }

    /// Returns what stands in front of the call's shell: some of its descendants carry the mark, and neither it nor any of its ancestors.
    fn in_front(&self, members: &[Member]) -> BTreeSet<i32> {
        let marked: BTreeSet<i32> =
            members.iter().map(|member| member.id).filter(|id| self.is_marked(*id)).collect();
        let parent = |id: i32| Stat::read(id).map(|stat| stat.parent).filter(|id| *id > 1);
        let mut found = BTreeSet::new();
        for id in &marked {
            let above: Vec<i32> = std::iter::successors(parent(*id), |id| parent(*id)).collect();
            let first = above.iter().rposition(|id| marked.contains(id)).map_or(0, |last| last + 1);
            found.extend(&above[first..]);
        }
        found
    }

    /// Returns the cgroups that are known to be of a call that is meant.
    fn cgroups(&self) -> Vec<Cgroup> {
        let seen = self.seen.borrow();
        let others = seen.iter().filter(|(_, meant)| **meant).map(|(folder, _)| Cgroup::at(folder.clone()));
        others.chain(self.cgroup.clone()).collect()
    }

    /// Has the kernel kill whoever is in the call's cgroup, also those that are born faster than they are found.
    pub(super) fn kill_cgroups(&self) {
        self.beside_us().iter().for_each(Cgroup::kill);
    }

    /// Ends whoever is left in the call's cgroup although no member is seen: a process may have been born and its parent ended while it
    /// was looked for, or be one whose first thread has ended. Returns whether all are gone within the time given.
    pub(super) fn end_cgroups(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let cgroups = self.beside_us();
        let populated: Vec<_> =
            cgroups.iter().filter(|cgroup| !cgroup.is_empty_within(Duration::ZERO)).collect();
        for cgroup in &populated {
            cgroup.kill();
        }
        populated.iter().all(|cgroup| cgroup.is_empty_within(until.saturating_duration_since(Instant::now())))
    }

    /// Returns the cgroups to be ended. It may be the host within a call that ends it, and is to go on.
    fn beside_us(&self) -> Vec<Cgroup> {
        let mut cgroups = self.cgroups();
        let own = if cgroups.is_empty() { None } else { cgroup::own() };
        cgroups.retain(|cgroup| own.as_ref().is_none_or(|own| !cgroup.holds(own)));
        cgroups
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.since.is_some() {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Returns the process whose children become those below this process that have lost their parents: this one, or a worker's keeper.
fn adopter() -> Option<i32> {
    let adopter = if std::env::var_os(LIMITS_VARIABLE).is_some() {
        rustix::process::getppid()
    } else {
        rustix::process::child_subreaper().ok().flatten().map(|_| rustix::process::getpid())
    };
    adopter.map(|pid| pid.as_raw_nonzero().get())
}

/// Returns whether a process has no mark of any kind in its environment. Whose environment we may not see is none of our commands.
fn is_bare(id: i32) -> bool {
    let marked = |environ: Vec<u8>| {
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable.strip_prefix(MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")))
    };
    fs::read(format!("/proc/{id}/environ")).is_ok_and(|environ| !marked(environ))
}

/// Returns whether a process is in the cgroup of a call in which this one is not.
fn is_in_another_call(id: i32) -> bool {
    let innermost =
        |folder: Option<PathBuf>| folder.and_then(|folder| calls_around(&folder).next().map(Path::to_owned));
    innermost(cgroup::of_process(id)).is_some_and(|call| innermost(cgroup::own()) != Some(call))
}

/// Ends every process on this machine that carries a call's id as `HOSTEL_CALL` or is in its cgroup, and waits up to a second for them
/// to be gone. For a host whose provider has not done so.
pub fn end_call(call_id: &str) {
    end(&Tree::of_others(Mark::Whole(call_id.into())));
}

/// Ends every process on this machine that carries the id of a call which begins with `beginning`, or is in the cgroup of such a
/// call, as [`end_call`] does. Returns how many there were.
#[must_use]
pub fn end_calls(beginning: &str) -> usize {
    if beginning.is_empty() {
        return 0;
    }
    end(&Tree::of_others(Mark::Beginning(beginning.into())))
}

fn end(tree: &Tree) -> usize {
    let until = Instant::now() + Duration::from_secs(1);
    let mut ended = BTreeSet::new();
    loop {
        let members = tree.members();
        let left = until.saturating_duration_since(Instant::now());
        if members.is_empty() || left.is_zero() {
            let _ = tree.end_cgroups(left);
            for cgroup in tree.cgroups() {
                cgroup.remove();
            }
            return ended.len();
        }
        for member in &members {
            ended.insert(member.id);
            member.signal(Signal::KILL);
        }
        tree.kill_cgroups();
        // Who has children may have left some behind, so it is looked again once the first is gone.
        let mut fds: Vec<PollFd<'_>> = members
            .iter()
            .filter_map(|member| member.fd.as_ref())
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        // Without a descriptor there is nothing to wait for but time.
        let left = if fds.is_empty() { left.min(Duration::from_millis(10)) } else { left };
        let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
    }
}

/// Sends a signal to every process on this machine that carries a call's id as `HOSTEL_CALL` or is in its cgroup, and to what descends
/// from one that does. What a transport has put in front of the call's shell gets none: it would end the call in its own way. Returns how
/// many there were: none for a call that has ended, or for a number that is no signal.
#[must_use]
pub fn signal_call(call_id: &str, signal: i32) -> usize {
    let Some(signal) = Signal::from_named_raw(signal) else { return 0 };
    let tree = Tree::of_others(Mark::Whole(call_id.into()));
    let mut members = tree.members();
    let in_front = tree.in_front(&members);
    members.retain(|member| !in_front.contains(&member.id));
    for member in &members {
        member.signal(signal);
        if signal != Signal::STOP && signal != Signal::TSTP {
            // One that stands still would take it only once it goes on.
            member.signal(Signal::CONT);
        }
    }
    members.len()
}

/// No process has this number.
const NOBODY: i32 = -1;

impl Member {
    pub(super) fn signal(&self, signal: Signal) {
        // It may have ended in the meantime, which is what is wanted.
        let _ = match (&self.fd, Pid::from_raw(self.id)) {
            (Some(fd), _) => pidfd_send_signal(fd, signal),
            (None, Some(pid)) if Stat::read(self.id).is_some_and(|stat| stat.started == self.started) => {
                kill_process(pid, signal)
            }
            (None, _) => Ok(()),
        };
    }
}

/// Takes hold of a process, if it is still the same one.
fn hold(seen: &Stat) -> Option<Member> {
    let fd = match pidfd_open(Pid::from_raw(seen.id)?, PidfdFlags::empty()) {
        Ok(fd) => Some(fd),
        Err(rustix::io::Errno::SRCH) => return None,
        Err(_) => None,
    };
    let same = started(seen.id)? == seen.started;
    same.then_some(Member { id: seen.id, fd, started: seen.started })
}
