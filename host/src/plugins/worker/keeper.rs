//! The process between the host and a worker, which sees to it that nothing of a worker's is ever left behind.
//!
//! A worker runs foreign code, which may close descriptors, block signals, or die of a signal that nobody can catch, and it
//! may have started commands. Whoever is to clean up after it must not share a process with that code, and must live on when
//! the host is killed. So the host starts a keeper, and the keeper makes the worker, a copy of itself: it adopts whatever the worker's
//! children leave, and when the worker or the host ends without a good-bye it kills all of them.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::enter::worker_main;
use super::hosts;
use hostel_plugin_api::shell::{Process, copy_of_this_process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait, waitpid,
};

/// The hidden command. Both processes are called by it, since the worker is a copy of its keeper: a second start of the program would
/// take as long again. What tells them apart is the name of their thread.
pub const WORKER_COMMAND: &str = "plugin-worker";

/// From the host: the worker has been told to end, and what it leaves in the background may stay.
pub(super) const GOODBYE: u8 = b'b';
/// From the host: kill the worker and all that is its.
pub(super) const KILL: u8 = b'k';
/// To the host: the worker has ended, with the exit code that follows.
pub(super) const EXITED: u8 = b'e';
/// To the host: the worker was killed by the signal that follows.
pub(super) const SIGNALLED: u8 = b's';

/// How long a worker may take to end after the good-bye. Code of the plugin's may run at its exit.
const PARTING: Duration = Duration::from_secs(2);

/// How long the killing goes on. Each round ends at least those that were there when it began.
const KILLING: Duration = Duration::from_secs(10);

/// Runs the keeper, and in its copy the worker: standard input is the line to the host, standard output the worker's socket,
/// standard error what the worker says. `words` are the plugin's name, which is for whoever lists processes.
#[must_use]
pub fn keeper_main(_words: &[String]) -> ExitCode {
    let begun = begin();
    let failed = |error: io::Error| {
        // The host reads this as the worker's last words.
        let _ = writeln!(io::stderr(), "the worker could not be started: {error}");
        ExitCode::FAILURE
    };
    match begun {
        Ok(Side::Worker(keeper, gate)) => worker_main(keeper, gate),
        Ok(Side::Keeper(line, worker, gate)) => {
            keep(line, &worker, gate).map_or_else(failed, |()| ExitCode::SUCCESS)
        }
        Err(error) => failed(error),
    }
}

/// Which of the two processes this is. Each has an end of the gate: see `hosts`.
enum Side {
    /// The keeper, with its line to the host.
    Keeper(UnixStream, Process, OwnedFd),
    /// The worker, with its keeper. It has its socket at its standard input.
    Worker(Pid, OwnedFd),
}

fn begin() -> io::Result<Side> {
    rustix::thread::set_name(c"hostel-keeper")?;
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let socket = io::stdout().as_fd().try_clone_to_owned()?;
    let null: OwnedFd = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let keeper = rustix::process::getpid();
    let (gate, workers_gate) = hosts::gate()?;
    if let Some(worker) = copy_of_this_process()? {
        rustix::stdio::dup2_stdin(&null)?;
        // What nobody but the worker may hold must not be held here: its end shows the host that the worker is gone.
        rustix::stdio::dup2_stdout(&null)?;
        return Ok(Side::Keeper(line, worker, gate));
    }
    rustix::stdio::dup2_stdin(&socket)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(Side::Worker(keeper, workers_gate))
}

fn keep(mut line: UnixStream, worker: &Process, gate: OwnedFd) -> io::Result<()> {
    let (mut children, wake) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake)?;
    let goodbye = watch(&mut line, &mut children, worker, gate)?;
    if goodbye {
        // What it left in the background on purpose lives on, as it does without a worker.
        let _ = kill_process(worker.pid, Signal::KILL);
    } else {
        // Its group first: no member can fork its way out of that. The number is the worker's until it is reaped.
        let _ = kill_process_group(worker.pid, Signal::KILL);
    }
    let status = waitpid(Some(worker.pid), WaitOptions::empty())?;
    // The host may be gone, or not want to know.
    let _ = status.map(|(_, status)| line.write_all(&report(status)));
    if !goodbye {
        kill_all();
    }
    Ok(())
}

/// How the worker ended, for the host: `e` and an exit code, or `s` and a signal.
fn report(status: WaitStatus) -> [u8; 2] {
    let byte = |number: i32| u8::try_from(number).unwrap_or(0);
    match status.terminating_signal() {
        Some(signal) => [SIGNALLED, byte(signal)],
        None => [EXITED, byte(status.exit_status().unwrap_or(0))],
    }
}

/// Waits until the worker has ended or is to end. Returns whether the host has said good-bye.
fn watch(
    line: &mut UnixStream,
    children: &mut UnixStream,
    worker: &Process,
    gate: OwnedFd,
) -> io::Result<bool> {
    let mut parting: Option<Instant> = None;
    let mut gate = Some(gate);
    loop {
        let mut fds = vec![
            PollFd::new(&worker.pidfd, PollFlags::IN),
            PollFd::new(&*children, PollFlags::IN),
            PollFd::new(&*line, PollFlags::IN),
        ];
        fds.extend(gate.as_ref().map(|gate| PollFd::new(gate, PollFlags::IN)));
        // After the good-bye the line has nothing more to say.
        let watched = if parting.is_some() { &mut fds[..2] } else { &mut fds[..] };
        let left = parting.map(|until| until.saturating_duration_since(Instant::now()));
        match poll(watched, left.and_then(|left| Timespec::try_from(left).ok()).as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(true),
            Ok(_) => {}
        }
        let shows = |index: usize| fds.get(index).map_or(PollFlags::empty(), PollFd::revents);
        let [ended, child, said] = [0, 1, 2].map(|index| !shows(index).is_empty());
        let at_gate = shows(3);
        drop(fds);
        if at_gate.contains(PollFlags::HUP) {
            // It has nothing to hand over.
            gate = None;
        } else if let Some(gate) = gate.take_if(|_| !at_gate.is_empty()) {
            hosts::keep(gate, worker.pid)?;
        }
        let mut bytes = [0; 64];
        if child {
            // Only a bell.
            let _ = children.read(&mut bytes);
            reap(worker.pid);
        }
        if said && parting.is_none() {
            match line.read(&mut bytes[..1]) {
                Ok(1) if bytes[0] == GOODBYE => parting = Some(Instant::now() + PARTING),
                // `KILL`, or the host is gone.
                _ => return Ok(false),
            }
        }
        // Last: the good-bye was said before the worker was told to end, and both may show at once.
        if ended {
            return Ok(parting.is_some());
        }
    }
}

/// Waits for the children that have ended, except the worker.
fn reap(worker: Pid) {
    for child in children().into_iter().filter(|child| *child != worker) {
        // It may be running still.
        let _ = waitpid(Some(child), WaitOptions::NOHANG);
    }
}

/// Kills all children, and those whom they leave to us, until there are none.
fn kill_all() {
    let until = Instant::now() + KILLING;
    while Instant::now() < until {
        for child in children() {
            // It may have ended in the meantime.
            let _ = kill_process(child, Signal::KILL);
        }
        match wait(WaitOptions::NOHANG) {
            // Killed, and not yet gone.
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Returns the children of this process. Only the parent can reap them, so their numbers stay theirs until then.
fn children() -> Vec<Pid> {
    let listed = fs::read_to_string("/proc/thread-self/children");
    let numbers: Vec<i32> = match listed {
        Ok(text) => text.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        // Kernels without that file: look at everybody.
        Err(_) => everybody_whose_parent_is(std::process::id()),
    };
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

fn everybody_whose_parent_is(parent: u32) -> Vec<i32> {
    let parent = parent.to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // After the name in parentheses: state, parent.
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1))
            .is_some_and(|found| found == parent)
    };
    numbers.filter(is_child).collect()
}
