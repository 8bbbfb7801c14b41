//! Memory and descriptors of whoever waits for an answer.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

use super::courier::Courier;
use super::raw::{self, Notice};

/// The worker, as the keeper knows it.
pub(super) struct Worker {
    /// Its process id.
    pub(super) pid: Pid,
    /// Its memory, which it has opened for us before any foreign code was there.
    pub(super) memory: File,
    /// Its descriptors.
    pub(super) courier: Courier,
}

/// Whose memory and descriptors are read.
enum Process<'a> {
    Worker(&'a Worker),
    /// A program that the plugin has started, or what that has.
    Other {
        memory: File,
        pidfd: OwnedFd,
    },
}

/// A process, one of whose threads waits.
pub(super) struct Caller<'a> {
    process: Process<'a>,
    thread: i32,
    /// Whether it has our user's rights, and not fewer.
    pub(super) is_equal: bool,
}

impl<'a> Caller<'a> {
    /// Finds out who waits. `EACCES`: the system does not let us look into it.
    pub(super) fn of(worker: &'a Worker, listener: &OwnedFd, notice: &Notice) -> Result<Self, Errno> {
        let thread = notice.thread;
        // Where other people's processes are hidden, so is the worker. A mistake does no harm: whatever is read is judged.
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let own = worker.pid.as_raw_nonzero().get();
        let group = number(&status, "Tgid:", 0).map_or(own, u32::cast_signed);
        let is_equal = number(&status, "Uid:", 1).is_none_or(|user| user == geteuid().as_raw());
        let process = if group == own {
            Process::Worker(worker)
        } else {
            let memory = File::options().read(true).write(true).open(format!("/proc/{thread}/mem"));
            let memory = memory.map_err(|_| Errno::ACCESS)?;
            let pidfd = pidfd_open(Pid::from_raw(group).ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
            Process::Other { memory, pidfd }
        };
        // Its number cannot have become another's before we opened what is behind it.
        if raw::is_waiting(listener, notice.id) {
            Ok(Self { process, thread, is_equal })
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Reads all of `to` from an address. `EFAULT`: nothing is there.
    pub(super) fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        self.memory().read_exact_at(to, address).map_err(|_| Errno::FAULT)
    }

    /// Writes to an address.
    pub(super) fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        self.memory().write_all_at(from, address).map_err(|_| Errno::FAULT)
    }

    fn memory(&self) -> &File {
        match &self.process {
            Process::Worker(worker) => &worker.memory,
            Process::Other { memory, .. } => memory,
        }
    }

    /// Returns a duplicate of a descriptor.
    pub(super) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        match &self.process {
            Process::Worker(worker) => worker.courier.fetch(number),
            Process::Other { pidfd, .. } => {
                pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()).map_err(|error| match error {
                    Errno::PERM => Errno::ACCESS,
                    other => other,
                })
            }
        }
    }

    /// Returns its working directory.
    pub(super) fn directory(&self) -> Result<PathBuf, Errno> {
        fs::read_link(format!("/proc/{}/cwd", self.thread)).map_err(|_| Errno::ACCESS)
    }
}

/// Returns a number of a line of `/proc/PID/status`.
pub(super) fn number(status: &str, line: &str, index: usize) -> Option<u32> {
    let rest = status.lines().find_map(|text| text.strip_prefix(line))?;
    rest.split_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_line_and_place() {
        let status = "Name:\tTgid: 7\nTgid:\t42\nUid:\t1\t2\t3\t4\n";
        assert_eq!(number(status, "Tgid:", 0), Some(42));
        assert_eq!(number(status, "Uid:", 1), Some(2));
        assert_eq!(number(status, "Gid:", 0), None);
        assert_eq!(number("", "Tgid:", 0), None);
    }
}
