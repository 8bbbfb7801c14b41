//! The line ends of a text: which of its lines end in `\r\n`, and what they become when it is edited.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Edit;

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Lf,
    CrLf,
}

/// The line ends of a text, one for each `\n` in it.
#[derive(Debug, Clone)]
pub(super) struct Endings {
    all: Vec<Ending>,
}

/// What stands around a part that is replaced.
struct Around {
    before: Option<Ending>,
    after: Option<Ending>,
    usual: Ending,
}

impl Endings {
    /// Takes the line ends out of a text.
    pub(super) fn split(text: String) -> (String, Self) {
        let mut all = Vec::new();
        let mut at = 0;
        let bytes = text.as_bytes();
        while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
            at += length;
            all.push(if at > 0 && bytes[at - 1] == b'\r' { Ending::CrLf } else { Ending::Lf });
            at += 1;
        }
        let text = if all.contains(&Ending::CrLf) { text.replace("\r\n", "\n") } else { text };
        (text, Self { all })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn has_crlf(&self) -> bool {
        self.all.contains(&Ending::CrLf)
    }

    /// Returns the bytes of the line end of that number.
    pub(super) fn at(&self, number: usize) -> &'static [u8] {
        match self.all.get(number) {
            Some(Ending::CrLf) => b"\r\n",
            _ => b"\n",
        }
    }

    /// Returns the more frequent one; the first if there are as many of both.
    fn usual(&self) -> Ending {
        let crlf = self.all.iter().filter(|ending| **ending == Ending::CrLf).count();
        match (crlf * 2).cmp(&self.all.len()) {
            std::cmp::Ordering::Less => Ending::Lf,
            std::cmp::Ordering::Equal => self.all.first().copied().unwrap_or(Ending::Lf),
            std::cmp::Ordering::Greater => Ending::CrLf,
        }
    }

    /// Returns the line ends after these edits of `text`.
    pub(super) fn edited(&self, text: &str, edits: &[Edit]) -> Self {
        let usual = self.usual();
        let mut left = self.all.clone();
        let mut all = Vec::with_capacity(left.len());
        let (mut at, mut line) = (0, 0);
        for edit in edits {
            let first = line + count(&text[at..edit.range.start]);
            all.extend_from_slice(&left[line..first]);
            let old = &text[edit.range.clone()];
            line = first + count(old);
            at = edit.range.end;
            let around = Around { before: all.last().copied(), after: left.get(line).copied(), usual };
            all.extend(around.endings_of(&edit.new, old, &left[first..line]));
            // What comes has brought the first half of the line end that follows it.
            if edit.new.ends_with('\r') && !old.ends_with('\r') && text[at..].starts_with('\n') {
                left[line] = Ending::Lf;
            }
        }
        all.extend_from_slice(&left[line..]);
        Self { all }
    }
}

impl Around {
    /// Returns the line ends of `new`, which comes in place of `old` with these line ends.
    fn endings_of(&self, new: &str, old: &str, ends: &[Ending]) -> Vec<Ending> {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
        // The last line of the part was cut, and ends after it; one at the very end has only what stands before it.
        let nearby = self.after.or(self.before).unwrap_or(self.usual);
        let mut found = if ends.iter().all(|end| *end == nearby) {
            vec![nearby; new.len()]
        } else {
            line_by_line(&old, &[ends, &[nearby]].concat(), &new)
        };
        for (ending, line) in found.iter_mut().zip(&new) {
            // It has brought its own.
            if line.ends_with('\r') && !old.contains(line) {
                *ending = Ending::Lf;
            }
        }
        found.truncate(new.len() - 1);
        found
    }
}

fn line_by_line(old: &[&str], ends: &[Ending], new: &[&str]) -> Vec<Ending> {
    let mut found = Vec::with_capacity(new.len());
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                found.extend_from_slice(&ends[old_index..old_index + len]);
            }
            DiffOp::Replace { old_index, old_len, new_len, .. } => {
                let replaced = &ends[old_index..old_index + old_len];
                found.extend((0..new_len).map(|at| replaced[at.min(old_len - 1)]));
            }
            DiffOp::Insert { old_index, new_len, .. } => {
                let before = found.last().copied().unwrap_or(ends[old_index.min(ends.len() - 1)]);
                found.extend(std::iter::repeat_n(before, new_len));
            }
            DiffOp::Delete { .. } => {}
        }
    }
    found
}

fn count(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
