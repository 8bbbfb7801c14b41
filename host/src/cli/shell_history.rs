//! The commands that were typed, for the next time.
//!
//! Several shells may be open at once, and none may lose what another has added, nor leave half a file when it is killed. So each
//! command is added under a lock to what is there by then, and the file is replaced as a whole. It stands in the home, for its
//! owner only: what people type is nobody else's business. A command that begins with a space is not kept.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use hostel_plugin_api::shell::open_lock;
use rustix::fs::{FlockOperation, flock};

use crate::home::{Home, make_private, read_regular};

/// The most commands that are kept, a line each.
pub(super) const MOST: usize = 5000;

/// The longest command that is kept, in bytes. What is longer was pasted, and is in the way.
const LONGEST: usize = 8 * 1024;

/// More than the file can have, in bytes: each byte of a command takes two at the most.
const LARGEST: u64 = 128 * 1024 * 1024;

/// The history's file.
#[derive(Debug)]
pub(super) struct History {
    dir: PathBuf,
    locks: PathBuf,
}

impl History {
    pub(super) fn new(home: &Home) -> Self {
        Self { dir: home.path().join("state"), locks: home.locks() }
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.dir.join("history")
    }

    /// Returns the commands, the oldest first.
    pub(super) fn load(&self) -> io::Result<Vec<String>> {
        Ok(self.lines()?.iter().map(|line| decode(line)).collect())
    }

    /// Adds a command, unless it is not to be kept, or is the last one once more.
    pub(super) fn add(&self, command: &str) -> io::Result<()> {
        if command.is_empty() || command.starts_with(' ') || command.len() > LONGEST {
            return Ok(());
        }
        make_private(&self.dir)?;
        let _lock = self.lock()?;
        let mut lines = self.lines()?;
        let line = encode(command);
        if lines.last() == Some(&line) {
            return Ok(());
        }
        lines.push(line);
        let mut text = lines[lines.len().saturating_sub(MOST)..].join("\n");
        text.push('\n');
        let mut file = tempfile::Builder::new().prefix(".history-").tempfile_in(&self.dir)?;
        file.write_all(text.as_bytes())?;
        file.persist(self.path())?;
        Ok(())
    }

    fn lines(&self) -> io::Result<Vec<String>> {
        match read_regular(&self.path(), LARGEST) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> io::Result<File> {
        make_private(&self.locks)?;
        let file = open_lock(&self.locks.join("history"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }
}

/// Makes one line of a command that may have several.
fn encode(command: &str) -> String {
    command.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn decode(line: &str) -> String {
    let mut command = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, if character == '\\' { characters.next() } else { None }) {
            ('\\', Some('n')) => command.push('\n'),
            ('\\', Some('r')) => command.push('\r'),
            ('\\', Some(other)) => command.push(other),
            (character, _) => command.push(character),
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn history() -> (tempfile::TempDir, History) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        (dir, History::new(&home))
    }

    #[test]
    fn commands_come_back_as_they_were_typed() {
        let (_dir, history) = history();
        assert!(history.load().unwrap().is_empty());
        let commands = ["ls", "printf 'a\\n'", "for x in 1; do\n\techo \\\\ $x\r\ndone", "end\\"];
        for command in commands {
            history.add(command).unwrap();
        }
        assert_eq!(history.load().unwrap(), commands);
        let mode = std::fs::metadata(history.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_to_be_kept_is_not() {
        let (_dir, history) = history();
        let long = "x".repeat(LONGEST + 1);
        for command in ["a", "a", " secret", "", &long, "b", "a"] {
            history.add(command).unwrap();
        }
        assert_eq!(history.load().unwrap(), ["a", "b", "a"]);
    }

    #[test]
    fn the_oldest_make_room() {
        let (_dir, history) = history();
        history.add("first").unwrap();
        let lines: String = (1..=MOST).map(|number| number.to_string() + "\n").collect();
        std::fs::write(history.path(), lines).unwrap();
        history.add("last").unwrap();
        let kept = history.load().unwrap();
        assert_eq!((kept.len(), kept[0].as_str(), kept[MOST - 1].as_str()), (MOST, "2", "last"));
    }

    #[test]
    fn shells_at_once_lose_nothing_of_each_others() {
        let (_dir, history) = history();
        std::thread::scope(|scope| {
            for shell in 0..4 {
                let history = &history;
                scope.spawn(move || {
                    for number in 0..10 {
                        history.add(&format!("{shell} {number}")).unwrap();
                    }
                });
            }
        });
        assert_eq!(history.load().unwrap().len(), 40);
    }

    #[test]
    fn what_is_no_history_is_left_alone() {
        let (_dir, history) = history();
        std::fs::create_dir_all(history.path()).unwrap();
        assert!(history.load().is_err() && history.add("a").is_err());
        assert!(history.path().is_dir());
    }
}
