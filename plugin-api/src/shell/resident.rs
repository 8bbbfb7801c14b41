//! A shell that is there already.
//!
//! Most of what a command costs is the start of its shell. So a session that runs more than one command keeps a bash which has that
//! behind it, the *resident*, which makes copies of itself (`resident/builtin.rs` says how). One of them, the *spare*, stands
//! ready and takes the next command, while the resident makes another. A copy is a process like any other: a child of ours, with its own id, session, descriptors and end; the resident runs no command, so
//! none can spoil it. It is only a way to be quick. Whatever it cannot do (a variable that drives the loader, a shell that is not bash, a
//! system that forbids one of the steps), and whenever it is not there, a shell is started as ever; the two are
//! told apart by nothing but time.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, recv, sendmsg, shutdown, socketpair,
};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitId, WaitIdOptions, getrlimit, pidfd_open, pidfd_send_signal,
    waitid,
};

use super::boot::{self, quote};
use super::cgroup::Cgroup;
use super::channel::Script;
use super::environ::{MARK, Variables};
use super::prelude;
use super::remember::is_identifier;
use super::session_cgroups::Lent;
use super::spawn::{Spawn, spawn};
use super::state::SessionState;
use super::transport::{Process, Shell};

/// The builtin, as `build.rs` has made it; empty where it could not.
const BUILTIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/resident.so"));

/// As in `resident/builtin.rs`.
const MAGIC: u32 = 0x484f_5354;
const TERMINAL: u32 = 1;
const LONGEST_MARK: usize = 504;

/// The descriptor on which a copy has its record: as in `resident/builtin.rs`, which closes it for programs, and as in `boot.rs`.
pub(super) const RECORD: u64 = 99;

/// How much of the mark's room a call of ours needs.
const ROOM_FOR_MARK: usize = 96;

/// How long a spare may take to be there, or to say its number when all is over. It takes a fifth of a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// More changes than these are worth a new resident.
const MOST_CHANGES: usize = 64;

/// Variables that bash does not take from its environment, or that cannot be changed in a shell that runs.
const NOT_TO_BE_CHANGED: [&str; 16] = [
    "BASHOPTS",
    "BASH_VERSINFO",
    "BASHPID",
    "EUID",
    "IFS",
    "LINENO",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PPID",
    "PS4",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
    "BASH_COMPAT",
];

/// The variable that `cd` sets.
const OLD: &str = "OLDPWD";

/// Why there is no copy.
#[derive(Debug)]
pub(super) enum NoCopy {
    /// There is none yet, or it cannot serve this call. Nothing was asked of it.
    NotNow,
    /// It has not answered as it should, and is of no more use. It may have made a copy all the same.
    Broken,
}

/// A bash that makes copies of itself.
pub(super) struct Resident {
    /// On it a copy says its number, and takes one request.
    requests: OwnedFd,
    process: Process,
    /// Whether there ever was a spare.
    ready: bool,
    /// The environment that it was started with, its mark aside.
    variables: Variables,
    /// Whose functions, aliases and options it has.
    state: Arc<SessionState>,
    /// Marks that every call of ours carries in front of its own, and the length of the whole value.
    outer: Vec<u8>,
    room: usize,
    /// Where it makes a cgroup for each copy.
    cgroups: Option<Lent>,
}

impl Resident {
    /// Starts one for a session that stands as `state` says. It is not waited for: whoever asks too early is told so.
    pub(super) fn start(
        shell: &Shell,
        variables: &Variables,
        outer: Option<&OsStr>,
        state: &Arc<SessionState>,
        cgroups: Option<Lent>,
    ) -> io::Result<Self> {
        let room = getrlimit(Resource::Nofile).current.is_none_or(|most| most > RECORD);
        if BUILTIN.is_empty() || !shell.is_bash || !room {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut library = File::from(memfd_create("hostel-resident", MemfdFlags::CLOEXEC)?);
        library.write_all(BUILTIN)?;
        let script = Script::new(Some(&prelude::text(state)), "")?;
        let (requests, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let (wake, ring) = io::pipe()?;
        let outer = outer.map(|outer| [outer.as_bytes(), b":"].concat()).unwrap_or_default();
        let room = outer.len() + ROOM_FOR_MARK;
        if room >= LONGEST_MARK {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut mark = outer.clone();
        mark.resize(room, b':');
        let own: Variables = variables
            .iter()
            .filter(|(name, _)| *name != MARK)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut env: Vec<(OsString, OsString)> =
            own.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        env.push((MARK.into(), OsString::from_vec(mark)));
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let places = cgroups.as_ref().map(|cgroups| cgroups.opened.as_fd());
        let process = spawn(&Spawn {
            program: &shell.path,
            argv: &boot::resident_argv(shell, cgroups.as_ref().map(|cgroups| cgroups.prefix.as_str())),
            env: &env,
            cwd: Path::new("/"),
            descriptors: [
                null.as_fd(),
                null.as_fd(),
                null.as_fd(),
                script.as_fd(),
                library.as_fd(),
                wake.as_fd(),
                ring.as_fd(),
                theirs.as_fd(),
            ]
            .into_iter()
            .chain(places)
            .collect(),
            terminal: false,
            cgroup: None,
        })
        .map_err(|failed| failed.error)?;
        let state = Arc::clone(state);
        Ok(Self { requests, process, ready: false, variables: own, state, outer, room, cgroups })
    }

    /// Returns whether it has ended, and was not waited for.
    pub(super) fn has_ended(&self) -> bool {
        readable(self.process.pidfd.as_fd(), Duration::ZERO)
    }

    /// Returns a descriptor that becomes readable when it ends.
    pub(super) fn end(&self) -> io::Result<OwnedFd> {
        self.process.pidfd.try_clone()
    }

    /// Returns whether it has the functions, aliases and options that a command of this session is to find.
    pub(super) fn knows(&self, state: &Arc<SessionState>) -> bool {
        Arc::ptr_eq(&self.state, state)
            || (self.state.functions == state.functions
                && self.state.aliases == state.aliases
                && self.state.options == state.options)
    }

    /// Returns what a copy must be told before the command, so that it has these variables and stands in `cwd`. None where a
    /// copy cannot be brought there.
    pub(super) fn prelude(&self, variables: &Variables, mark: &OsStr, cwd: &Path) -> Option<Vec<u8>> {
        let settled = |name: &OsStr| [MARK, "PWD", OLD].iter().any(|own| name == *own);
        let differs = |(name, value): &(&OsString, &OsString)| {
            self.variables.get(*name) != Some(value) && !settled(name)
        };
        let set: Vec<_> = variables.iter().filter(differs).collect();
        let gone = self.variables.keys().filter(|name| !variables.contains_key(*name) && !settled(name));
        let gone: Vec<_> = gone.collect();
        let mut changed = set.iter().map(|(name, _)| *name).chain(gone.iter().copied());
        if set.len() + gone.len() > MOST_CHANGES || !changed.all(|name| can_change(name)) {
            return None;
        }
        let mut text = b"{ \\builtin cd -- ".to_vec();
        text.extend_from_slice(quote(cwd.as_os_str()).as_bytes());
        text.extend_from_slice(b" || \\builtin exit 125\n\\builtin unset -v ");
        text.extend_from_slice(OLD.as_bytes());
        for name in gone {
            text.push(b' ');
            text.extend_from_slice(name.as_bytes());
        }
        // Each by itself: under `set -k`, an assignment behind a command is no argument of it.
        let set = set.into_iter().map(|(name, value)| (name.as_os_str(), Some(value.as_os_str())));
        // A fresh shell exports this one also where it has no value.
        let old = (OsStr::new(OLD), variables.get(OsStr::new(OLD)).map(OsString::as_os_str));
        let all: Vec<_> = set.chain([old, (OsStr::new(MARK), Some(mark))]).collect();
        text.push(b'\n');
        for (name, value) in all.iter().filter_map(|(name, value)| value.map(|value| (name, value))) {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(quote(value).as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(b"\n\\builtin export");
        for (name, _) in all {
            text.push(b' ');
            text.extend_from_slice(name.as_bytes());
        }
        text.extend_from_slice(b"\n} 2>/dev/null");
        Some(text)
    }

    /// Gives the spare these descriptors: input, output, errors, script, record. `mark` is what its processes carry. Returns it, and the
    /// cgroup that it is in.
    pub(super) fn copy(
        &mut self,
        mark: &str,
        terminal: bool,
        descriptors: [BorrowedFd<'_>; 5],
    ) -> Result<(Process, Option<Cgroup>), NoCopy> {
        let mut carried = [self.outer.as_slice(), mark.as_bytes()].concat();
        if carried.len() > self.room {
            return Err(NoCopy::NotNow);
        }
        let marks = carried.len();
        carried.resize(self.room, b':');
        carried.resize(LONGEST_MARK, 0);
        // The first one takes as long as a shell takes to start, and is not waited for.
        let limit = if self.ready { PATIENCE } else { Duration::ZERO };
        let Some((spare, cgroup)) = self.spare(limit)? else {
            return Err(if self.ready { NoCopy::Broken } else { NoCopy::NotNow });
        };
        self.ready = true;
        if let Some(cgroup) = &cgroup {
            // Before there is anything in it that others must find. Without a label it is still found by us.
            let _ = cgroup.label(&carried[..marks]);
        }
        let flags = if terminal { TERMINAL } else { 0 };
        let header = [MAGIC.to_ne_bytes(), flags.to_ne_bytes()].concat();
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let parts = [IoSlice::new(&header), IoSlice::new(&carried)];
        if retry_on_intr(|| sendmsg(&self.requests, &parts, &mut control, SendFlags::NOSIGNAL)).is_err() {
            dismiss(&spare, cgroup);
            return Err(NoCopy::Broken);
        }
        Ok((spare, cgroup))
    }

    /// Takes the spare, once it has said its number and that of its cgroup. None if there is none in time.
    fn spare(&self, limit: Duration) -> Result<Option<(Process, Option<Cgroup>)>, NoCopy> {
        if !readable(self.requests.as_fd(), limit) {
            return Ok(None);
        }
        let mut bytes = [[0; 4]; 2];
        loop {
            match recv(&self.requests, bytes.as_flattened_mut(), RecvFlags::empty()) {
                Ok((8, _)) => break,
                // The latter is told once, before what was said: somebody has ended without reading what was sent to it.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                _ => return Err(NoCopy::Broken),
            }
        }
        let (number, cgroup) = (i32::from_ne_bytes(bytes[0]), u32::from_ne_bytes(bytes[1]));
        let cgroup = self.cgroups.as_ref().filter(|_| cgroup > 0).map(|cgroups| cgroups.cgroup(cgroup));
        let pid = Pid::from_raw(number).filter(|_| number > 0).ok_or(NoCopy::Broken)?;
        // It is a child of ours that nobody has waited for, so its number is still its own.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| NoCopy::Broken)?;
        let spare = Process { pid, pidfd };
        if readable(spare.pidfd.as_fd(), Duration::ZERO) {
            // It has ended: nothing was asked of it for long, or somebody has killed it.
            dismiss(&spare, cgroup);
            return Err(NoCopy::Broken);
        }
        Ok(Some((spare, cgroup)))
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // It may be stopped, and would not notice that we are gone.
        kill(&self.process);
        // A spare hears of it here, and has said its number, or does so before it ends: then the socket has no other end.
        let _ = shutdown(&self.requests, Shutdown::Write);
        while let Ok(Some((spare, cgroup))) = self.spare(PATIENCE) {
            dismiss(&spare, cgroup);
        }
    }
}

/// Ends a process that runs no command, and reaps it.
fn kill(process: &Process) {
    let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
    let _ = retry_on_intr(|| waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED));
}

/// Ends a spare, and removes its cgroup.
fn dismiss(spare: &Process, cgroup: Option<Cgroup>) {
    kill(spare);
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
}

/// Returns whether something can be read within `limit`, or there is nothing that ever could.
fn readable(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap_or_default();
        match poll(&mut fds, Some(&left)) {
            // A signal that the host catches, such as that of every child's end, says nothing about this one.
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Returns whether a shell that runs can be given another value of this variable, and be as one that was started with it. The
/// loader reads its own only when a program starts, and a shell takes functions from its environment only then.
fn can_change(name: &OsStr) -> bool {
    let read_once =
        ["LD_", "GLIBC_", "BASH_FUNC_"].iter().any(|own| name.as_bytes().starts_with(own.as_bytes()));
    let starts_well = name.as_bytes().first().is_some_and(|byte| !byte.is_ascii_digit());
    starts_well && !read_once && is_identifier(name) && !NOT_TO_BE_CHANGED.iter().any(|fixed| name == *fixed)
}
