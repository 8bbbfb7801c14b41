//! What `/proc` says of processes.

use std::fs::{self, File};
use std::io::Read;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// One process that is no zombie.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// When it was started, in ticks of the kernel's clock.
    pub(super) started: u64,
}

impl Stat {
    /// Reads a line of `/proc/PID/stat`; nothing for a zombie. Fields after `man 5 proc_pid_stat`.
    fn parse(text: &str) -> Option<Self> {
        let id = text.split(' ').next()?.parse().ok()?;
        // The name is in parentheses and may hold any character.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let number = |index: usize| fields.get(index)?.parse().ok();
        Some(Self { id, parent: number(1)?, session: number(3)?, started: fields.get(19)?.parse().ok()? })
    }

    /// Looks at a process; nothing where there is none of this number, or only a zombie.
    pub(super) fn read(id: i32) -> Option<Self> {
        // In one go; and the name may be any bytes.
        let mut line = Vec::with_capacity(1024);
        File::open(format!("/proc/{id}/stat")).ok()?.take(4096).read_to_end(&mut line).ok()?;
        Self::parse(&String::from_utf8_lossy(&line))
    }
}

/// Returns the time as `/proc` tells when a process was started. None where that is not known.
pub(super) fn now() -> Option<u64> {
    const NANOSECONDS: u64 = 1_000_000_000;
    let since_boot = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(since_boot.tv_sec).ok()?, u64::try_from(since_boot.tv_nsec).ok()?);
    let ticks = clock_ticks_per_second();
    Some(seconds.checked_mul(ticks)? + nanos * ticks / NANOSECONDS)
}

/// Returns when a process was started; None where there is none of this number.
pub(super) fn started(id: i32) -> Option<u64> {
    Some(Stat::read(id)?.started)
}

/// Returns all processes that are seen, without zombies.
pub(super) fn processes() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| Stat::read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_time_is_that_of_proc() {
        let before = now().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().replace(") Z", ") R");
        let (started, after) = (Stat::parse(&stat).unwrap().started, now().unwrap());
        child.wait().unwrap();
        assert!((before..=after).contains(&started), "{before} {started} {after}");
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_confuse() {
        let text = "77 (a) R (b) S 12 77 33 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(Stat::parse(text), Some(Stat { id: 77, parent: 12, session: 33, started: 4242 }));
        assert_eq!(Stat::parse("77 (a) Z 12 77 33 0"), None);
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join(OsStr::from_bytes(b"sle\xff\xfep"));
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("60").spawn().unwrap();
        let seen = Stat::read(child.id().cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen.map(|stat| stat.parent), Some(std::process::id().cast_signed()));
    }
}
