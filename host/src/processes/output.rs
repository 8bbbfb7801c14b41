//! Shows the output of a process: its end, some of its lines, or its bytes.

use std::io;

use super::error::ProcessError;
use super::folder::Folder;
use super::manager::Processes;
use super::notices;
use super::reader::LogReader;
use super::record::Record;
use super::text::{decode, last, trim};
use super::view::{BytesView, LogView};

/// How far back the beginning of a line is looked for, in bytes.
const LONGEST_LINE: u64 = 4096;

/// Which lines of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// How many lines to pass over; 0 stands for the last lines.
    pub offset: u64,
    /// How many lines at the most.
    pub limit: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Self { offset: 0, limit: 200 }
    }
}

/// Returns at most the last `most` characters of a process's output. What cannot be read shows as nothing.
pub(super) fn preview(folder: &Folder, record: &Record, most: usize) -> String {
    let tail = LogReader::open(folder.path()).and_then(|log| log.tail(4 * most as u64 + 4));
    let (bytes, before) = tail.unwrap_or_default();
    last(&decode(&bytes, before, record.is_running()), most).to_owned()
}

/// Returns the byte at which the line begins that a process is printing. Of one that is very long it is a later one.
pub(super) fn last_line(folder: &Folder) -> io::Result<u64> {
    let log = LogReader::open(folder.path())?;
    let (tail, _) = log.tail(LONGEST_LINE)?;
    let line = tail.iter().rev().position(|byte| *byte == b'\n').unwrap_or(tail.len());
    Ok(log.end() - line as u64)
}

impl Processes {
    /// Returns some lines of a process's output.
    ///
    /// # Errors
    ///
    /// As [`Self::get`], and if the log cannot be read.
    pub fn log(&self, id: &str, lines: Lines) -> Result<LogView, ProcessError> {
        // First: once this says that it has ended, the log is whole.
        let (folder, record) = self.find(id)?;
        let read = || -> io::Result<_> {
            let log = LogReader::open(folder.path())?;
            let found = match lines.offset {
                0 => log.last_lines(lines.limit)?,
                skip => log.lines_from(skip, lines.limit)?,
            };
            Ok((log.begin(), log.end(), found))
        };
        let (begin, end, found) = read().map_err(|error| unreadable(id, error))?;
        let (from, until) = found.span;
        let reached_end = until == end;
        if reached_end && !record.is_running() {
            notices::consume_completion(&folder);
        }
        let more = reached_end && record.is_running();
        let held = found.bytes.len() - trim(&found.bytes, false, more).len();
        Ok(LogView {
            session_id: record.id,
            status: record.status,
            output: decode(&found.bytes, from == begin && begin > 0, more),
            bytes: found.bytes,
            end_bytes: until,
            total_lines: found.total,
            showing: format!("{} lines", found.count),
            next_offset_bytes: until - held as u64,
            dropped_bytes: begin,
        })
    }

    /// Returns at most `most` bytes of a process's output, from byte `from` of the whole output on.
    ///
    /// # Errors
    ///
    /// As [`Self::log`].
    pub fn log_bytes(&self, id: &str, from: u64, most: u64) -> Result<BytesView, ProcessError> {
        let (folder, record) = self.find(id)?;
        let read = || -> io::Result<_> {
            let log = LogReader::open(folder.path())?;
            Ok((log.begin(), log.end(), log.bytes(from, most)?))
        };
        let (begin, end, bytes) = read().map_err(|error| unreadable(id, error))?;
        let start = from.max(begin);
        let reached_end = start + bytes.len() as u64 >= end;
        if reached_end && !record.is_running() {
            notices::consume_completion(&folder);
        }
        let mut whole = trim(&bytes, false, !reached_end || record.is_running());
        if whole.is_empty() && !reached_end {
            // So little was asked for that no character fits: bytes are better than no way on.
            whole = &bytes;
        }
        Ok(BytesView {
            session_id: record.id,
            status: record.status,
            output: decode(whole, start > from, false),
            offset_bytes: start,
            next_offset_bytes: start + whole.len() as u64,
            dropped_bytes: begin,
            bytes,
        })
    }
}

pub(super) fn unreadable(id: &str, error: io::Error) -> ProcessError {
    ProcessError::io(format!("failed to read the log of process `{id}`"), error)
}

#[cfg(test)]
mod tests {
    use super::super::log::LogWriter;
    use super::*;
    use crate::home::Home;
    use crate::processes::record::Status;
    use crate::processes::record::tests::sample;

    /// A process that prints this, and has ended or has not.
    fn process(dir: &tempfile::TempDir, text: &[u8], status: Status) -> (Processes, String, std::fs::File) {
        let home = Home::at(dir.path().join("home")).unwrap();
        let record = Record { status, ..sample() };
        let folder = Folder::of(&home, &record.id);
        folder.create().unwrap();
        let lock = folder.keep().unwrap();
        folder.write_record(&record).unwrap();
        LogWriter::new(folder.path(), 1000).append(text);
        (Processes::new(home), record.id.to_string(), lock)
    }

    #[test]
    fn a_character_that_is_not_all_there_is_left_for_later() {
        let dir = tempfile::tempdir().unwrap();
        let text = b"ab\xf0\x9f";
        let (processes, id, _lock) = process(&dir, text, Status::Running);
        let log = processes.log(&id, Lines::default()).unwrap();
        assert_eq!((log.output.as_str(), log.next_offset_bytes), ("ab", 2));
        assert_eq!(log.bytes, text);
        assert_eq!(processes.poll(&id).unwrap().output_preview, "ab");
        let bytes = processes.log_bytes(&id, 1, 100).unwrap();
        assert_eq!((bytes.output.as_str(), bytes.next_offset_bytes), ("b", 2));
        let dir = tempfile::tempdir().unwrap();
        let (processes, id, _lock) = process(&dir, text, Status::Exited);
        assert_eq!(processes.log(&id, Lines::default()).unwrap().output, "ab\u{fffd}");
    }

    #[test]
    fn the_line_that_is_being_printed_is_found() {
        for (text, at) in [("", 0), ("ab", 0), ("ab\n", 3), ("ab\nc", 3), ("ab\n\n", 4)] {
            let dir = tempfile::tempdir().unwrap();
            let (processes, id, _lock) = process(&dir, text.as_bytes(), Status::Running);
            let folder = processes.find(&id).unwrap().0;
            assert_eq!(last_line(&folder).unwrap(), at, "{text:?}");
        }
    }

    #[test]
    fn reading_on_makes_progress_whatever_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (processes, id, _lock) = process(&dir, "a€😀".as_bytes(), Status::Exited);
        for most in 1..9 {
            let (mut from, mut rounds) = (0, 0);
            while from < 8 {
                from = processes.log_bytes(&id, from, most).unwrap().next_offset_bytes;
                rounds += 1;
                assert!(rounds <= 8, "{most}");
            }
        }
    }

    #[test]
    fn previews_count_characters() {
        let dir = tempfile::tempdir().unwrap();
        let (processes, id, _lock) = process(&dir, "€".repeat(300).as_bytes(), Status::Running);
        assert_eq!(processes.list().unwrap()[0].output_preview, "€".repeat(200));
        assert!(matches!(processes.poll("proc_000000000000"), Err(ProcessError::NotFound(_))));
        assert!(matches!(processes.poll("../x"), Err(ProcessError::NotFound(_))));
        assert_eq!(processes.poll(&id).unwrap().output_preview.chars().count(), 300);
    }
}
