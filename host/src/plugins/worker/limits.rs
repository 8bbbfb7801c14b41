//! What a worker may use up.

use std::ffi::OsString;

use hostel_plugin_api::shell::LIMITS_VARIABLE;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};

/// Limits of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory that it may write to, in MiB.
    pub memory: u64,
    /// Descriptors that it may have open.
    pub open_files: u64,
}

impl Limits {
    /// Reads the limits from the configuration.
    ///
    /// # Errors
    ///
    /// Fails if a value is no number.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            memory: config.whole("plugins.limits.memory")?,
            open_files: config.whole("plugins.limits.open_files")?,
        })
    }

    /// Holds this process to them, and turns core dumps off, which would hold its secrets.
    ///
    /// A plugin that starts programs could hold its commands to them as well, so that for it they are soft, and can be raised by
    /// its code. For any other they are hard, and so are limits on what it could do instead: memory that is shared and not private, and
    /// threads.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says.
    pub fn apply(self, programs: bool) -> std::io::Result<()> {
        // Private memory that can be written to. The whole address space would also count what is merely reserved.
        let memory = self.memory.saturating_mul(1 << 20);
        set(Resource::Data, memory, !programs)?;
        set(Resource::Nofile, self.open_files, !programs)?;
        set(Resource::Core, 0, !programs)?;
        if programs {
            return Ok(());
        }
        // Files in memory are files.
        set(Resource::Fsize, memory, true)?;
        set(Resource::As, memory.saturating_add(RESERVED), true)?;
        // Counted for the user as a whole, so what there is already must find room.
        if let Some(threads) = threads_of_all() {
            set(Resource::Nproc, threads + THREADS, true)?;
        }
        // Where memory runs out, this goes first, and not the host. It may be refused, and is only a wish.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        Ok(())
    }
}

/// Address space that may be reserved beyond the memory that may be used: a runtime reserves without using.
const RESERVED: u64 = 4 << 30;

/// Threads that a worker may add to those of all users.
const THREADS: u64 = 512;

/// Returns how many threads there are; see `man 5 proc_loadavg`.
fn threads_of_all() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

fn set(resource: Resource, value: u64, hard: bool) -> std::io::Result<()> {
    let now = getrlimit(resource);
    let value = now.maximum.map_or(value, |maximum| value.min(maximum));
    let maximum = if hard { Some(value) } else { now.maximum };
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum })?)
}

/// This process's own limits, for the commands that a worker starts: see [`LIMITS_VARIABLE`].
pub(super) fn for_commands() -> (OsString, OsString) {
    let shown =
        |resource| getrlimit(resource).current.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    let limits = [Resource::Data, Resource::Nofile, Resource::Core].map(shown);
    (LIMITS_VARIABLE.into(), limits.join(":").into())
}
