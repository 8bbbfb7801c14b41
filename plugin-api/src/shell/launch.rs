//! Starts one call's shell and follows it to its end.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::process::WaitIdStatus;

use super::boot;
use super::call::{Call, Cause, End, Finished};
use super::cgroup::Cgroup;
use super::channel::Script;
use super::environ::{MARK, Variables};
use super::feed::Feed;
use super::prelude;
use super::record::Record;
use super::resident::{NoCopy, Resident};
use super::resident_end;
use super::residents::Residents;
use super::session::ShellEnvironment;
use super::session_cgroups::SessionCgroups;
use super::stat;
use super::state::SessionState;
use super::transport::{Launch, Process, Transport};
use super::tree::Tree;
use super::untaken::{Again, Untaken};
use super::watched::Watched;
use crate::{Error, ErrorKind, ExecIo, ExecOutcome, Stdin};

/// Room for output between the command and us: the most that an unprivileged user may have.
const PIPE_SIZE: usize = 1024 * 1024;

/// Where and with what a command runs.
pub(super) struct Plan<'a> {
    /// What its processes carry, so that they are known.
    pub(super) mark: String,
    pub(super) cwd: &'a Path,
    pub(super) variables: &'a Variables,
    /// What was printed before the command was read; none once it was, and where that is of no interest.
    pub(super) early: Mutex<Option<Vec<u8>>>,
    pub(super) deadline: Instant,
    /// Whether the caller wants to know that it has started.
    pub(super) tell_start: bool,
    /// Whether it must be a shell that is started for it.
    pub(super) fresh: bool,
}

impl Plan<'_> {
    /// Returns the first line that was printed before the command was read, for the end of a message.
    pub(super) fn said(&self) -> String {
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let said = String::from_utf8_lossy(&early);
        said.lines().next().map_or_else(String::new, |line| format!(": {line}"))
    }
}

/// What the command has at its standard input.
pub(super) enum Input {
    /// Something to read.
    Bytes(Stdin),
    /// A terminal, which is where its output goes too.
    Terminal(OwnedFd),
}

/// The resident of a session, if it has one.
#[derive(Default)]
pub(super) struct Kept {
    /// Whether a command has run. A session of one command has no use for a resident.
    used: bool,
    resident: Option<Resident>,
}

impl Kept {
    /// Does without the resident until the next one is there.
    pub(super) fn let_go(&mut self) {
        self.resident = None;
    }

    /// Lets a resident go that has ended, so that nothing is left of it.
    pub(super) fn let_go_ended(&mut self) {
        self.resident.take_if(|resident| resident.has_ended());
    }
}

/// What a shell is handed: the command, and a place for its state.
pub(super) struct Handed {
    pub(super) script: Script,
    pub(super) record: Record,
}

/// The shell of a call, from its start on.
struct Started {
    process: Process,
    /// That in which it is, if there is one.
    cgroup: Option<Cgroup>,
    handed: Handed,
    /// When a copy was given its command: it was there before.
    since: Option<u64>,
}

/// What a call's process has at its first three descriptors.
pub(super) struct Streams {
    input: OwnedFd,
    output: PipeWriter,
    terminal: bool,
}

impl<T: Transport> ShellEnvironment<T> {
    /// Starts the shell of a session that stands as the state says, and follows it. Returns what it was handed, too.
    pub(super) fn start(
        &self,
        (state, command): (&Arc<SessionState>, &str),
        plan: &Plan<'_>,
        input: Input,
        io: &dyn ExecIo,
    ) -> Result<(Finished, Handed), Error> {
        let failed = |error: io::Error| Error::io("failed to start a command", &error).not_started();
        let (output, output_end) = std::io::pipe().map_err(failed)?;
        let (stdin, feed, terminal) = match input {
            Input::Terminal(fd) => (fd, None, true),
            Input::Bytes(stdin) => {
                // A smaller pipe is only slower.
                let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE_SIZE);
                let (stdin, feed) = open(stdin).map_err(failed)?;
                (stdin, feed, false)
            }
        };
        let streams = Streams { input: stdin, output: output_end, terminal };
        let mut left = Again { output, feed, streams };
        if let Some(copy) = self.copied((state, command), plan, &left.streams)? {
            match self.follow(copy, true, left, plan, io)? {
                Ok(finished) => return Ok(finished),
                Err(again) => left = again,
            }
            // What has kept this copy from it may keep the next one, too.
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).let_go();
        }
        let shell = self.launched((state, command), plan, &left.streams)?;
        let untaken = |_| Error::new(ErrorKind::LOST, "lost track of the command: its shell did not take it");
        self.follow(shell, false, left, plan, io)?.map_err(untaken)
    }

    /// Follows the shell of a call to its end. Of a copy, what it was given is kept until it has taken the command, and given back where it does not.
    fn follow(
        &self,
        Started { process, cgroup, handed, since }: Started,
        is_copy: bool,
        Again { output, feed, streams }: Again,
        plan: &Plan<'_>,
        io: &dyn ExecIo,
    ) -> Result<Result<(Finished, Handed), Again>, Error> {
        let untaken = is_copy.then_some(streams).map(|streams| Untaken::new(&handed.script, streams));
        if plan.tell_start {
            io.output(b"");
        }
        if let Some(cgroups) = self.cgroups() {
            // While the command runs already, and nobody waits for us.
            cgroups.tidy();
            if let Some(cgroup) = &cgroup {
                cgroups.leave(cgroup.clone());
            }
        }
        let tree = Tree::new(&plan.mark, process.pid, cgroup, since).fronted(self.transport.is_front());
        let io = &Watched { io, deadline: Some(plan.deadline), script: &handed.script, early: &plan.early };
        let finished = Call { process, tree, output, feed, untaken, io }
            .run()
            .map_err(|error| Error::new(ErrorKind::LOST, format!("lost track of the command: {error}")))?;
        Ok(finished.map(|finished| (finished, handed)))
    }

    /// Starts a shell for the command.
    fn launched(
        &self,
        (state, command): (&Arc<SessionState>, &str),
        plan: &Plan<'_>,
        streams: &Streams,
    ) -> Result<Started, Error> {
        let prelude = self.shell.is_bash.then(|| prelude::text(state));
        let script = Script::new(prelude.as_deref(), command).map_err(|error| handing(&error))?;
        let record = Record::new_in(&self.channel).map_err(|error| handing(&error))?;
        let mut env: Vec<(OsString, OsString)> = plan
            .variables
            .iter()
            .filter(|(name, _)| *name != MARK)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        env.push(("PWD".into(), plan.cwd.into()));
        let marks = self.marks(plan);
        let made = self.cgroups().and_then(|cgroups| cgroups.make(marks.as_bytes()));
        let (cgroup, opened) = made.unzip();
        env.push((MARK.into(), marks));
        let started = self.transport.start(Launch {
            argv: boot::argv(&self.shell, &self.transport.record_path(record.path())),
            env,
            cwd: plan.cwd,
            stdin: streams.input.as_fd(),
            output: streams.output.as_fd(),
            script: script.as_fd(),
            record: record.path(),
            extra: Vec::new(),
            terminal: streams.terminal,
            cgroup: opened.as_ref().map(AsFd::as_fd),
        });
        let process = started.inspect_err(|_| {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
        })?;
        Ok(Started { process, cgroup, handed: Handed { script, record }, since: None })
    }

    /// Takes a copy of the resident shell for the command. None where there is none that would do, and a shell is to be started.
    fn copied(
        &self,
        (state, command): (&Arc<SessionState>, &str),
        plan: &Plan<'_>,
        streams: &Streams,
    ) -> Result<Option<Started>, Error> {
        if plan.fresh || !self.shell.is_bash || !self.transport.is_plain() {
            return Ok(None);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut kept.used, true) {
            return Ok(None);
        }
        let marks = self.marks(plan);
        let known = kept.resident.as_mut().filter(|resident| resident.knows(state));
        let prelude = known.as_ref().and_then(|resident| resident.prelude(plan.variables, &marks, plan.cwd));
        let (Some(resident), Some(prelude)) = (known, prelude) else {
            // The next command will find it ready. Without one it is slower, and nothing else.
            let cgroups = self.cgroups().and_then(SessionCgroups::lend);
            let new = Resident::start(&self.shell, plan.variables, self.outer_marks(), state, cgroups);
            kept.resident = new.ok();
            if let Some(resident) = &kept.resident {
                Residents::shared().note(&self.kept);
                resident_end::watch(&self.kept, resident);
            }
            return Ok(None);
        };
        let script = Script::new(Some(&prelude), command).map_err(|error| handing(&error))?;
        let record = Record::nameless().map_err(|error| handing(&error))?;
        let (input, output) = (streams.input.as_fd(), streams.output.as_fd());
        let output = if streams.terminal { input } else { output };
        let descriptors = [input, output, output, script.as_fd(), record.as_fd()];
        let since = stat::now();
        match resident.copy(&plan.mark, streams.terminal, descriptors) {
            Ok((process, cgroup)) => {
                Residents::shared().note(&self.kept);
                Ok(Some(Started { process, cgroup, handed: Handed { script, record }, since }))
            }
            Err(NoCopy::NotNow) => Ok(None),
            Err(NoCopy::Broken) => {
                kept.resident = None;
                if script.withdraw() {
                    return Ok(None);
                }
                let message = "lost track of the command: the resident shell that was to run it has died";
                Err(Error::new(ErrorKind::LOST, message))
            }
        }
    }

    /// What a call within a call carries of the outer one: it belongs to both.
    fn outer_marks(&self) -> Option<&OsStr> {
        self.options.base_env.iter().find(|(name, _)| name == MARK).map(|(_, marks)| marks.as_os_str())
    }

    fn marks(&self, plan: &Plan<'_>) -> OsString {
        let outer = self.outer_marks().map(OsStr::as_bytes);
        let marks = outer.into_iter().chain([plan.mark.as_bytes()]).collect::<Vec<_>>().join(&b':');
        OsString::from_vec(marks)
    }
}

fn handing(error: &io::Error) -> Error {
    Error::io("failed to hand over the command", error).not_started()
}

/// Returns what becomes the command's standard input, and what is left to send.
fn open(stdin: Stdin) -> io::Result<(OwnedFd, Option<Feed>)> {
    Ok(match stdin {
        Stdin::Empty => (std::fs::File::open("/dev/null")?.into(), None),
        Stdin::Fd(fd) => (fd, None),
        Stdin::Bytes(bytes) => {
            let (reader, pipe) = std::io::pipe()?;
            // As for the output.
            let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_SIZE);
            (reader.into(), Some(Feed { pipe, bytes, sent: 0 }).filter(|feed| !feed.bytes.is_empty()))
        }
    })
}

/// Says how a call ended.
pub(super) fn ended(finished: &Finished) -> Result<ExecOutcome, Error> {
    match (finished.cause, &finished.end) {
        (Some(Cause::Timeout), _) => Ok(ExecOutcome::timed_out()),
        (Some(Cause::Interrupt), _) => Ok(ExecOutcome::interrupted()),
        (None, Some(End::Status(status))) => from_status(status),
        (None, Some(End::Unknown) | None) => {
            let message =
                "the command has ended, but its exit code was lost: something else has waited for it";
            Err(Error::new(ErrorKind::LOST, message))
        }
    }
}

fn from_status(status: &WaitIdStatus) -> Result<ExecOutcome, Error> {
    let code = status.exit_status().map(ExecOutcome::exited);
    code.or_else(|| status.terminating_signal().map(ExecOutcome::signalled))
        .ok_or_else(|| Error::new(ErrorKind::LOST, "the kernel gave no exit code for the command"))
}

/// Returns a number that nobody guesses, or at least one that nobody else has.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        // Unique is enough: the mark is no secret.
        _ => std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos().into()),
    }
}
