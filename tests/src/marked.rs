//! Processes that a test can tell from all others.
//!
//! Whether a command has really ended shows only in the list of all processes, in which those of other tests and of other runs
//! stand as well, and programs whose arguments merely mention the command. So a test gives `sleep` an argument that nobody
//! else has, and looks for processes with just this argument.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long a process may take to come or to go, unless a test says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// An argument for `sleep` that nobody else has, of about an hour. What sleeps with it ends with the test.
#[derive(Debug)]
pub struct Mark(String);

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

impl Mark {
    /// Makes one.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(3600);
        let seconds = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{seconds}.{}", std::process::id()))
    }

    /// Returns the processes that have it, also those in sandboxes of this machine.
    #[must_use]
    pub fn pids(&self) -> Vec<Pid> {
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(number);
        numbers.filter(|number| self.is_in(*number)).filter_map(Pid::from_raw).collect()
    }

    fn is_in(&self, number: i32) -> bool {
        let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == self.0.as_bytes())
    }

    /// Waits until so many processes have it. Nothing tells of a process that comes.
    ///
    /// # Panics
    ///
    /// Panics if they do not come.
    #[track_caller]
    pub fn appear(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        while self.pids().len() != count {
            assert!(Instant::now() < until, "{count} wanted, there are {:?}", self.pids());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until no process has it, but no longer than this. Returns whether that is so.
    #[must_use]
    pub fn gone_within(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while let Some(pid) = self.pids().first().copied() {
            // One that cannot be opened is gone.
            let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            // The number may have passed on in between.
            if !self.is_in(pid.as_raw_nonzero().get()) {
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).ok();
            if let Ok(0) = poll(&mut [PollFd::new(&fd, PollFlags::IN)], left.as_ref()) {
                return false;
            }
        }
        true
    }

    /// Requires that no process has it, or will have gone within five seconds.
    ///
    /// # Panics
    ///
    /// Panics if one stays.
    #[track_caller]
    pub fn expect_gone(&self) {
        assert!(self.gone_within(Duration::from_secs(5)), "`sleep {self}` lives on: {:?}", self.pids());
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        for pid in self.pids() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
