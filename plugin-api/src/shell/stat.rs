//! What the kernel says of a process in `/proc/PID/stat`.

use std::fs::{self, File};
use std::io::Read;

/// A process as it was seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// In clock ticks since the machine started.
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

/// Returns when a process was started; None where there is none of this number.
pub(super) fn started(id: i32) -> Option<u64> {
    Some(Stat::read(id)?.started)
}

/// Returns all processes.
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
