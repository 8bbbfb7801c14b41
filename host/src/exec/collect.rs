//! Keeps the head and the tail of an output, counts the rest, and writes the whole to a file.
//!
//! The limit acts while reading: ten gigabytes of output cost no more memory than ten megabytes.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::outputs::Outputs;
use super::spill::Spill;

/// Takes output as it comes.
#[derive(Debug)]
pub struct Collector {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
    outputs: Outputs,
    spill: Option<Spill>,
    failed: Option<String>,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The output, or its head and tail with a line between them that counts what was left out.
    pub text: String,
    /// Bytes that came.
    pub total: u64,
    /// Bytes that are not in `text`.
    pub omitted: u64,
    /// Where the whole is, if `text` is not, or as much of it as was kept.
    pub path: Option<PathBuf>,
    /// Bytes that are in that file, from the beginning on.
    pub kept: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Kept {
    /// Says how much of the output is where, for a note: `all of it is in …`. None if nothing was kept.
    #[must_use]
    pub fn whereabouts(&self) -> Option<String> {
        let path = self.path.as_ref()?.display();
        Some(match self.kept {
            kept if kept >= self.total => format!("all of it is in `{path}`"),
            kept => format!("its first {kept} bytes are in `{path}`"),
        })
    }
}

impl Collector {
    /// Keeps at most `limit` bytes, two fifths of them from the beginning. The whole goes to a file of `outputs` once
    /// there is more.
    #[must_use]
    pub fn new(limit: usize, outputs: Outputs) -> Self {
        let head_limit = limit * 2 / 5;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            total: 0,
            outputs,
            spill: None,
            failed: None,
        }
    }

    /// Takes some output.
    pub fn take(&mut self, bytes: &[u8]) {
        let before = self.head.len() + self.tail.len();
        let whole_before = before as u64 == self.total;
        self.total += bytes.len() as u64;
        if whole_before && before + bytes.len() > self.head_limit + self.tail_limit {
            self.start_spill();
        }
        if let Some(spill) = &mut self.spill {
            spill.write(bytes);
        }
        let room = self.head_limit.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    fn start_spill(&mut self) {
        match Spill::new_in(&self.outputs) {
            Ok(mut spill) => {
                spill.write(&self.head);
                let (front, back) = self.tail.as_slices();
                spill.write(front);
                spill.write(back);
                self.spill = Some(spill);
            }
            Err(error) => {
                self.failed = Some(format!(
                    "the whole output could not be kept in `{}`: {error}",
                    self.outputs.dir.display()
                ));
            }
        }
    }

    /// Returns what was kept.
    #[must_use]
    pub fn finish(mut self) -> Kept {
        let warnings = self
            .failed
            .take()
            .into_iter()
            .chain(self.spill.as_mut().and_then(|spill| spill.cut.take()))
            .collect();
        let path = self.spill.as_ref().map(|spill| spill.path().to_owned());
        let kept = self.spill.as_ref().map_or(0, Spill::written);
        let tail = Vec::from(std::mem::take(&mut self.tail));
        if (self.head.len() + tail.len()) as u64 == self.total {
            let whole = [self.head, tail].concat();
            return Kept { text: lossy(&whole), total: self.total, omitted: 0, path, kept, warnings };
        }
        let head = &self.head[..self.head.len() - unfinished(&self.head)];
        let tail = &tail[tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count()..];
        let omitted = self.total - (head.len() + tail.len()) as u64;
        let gap = if head.last().is_none_or(|byte| *byte == b'\n') { "" } else { "\n" };
        let text =
            format!("{}{gap}[… {omitted} of {} bytes left out …]\n{}", lossy(head), self.total, lossy(tail));
        Kept { text, total: self.total, omitted, path, kept, warnings }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns how many bytes at the end begin a character that is not all there.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if !is_continuation(byte) {
            let needed = match byte {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            return if needed > back { back } else { 0 };
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn keep(limit: usize, pieces: &[&[u8]]) -> (Kept, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(limit, Outputs::in_dir(dir.path().join("outputs")));
        for piece in pieces {
            collector.take(piece);
        }
        (collector.finish(), dir)
    }

    #[test]
    fn what_fits_is_kept_whole_and_leaves_no_file() {
        let (kept, _dir) = keep(10, &[b"01234", b"56789"]);
        assert_eq!((kept.text.as_str(), kept.total, kept.omitted, kept.path), ("0123456789", 10, 0, None));
        assert_eq!(keep(10, &["€".as_bytes(), b"\xff"]).0.text, "€\u{fffd}");
    }

    #[test]
    fn head_and_tail_are_kept_and_the_whole_is_in_the_file() {
        let (kept, _dir) = keep(10, &[b"0123456", b"7", b"89abcdefgh", b"END"]);
        assert_eq!(kept.text, "0123\n[… 11 of 21 bytes left out …]\nfghEND");
        assert_eq!((kept.total, kept.omitted), (21, 11));
        let path = kept.path.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789abcdefghEND");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "€".repeat(20);
        for limit in 10..30 {
            let (kept, _dir) = keep(limit, &[text.as_bytes()]);
            assert!(!kept.text.contains('\u{fffd}'), "{limit}: {}", kept.text);
        }
    }

    #[test]
    fn an_output_that_cannot_be_kept_is_still_shown() {
        let mut collector = Collector::new(4, Outputs::in_dir("/dev/null/no".into()));
        collector.take(b"0123456789");
        let kept = collector.finish();
        assert!(kept.text.starts_with('0') && kept.path.is_none() && kept.warnings.len() == 1);
    }
}
