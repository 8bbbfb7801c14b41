//! Runs one process to its end: output, input and the clock side by side.
//!
//! Everything is waited for in one `poll`: the output, room for more input, the end of the process (its pidfd), and the
//! caller's cancellation. The end is the process's own, not end-of-file, since a child in the background may hold the pipe;
//! what stands in the pipe then is still read, and for a short while what comes after it.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_send_signal, waitid};

use super::drain::{DRAIN_IDLE, Output};
use super::feed::{Feed, is_passing};
use super::leftover::swallow;
use super::transport::Process;
use super::tree::{Member, Tree};
use super::untaken::{Again, Untaken, Waits};
use crate::{ExecIo, Flow};

/// Between a polite signal and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(1);

/// Between `SIGKILL` and giving up: only a process stuck in the kernel outlives this.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// How often a caller is asked whether it has cancelled who has no descriptor to say so.
const ASK: Duration = Duration::from_millis(100);

const BUFFER: usize = 256 * 1024;

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Interrupt,
}

/// What is known of a process that has ended.
#[derive(Debug)]
pub(super) enum End {
    /// What the kernel says.
    Status(WaitIdStatus),
    /// Somebody else has waited for it, so nothing: the host's `SIGCHLD` is ignored, or other code reaps all children.
    Unknown,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// How the process ended; nothing if it could not be killed.
    pub(super) end: Option<End>,
    /// Why it was killed, if it was.
    pub(super) cause: Option<Cause>,
    /// Members that could not be killed.
    pub(super) survivors: usize,
}

/// One running call.
pub(super) struct Call<'a> {
    pub(super) process: Process,
    pub(super) tree: Tree,
    pub(super) output: std::io::PipeReader,
    pub(super) feed: Option<Feed>,
    /// What must be kept until the process has taken its command, if it was there before that.
    pub(super) untaken: Option<Untaken<'a>>,
    pub(super) io: &'a dyn ExecIo,
}

/// Where the killing of a call stands.
struct Ending {
    cause: Cause,
    until: Instant,
    killed: bool,
    members: Vec<Member>,
}

impl Call<'_> {
    /// Runs the process to its end, and reaps it. Where it loses track of the process, it kills it, and one that was there before its command
    /// and has not taken that, too.
    pub(super) fn run(mut self) -> io::Result<Result<Finished, Again>> {
        let finished = self.attend();
        match &finished {
            Ok(Some(_)) => {}
            // It has started nothing.
            Ok(None) => self.signal_leader(&[], Signal::KILL),
            Err(_) => {
                let members = self.tree.members();
                for member in &members {
                    member.signal(Signal::KILL);
                }
                self.signal_leader(&members, Signal::KILL);
                self.tree.kill_cgroups();
            }
        }
        let Self { process, output, feed, untaken, .. } = self;
        reap(process.pidfd, matches!(&finished, Ok(Some(finished)) if finished.end.is_some()));
        match (finished?, untaken) {
            (Some(finished), _) => Ok(Ok(finished)),
            (None, Some(untaken)) => Ok(Err(Again { output, feed, streams: untaken.streams() })),
            (None, None) => Err(io::Error::other("nothing was kept of it")),
        }
    }

    /// Returns nothing where the process has not taken its command.
    fn attend(&mut self) -> io::Result<Option<Finished>> {
        rustix::io::ioctl_fionbio(&self.output, true)?;
        if let Some(feed) = &self.feed {
            rustix::io::ioctl_fionbio(&feed.pipe, true)?;
        }
        let mut buffer = vec![0; BUFFER];
        let mut output = Output::Open;
        let mut end = None;
        let mut ending: Option<Ending> = None;
        loop {
            let ready = self.wait(&output, end.is_some(), ending.as_ref())?;
            let now = Instant::now();
            if ready.output {
                match self.output.read(&mut buffer) {
                    Ok(0) => output = Output::Closed,
                    Ok(count) => {
                        let flow = self.io.output(&buffer[..count]);
                        // The taker may have been slow.
                        output.took(count, Instant::now());
                        if flow == Flow::Stop && ending.is_none() {
                            ending = Some(self.begin(Cause::Interrupt, now));
                        }
                    }
                    Err(error) if is_passing(&error) => {}
                    Err(_) => output = Output::Closed,
                }
            }
            if ready.input {
                self.feed = self.feed.take().and_then(Feed::send);
            }
            if ready.ended && end.is_none() {
                end = self.end()?;
                if end.is_some() && ending.is_none() && self.gives_up(true, now)? {
                    return Ok(None);
                }
                if end.is_some() {
                    self.feed = None;
                    if matches!(output, Output::Open) {
                        let owed = rustix::io::ioctl_fionread(&self.output).unwrap_or(0);
                        let owed = usize::try_from(owed).unwrap_or(0);
                        output = Output::Draining { owed, since: now, last: now };
                    }
                }
            }
            if ending.is_none() && end.is_none() {
                if self.gives_up(false, now)? {
                    return Ok(None);
                }
                if ready.cancelled || self.io.cancelled() {
                    ending = Some(self.begin(Cause::Interrupt, now));
                } else if self.io.deadline().is_some_and(|deadline| now >= deadline) {
                    ending = Some(self.begin(Cause::Timeout, now));
                }
            }
            match &mut ending {
                Some(stage) => {
                    if ready.member || ready.ended {
                        stage.refresh(&self.tree);
                    }
                    let gone = end.is_some() && stage.members.is_empty();
                    if gone || (stage.killed && now >= stage.until) {
                        break;
                    }
                    if now >= stage.until {
                        self.kill(stage, now);
                    }
                }
                None if end.is_some() && output.is_done(now) => break,
                None => {}
            }
        }
        self.drain(&mut buffer);
        if ending.is_none() && !matches!(output, Output::Closed) {
            swallow(&self.output);
        }
        let (cause, survivors) =
            ending.map_or((None, 0), |stage| (Some(stage.cause), self.survivors(&stage)));
        Ok(Some(Finished { end, cause, survivors }))
    }

    /// Returns whether the process was to take a command and will not.
    fn gives_up(&mut self, ended: bool, now: Instant) -> io::Result<bool> {
        let waits = match &self.untaken {
            Some(untaken) => untaken.waits(ended, now)?,
            None => return Ok(false),
        };
        // What was kept for another is not needed.
        self.untaken.take_if(|_| waits == Waits::Taken);
        Ok(waits == Waits::InVain)
    }

    fn begin(&self, cause: Cause, now: Instant) -> Ending {
        let members = self.tree.members();
        let signal = match cause {
            Cause::Timeout => Signal::TERM,
            Cause::Interrupt => Signal::INT,
        };
        self.signal_leader(&members, signal);
        for member in self.tree.asked(&members) {
            member.signal(signal);
            member.signal(Signal::CONT);
        }
        Ending { cause, until: now + GRACE, killed: false, members }
    }

    fn kill(&self, stage: &mut Ending, now: Instant) {
        stage.killed = true;
        stage.until = now + KILL_LIMIT;
        stage.refresh(&self.tree);
        self.signal_leader(&stage.members, Signal::KILL);
    }

    /// Returns how many processes could not be killed.
    fn survivors(&self, stage: &Ending) -> usize {
        if !stage.members.is_empty() {
            return stage.members.len();
        }
        usize::from(!self.tree.end_cgroups(KILL_LIMIT))
    }

    /// Signals the process itself where the tree does not show it: `/proc` may be missing.
    fn signal_leader(&self, members: &[Member], signal: Signal) {
        if !members.iter().any(|member| member.id == self.process.pid.as_raw_nonzero().get()) {
            // It may have ended in the meantime, which is what is wanted.
            let _ = pidfd_send_signal(&self.process.pidfd, signal);
        }
    }

    /// Waits until something happens, or the next moment at which something must.
    fn wait(&self, output: &Output, ended: bool, ending: Option<&Ending>) -> io::Result<Ready> {
        let deadline = match ending {
            Some(stage) => Some(stage.until),
            None if ended => output.until(),
            None => self.io.deadline().into_iter().chain(self.untaken.as_ref().map(Untaken::until)).min(),
        };
        // Who has no descriptor to wait for is asked now and then.
        let unheard = match ending {
            Some(stage) => stage.members.iter().any(|member| member.fd.is_none()),
            None => !ended && self.io.cancel_fd().is_none(),
        };
        let deadline = if unheard {
            Some(deadline.map_or(Instant::now() + ASK, |at| at.min(Instant::now() + ASK)))
        } else {
            deadline
        };
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            // The kernel rounds down; one more millisecond spares a second, empty round.
            Timespec::try_from(left + Duration::from_millis(1))
                .unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
        });
        let mut sources: Vec<(Source, BorrowedFd<'_>, PollFlags)> = Vec::new();
        if !matches!(output, Output::Closed) {
            sources.push((Source::Output, self.output.as_fd(), PollFlags::IN));
        }
        if let Some(feed) = &self.feed {
            sources.push((Source::Input, feed.pipe.as_fd(), PollFlags::OUT));
        }
        if !ended {
            sources.push((Source::End, self.process.pidfd.as_fd(), PollFlags::IN));
        }
        match ending {
            Some(stage) => {
                let held = stage.members.iter().filter_map(|member| member.fd.as_ref());
                sources.extend(held.map(|fd| (Source::Member, fd.as_fd(), PollFlags::IN)));
            }
            None => sources.extend(self.io.cancel_fd().map(|fd| (Source::Cancel, fd, PollFlags::IN))),
        }
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = Ready { member: ending.is_some() && unheard, ..Ready::default() };
        for ((source, ..), fd) in sources.iter().zip(&fds) {
            if fd.revents().is_empty() {
                continue;
            }
            match source {
                Source::Output => ready.output = true,
                Source::Input => ready.input = true,
                Source::End => ready.ended = true,
                Source::Member => ready.member = true,
                Source::Cancel => ready.cancelled = true,
            }
        }
        Ok(ready)
    }

    /// Returns how the process ended, if it has. It stays a zombie, so that its number stays its own.
    fn end(&self) -> io::Result<Option<End>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::PidFd(self.process.pidfd.as_fd()), options) {
            Ok(status) => Ok(status.map(End::Status)),
            Err(rustix::io::Errno::CHILD) => Ok(Some(End::Unknown)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what still stands in the pipe, without waiting.
    fn drain(&mut self, buffer: &mut [u8]) {
        let limit = Instant::now() + DRAIN_IDLE;
        while let Ok(count) = self.output.read(buffer) {
            if count == 0 || self.io.output(&buffer[..count]) == Flow::Stop || Instant::now() >= limit {
                return;
            }
        }
    }
}

/// Waits for a process that has ended, or else has it waited for.
fn reap(pidfd: OwnedFd, ended: bool) {
    let wait = move || {
        let _ = retry_on_intr(|| waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED));
    };
    if ended {
        wait();
    } else {
        // It is stuck in the kernel: whoever wakes it must not leave a zombie. Without a thread it will.
        let _ = std::thread::Builder::new().name("reap".into()).spawn(wait);
    }
}

#[derive(Clone, Copy)]
enum Source {
    Output,
    Input,
    End,
    Member,
    Cancel,
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "one for each source of `poll`")]
struct Ready {
    output: bool,
    input: bool,
    ended: bool,
    member: bool,
    cancelled: bool,
}

impl Ending {
    /// Looks again who is alive.
    fn refresh(&mut self, tree: &Tree) {
        // First let go of those held before: there may be more members than descriptors.
        self.members.clear();
        self.members = tree.members();
        if self.killed {
            for member in &self.members {
                member.signal(Signal::KILL);
            }
            tree.kill_cgroups();
        }
    }
}
