//! Reads a log while it is being written.
//!
//! Segments come and go under a reader. It opens all that it will read at once: an open file stays whole after its name is
//! gone, and one that was gone before only makes the log begin later.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::log::{Start, line_ends};
use crate::home::open_regular;

/// How much is read in one go where only a part is looked for.
const PIECE: u64 = 64 * 1024;

/// The log as it stood at one moment.
#[derive(Debug)]
pub(super) struct LogReader {
    /// One behind the other, without gaps.
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    start: Start,
    end: u64,
    file: File,
}

/// Some lines of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    /// How many there are.
    pub(super) count: u64,
    /// How many the process has printed in all.
    pub(super) total: u64,
    /// The byte of the output at which they begin, and the one behind them.
    pub(super) span: (u64, u64),
}

impl LogReader {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let mut segments: Vec<Segment> = Vec::new();
        for start in Start::all(dir)? {
            let file = match open_regular(&start.path(dir)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let end = start.offset + file.metadata()?.len();
            // What is in front of a gap is older than what is kept.
            if segments.last().is_some_and(|last| last.end != start.offset) {
                segments.clear();
            }
            segments.push(Segment { start, end, file });
        }
        Ok(Self { segments })
    }

    /// Returns the first byte that is kept, which is also how many are not.
    pub(super) fn begin(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start.offset)
    }

    /// Returns how many bytes were printed.
    pub(super) fn end(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.end)
    }

    /// Returns at most `most` bytes from byte `from` of the output on, or from the first that is kept.
    pub(super) fn bytes(&self, from: u64, most: u64) -> io::Result<Vec<u8>> {
        let from = from.max(self.begin());
        let until = from.saturating_add(most).min(self.end());
        let mut bytes = Vec::new();
        for segment in &self.segments {
            let (first, last) = (from.max(segment.start.offset), until.min(segment.end));
            if first < last {
                let before = bytes.len();
                bytes.resize(before + usize::try_from(last - first).map_err(io::Error::other)?, 0);
                segment.file.read_exact_at(&mut bytes[before..], first - segment.start.offset)?;
            }
        }
        Ok(bytes)
    }

    /// Returns at most the last `most` bytes, and whether there is something in front of them.
    pub(super) fn tail(&self, most: u64) -> io::Result<(Vec<u8>, bool)> {
        let from = self.end().saturating_sub(most).max(self.begin());
        Ok((self.bytes(from, most)?, from > 0))
    }

    /// Returns the last `limit` lines. One that has not ended counts.
    pub(super) fn last_lines(&self, limit: u64) -> io::Result<Lines> {
        let end = self.end();
        let (mut from, mut found) = (end, 0);
        // The end of the last line is not the beginning of another.
        let last = end.saturating_sub(1);
        let mut position = last;
        'search: while limit > 0 && position > self.begin() {
            let start = position.saturating_sub(PIECE).max(self.begin());
            let piece = self.bytes(start, position - start)?;
            for (at, _) in piece.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
                found += 1;
                if found == limit {
                    from = start + at as u64 + 1;
                    break 'search;
                }
            }
            position = start;
        }
        if limit > 0 && found < limit {
            from = self.begin();
        }
        let total = self.total_lines()?;
        let bytes = self.bytes(from, end - from)?;
        Ok(Lines { count: count(&bytes), bytes, total, span: (from, end) })
    }

    /// Returns at most `limit` lines behind the first `skip` of the whole output.
    pub(super) fn lines_from(&self, skip: u64, limit: u64) -> io::Result<Lines> {
        let total = self.total_lines()?;
        let from = self.start_of(skip)?;
        let until = self.start_of(skip.max(self.first_line()).saturating_add(limit))?.max(from);
        let bytes = self.bytes(from, until - from)?;
        Ok(Lines { count: count(&bytes), bytes, total, span: (from, until) })
    }

    /// Returns the number of the first line of which something is kept, counted from 0.
    pub(super) fn first_line(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start.lines)
    }

    fn total_lines(&self) -> io::Result<u64> {
        let Some(last) = self.segments.last() else { return Ok(0) };
        let bytes = self.bytes(last.start.offset, last.end - last.start.offset)?;
        let unfinished = match bytes.last() {
            Some(byte) => *byte != b'\n',
            // Begun and not written to yet: what is in front of it says.
            None => last.end > self.begin() && self.bytes(last.end - 1, 1)? != b"\n",
        };
        Ok(last.start.lines + line_ends(&bytes) + u64::from(unfinished))
    }

    /// Returns the byte at which line `line` begins, counted from 0; the end if there is no such line, and the first byte that is
    /// kept if the line is older.
    fn start_of(&self, line: u64) -> io::Result<u64> {
        if line <= self.first_line() {
            return Ok(self.begin());
        }
        let holds = |segment: &&Segment| segment.start.lines < line;
        let Some(segment) = self.segments.iter().rev().find(holds) else { return Ok(self.begin()) };
        let (mut seen, mut position) = (segment.start.lines, segment.start.offset);
        while position < segment.end {
            let piece = self.bytes(position, PIECE.min(segment.end - position))?;
            for (at, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                seen += 1;
                if seen == line {
                    return Ok(position + at as u64 + 1);
                }
            }
            position += piece.len() as u64;
        }
        Ok(self.end())
    }
}

/// Counts lines, of which the last need not have ended.
fn count(bytes: &[u8]) -> u64 {
    line_ends(bytes) + u64::from(bytes.last().is_some_and(|byte| *byte != b'\n'))
}

#[cfg(test)]
mod tests {
    use super::super::log::LogWriter;
    use super::*;

    fn log(most: u64, text: &str) -> (tempfile::TempDir, LogReader) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::new(dir.path(), most);
        text.as_bytes().chunks(7).for_each(|piece| log.append(piece));
        let reader = LogReader::open(dir.path()).unwrap();
        (dir, reader)
    }

    fn numbered(count: u64) -> String {
        (0..count).map(|number| number.to_string() + "\n").collect()
    }

    #[test]
    fn a_log_that_nothing_was_written_to_is_empty() {
        let (_dir, log) = log(100, "");
        assert_eq!((log.begin(), log.end(), log.bytes(3, 9).unwrap()), (0, 0, Vec::new()));
        assert_eq!(log.last_lines(5).unwrap().total, 0);
        assert_eq!(log.lines_from(5, 5).unwrap().count, 0);
    }

    #[test]
    fn lines_are_found_from_both_ends() {
        let text = numbered(100);
        let (_dir, log) = log(10_000, &text);
        let last = log.last_lines(3).unwrap();
        assert_eq!((last.bytes, last.count, last.total), (b"97\n98\n99\n".to_vec(), 3, 100));
        assert_eq!(last.span, (text.len() as u64 - 9, text.len() as u64));
        assert_eq!(log.last_lines(0).unwrap().count, 0);
        assert_eq!(log.last_lines(1000).unwrap().bytes, text.as_bytes());
        assert_eq!(log.lines_from(9, 2).unwrap().bytes, b"9\n10\n");
        assert_eq!(log.lines_from(98, 200).unwrap().bytes, b"98\n99\n");
        assert_eq!(log.lines_from(100, 200).unwrap().bytes, b"");
    }

    #[test]
    fn a_line_that_has_not_ended_counts() {
        let (_dir, log) = log(100, "a\nb");
        let last = log.last_lines(1).unwrap();
        assert_eq!((last.bytes, last.count, last.total), (b"b".to_vec(), 1, 2));
        assert_eq!(log.last_lines(2).unwrap().bytes, b"a\nb");
    }

    #[test]
    fn what_is_gone_shows_in_the_numbers() {
        let text = numbered(1000);
        let (_dir, log) = log(200, &text);
        assert!(log.begin() > 0);
        let kept = &text.as_bytes()[usize::try_from(log.begin()).unwrap()..];
        assert_eq!(log.bytes(0, u64::MAX).unwrap(), kept);
        let lines = log.lines_from(1, 1000).unwrap();
        assert_eq!((lines.bytes.as_slice(), lines.total), (kept, 1000));
        assert_eq!(log.lines_from(998, 1).unwrap().bytes, b"998\n");
        assert_eq!(log.last_lines(1).unwrap().bytes, b"999\n");
        assert_eq!(log.tail(3).unwrap(), (b"99\n".to_vec(), true));
    }
}
