//! Runs one process to its end: output, input and the clock side by side.
//!
//! Everything is waited for in one `poll`: the output, room for more input, the end of the process (its pidfd), and the
//! caller's cancellation. The end is the process's own, not end-of-file, since a child in the background may hold the pipe;
//! what stands in the pipe then is still read, and for a short while what comes after it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};

use super::transport::Process;
use super::tree::{Member, Tree};
use crate::{ExecIo, Flow};

/// Between a polite signal and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(1);

/// Between `SIGKILL` and giving up: only a process stuck in the kernel outlives this.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// After the end, silence of this length means that nothing more belongs to the command.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// After the end, a child that writes without pause is listened to for this long.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

const BUFFER: usize = 256 * 1024;

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Interrupt,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// What the kernel says of the process; nothing if it could not be killed.
    pub(super) status: Option<WaitIdStatus>,
    /// Why it was killed, if it was.
    pub(super) cause: Option<Cause>,
}

/// Bytes on their way to the command.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) pipe: std::io::PipeWriter,
    pub(super) bytes: Vec<u8>,
    pub(super) sent: usize,
}

/// One running call.
pub(super) struct Call<'a> {
    pub(super) process: Process,
    pub(super) tree: Tree,
    pub(super) output: std::io::PipeReader,
    pub(super) feed: Option<Feed>,
    pub(super) io: &'a dyn ExecIo,
}

/// Where the killing of a call stands.
struct Ending {
    cause: Cause,
    until: Instant,
    killed: bool,
    members: Vec<Member>,
}

/// What the output is worth waiting for.
enum Output {
    Open,
    /// The process has ended at the first instant; the last byte came at the second.
    Draining {
        since: Instant,
        last: Instant,
    },
    Closed,
}

impl Call<'_> {
    /// Runs the process to its end, and reaps it.
    pub(super) fn run(mut self) -> io::Result<Finished> {
        rustix::io::ioctl_fionbio(&self.output, true)?;
        if let Some(feed) = &self.feed {
            rustix::io::ioctl_fionbio(&feed.pipe, true)?;
        }
        let mut buffer = vec![0; BUFFER];
        let mut output = Output::Open;
        let mut status = None;
        let mut ending: Option<Ending> = None;
        loop {
            let ready = self.wait(&output, status.is_some(), ending.as_ref())?;
            let now = Instant::now();
            if ready.output {
                match self.output.read(&mut buffer) {
                    Ok(0) => output = Output::Closed,
                    Ok(count) => {
                        if let Output::Draining { last, .. } = &mut output {
                            *last = now;
                        }
                        let flow = self.io.output(&buffer[..count]);
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
            if ready.ended && status.is_none() {
                status = self.status(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)?;
                if status.is_some() {
                    self.feed = None;
                    if matches!(output, Output::Open) {
                        output = Output::Draining { since: now, last: now };
                    }
                }
            }
            if ending.is_none() && status.is_none() {
                if ready.cancelled || self.io.cancelled() {
                    ending = Some(self.begin(Cause::Interrupt, now));
                } else if self.io.deadline().is_some_and(|deadline| now >= deadline) {
                    ending = Some(self.begin(Cause::Timeout, now));
                }
            }
            match &mut ending {
                Some(stage) => {
                    let gone = ready.member && { stage.refresh(&self.tree) };
                    if gone || now >= stage.until {
                        if gone || stage.killed {
                            break;
                        }
                        stage.kill(&self.tree, now);
                    }
                }
                None if status.is_some() && output.is_done(now) => break,
                None => {}
            }
        }
        self.drain(&mut buffer);
        if status.is_none() {
            status = self.status(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)?;
        }
        self.reap(status.is_some());
        Ok(Finished { status, cause: ending.map(|stage| stage.cause) })
    }

    fn begin(&self, cause: Cause, now: Instant) -> Ending {
        let members = self.tree.members();
        let signal = match cause {
            Cause::Timeout => Signal::TERM,
            Cause::Interrupt => Signal::INT,
        };
        for member in &members {
            member.signal(signal);
            member.signal(Signal::CONT);
        }
        Ending { cause, until: now + GRACE, killed: false, members }
    }

    /// Waits until something happens, or the next moment at which something must.
    fn wait(&self, output: &Output, ended: bool, ending: Option<&Ending>) -> io::Result<Ready> {
        let deadline = match ending {
            Some(stage) => Some(stage.until),
            None if ended => output.until(),
            None => self.io.deadline(),
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
                sources.extend(
                    stage.members.iter().map(|member| (Source::Member, member.0.as_fd(), PollFlags::IN)),
                );
            }
            None => sources.extend(self.io.cancel_fd().map(|fd| (Source::Cancel, fd, PollFlags::IN))),
        }
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Without members to wait for, the tree is gone as soon as it is looked at.
        let member = ending.is_some_and(|stage| stage.members.is_empty());
        let mut ready = Ready { member, ..Ready::default() };
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

    fn status(&self, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        match waitid(WaitId::PidFd(self.process.pidfd.as_fd()), options | WaitIdOptions::EXITED) {
            Ok(status) => Ok(status),
            // Somebody else has waited for our child; its end is then all that is known of it.
            Err(rustix::io::Errno::CHILD) => Ok(None),
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

    fn reap(self, ended: bool) {
        let pidfd: OwnedFd = self.process.pidfd;
        let wait = move || {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        };
        if ended {
            wait();
        } else {
            // It is stuck in the kernel: whoever wakes it must not leave a zombie.
            std::thread::spawn(wait);
        }
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

impl Output {
    fn until(&self) -> Option<Instant> {
        match self {
            Self::Open | Self::Closed => None,
            Self::Draining { since, last } => Some((*last + DRAIN_IDLE).min(*since + DRAIN_LIMIT)),
        }
    }

    fn is_done(&self, now: Instant) -> bool {
        match self {
            Self::Open => false,
            Self::Draining { .. } => self.until().is_some_and(|until| now >= until),
            Self::Closed => true,
        }
    }
}

impl Ending {
    /// Looks again who is alive. Returns whether nobody is.
    fn refresh(&mut self, tree: &Tree) -> bool {
        self.members = tree.members();
        if self.killed {
            for member in &self.members {
                member.signal(Signal::KILL);
            }
        }
        self.members.is_empty()
    }

    fn kill(&mut self, tree: &Tree, now: Instant) {
        self.killed = true;
        self.until = now + KILL_LIMIT;
        self.refresh(tree);
    }
}

impl Feed {
    /// Sends what the pipe takes. Returns itself as long as there is more.
    fn send(mut self) -> Option<Self> {
        match self.pipe.write(&self.bytes[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) if is_passing(&error) => {}
            // A command that does not read its input is no failure.
            Err(_) => return None,
        }
        (self.sent < self.bytes.len()).then_some(self)
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
