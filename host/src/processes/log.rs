//! Keeps the newest part of what a background process prints.
//!
//! It may print for months, and nobody may ever look. So the log is bounded: it lies in two files of half the size that is
//! allowed, and when the newer one is full it becomes the older one, which goes. Their names say at which byte and in which
//! line of the whole output each begins, so a reader knows what is missing without being told. A disk that is full costs
//! output and never the process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hostel_plugin_api::shell::open_lock;

/// What the names of the files begin with.
const PREFIX: &str = "log-";

/// Where a segment of the log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    /// Bytes in front of it.
    pub(super) offset: u64,
    /// Line ends in front of it.
    pub(super) lines: u64,
}

impl Start {
    pub(super) fn path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{PREFIX}{}-{}", self.offset, self.lines))
    }

    /// Returns the starts of the segments that are in `dir`, the oldest first.
    pub(super) fn all(dir: &Path) -> io::Result<Vec<Self>> {
        let name = |entry: fs::DirEntry| Self::parse(entry.file_name().to_str()?);
        let mut starts: Vec<Self> = fs::read_dir(dir)?.flatten().filter_map(name).collect();
        starts.sort_unstable();
        Ok(starts)
    }

    fn parse(name: &str) -> Option<Self> {
        let (offset, lines) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { offset: offset.parse().ok()?, lines: lines.parse().ok()? })
    }
}

/// Takes the output of one process.
#[derive(Debug)]
pub(super) struct LogWriter {
    dir: PathBuf,
    /// The most that one segment holds.
    half: u64,
    current: Option<Segment>,
    /// Where the next byte will be.
    end: Start,
    dropped: u64,
    reason: Option<io::Error>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    start: Start,
}

impl LogWriter {
    /// Writes into `dir`, and keeps at most `most` bytes there.
    pub(super) fn new(dir: &Path, most: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            half: (most / 2).max(1),
            current: None,
            end: Start { offset: 0, lines: 0 },
            dropped: 0,
            reason: None,
        }
    }

    /// Appends some output. What cannot be written is dropped.
    pub(super) fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => {
                    let (written, rest) = bytes.split_at(count);
                    self.end.offset += count as u64;
                    self.end.lines += line_ends(written);
                    bytes = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.dropped += bytes.len() as u64;
                    self.reason = Some(error);
                    return;
                }
            }
        }
    }

    /// Says what was dropped and why, if anything was.
    pub(super) fn complaint(&self) -> Option<String> {
        let reason = self.reason.as_ref()?;
        Some(format!("{} bytes of output could not be kept: {reason}", self.dropped))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = |segment: &Segment| self.end.offset - segment.start.offset >= self.half;
        if self.current.as_ref().is_none_or(full) {
            self.turn()?;
        }
        let Some(segment) = &mut self.current else { return Ok(0) };
        let room = self.half - (self.end.offset - segment.start.offset);
        let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        match segment.file.write(part)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        }
    }

    /// Begins a new segment, and removes all but the one before it.
    fn turn(&mut self) -> io::Result<()> {
        let start = self.end;
        let file = open_lock(&start.path(&self.dir))?;
        let before = self.current.replace(Segment { file, start }).map(|segment| segment.start);
        for old in Start::all(&self.dir).unwrap_or_default() {
            if old != start && Some(old) != before {
                // It is tried again at the next turn.
                let _ = fs::remove_file(old.path(&self.dir));
            }
        }
        Ok(())
    }
}

/// Counts the line ends in `bytes`.
pub(super) fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(dir: &Path) -> u64 {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::new(dir.path(), 100);
        for number in 0..1000 {
            log.append(format!("line {number}\n").as_bytes());
            assert!(size(dir.path()) <= 100);
        }
        let starts = Start::all(dir.path()).unwrap();
        assert_eq!(starts.len(), 2);
        assert_eq!(log.end.lines, 1000);
        let kept: Vec<u8> =
            starts.iter().flat_map(|start| fs::read(start.path(dir.path())).unwrap()).collect();
        assert!(kept.ends_with(b"line 999\n") && kept.len() > 50);
        assert_eq!(log.end.offset - starts[0].offset, kept.len() as u64);
        assert_eq!(log.end.lines - starts[0].lines, line_ends(&kept));
        assert!(log.complaint().is_none());
    }

    #[test]
    fn a_piece_larger_than_all_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::new(dir.path(), 10);
        log.append(&[b'x'; 1003]);
        assert!(size(dir.path()) <= 10);
        assert_eq!(log.end.offset, 1003);
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_no_more() {
        let mut log = LogWriter::new(Path::new("/dev/null/no"), 10);
        log.append(b"12345");
        log.append(b"678");
        assert!(log.complaint().unwrap().starts_with("8 bytes"));
    }
}
