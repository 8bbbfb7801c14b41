//! Cleans a command's output, and passes plain lines by a shorter way.
//!
//! To know the last state of a line that is written over, each of its characters is put in its place, which costs some hundred times
//! what a copy costs. Of hundreds of megabytes next to nothing is ever written over: whole lines without a control
//! pass as they are, and so does the rest of a line that has become too long to be held.

use crate::exec::clean::Clean;
use crate::tools::shown::CLEAN;

/// Bytes of a line without any control after which it is not held any longer.
const LONG: usize = 64 * 1024;

/// How far behind its beginning an escape sequence may end.
const REACH: usize = 4096 + 8;

/// Cleans one output.
pub(super) struct Tidy {
    clean: Clean,
    /// How many bytes of the line stand in `clean`.
    held: usize,
    /// Within so many bytes a sequence may still end that has begun.
    reach: usize,
    /// Whether the line had a control.
    marked: bool,
    /// Whether the line is too long to be held.
    long: bool,
}

impl Default for Tidy {
    fn default() -> Self {
        Self { clean: Clean::new(CLEAN), held: 0, reach: 0, marked: false, long: false }
    }
}

impl Tidy {
    /// Returns what can be passed on of some more output.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            let passed = if self.held == 0 && self.reach == 0 { self.pass(rest, &mut out) } else { 0 };
            rest = &rest[passed..];
            let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let (line, behind) = rest.split_at(length);
            self.hold(line, &mut out);
            rest = behind;
        }
        out
    }

    /// Returns what was held back, once nothing more comes.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.clean.finish()
    }

    /// Passes on what is plain and need not be held, and returns how much that was.
    fn pass(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let plain = rest.iter().position(|byte| is_control(*byte)).unwrap_or(rest.len());
        let lines = rest[..plain].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Of a line that has been too long before, the rest follows.
        self.long &= lines == 0 && plain == rest.len();
        let passed = if self.long { plain } else { lines };
        out.extend_from_slice(&rest[..passed]);
        passed
    }

    /// Hands a line, or a part of one, to what looks closely.
    fn hold(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(last) = line.last() else { return };
        out.extend(self.clean.take(line));
        self.marked |= line.iter().any(|byte| is_control(*byte));
        let begun = line.iter().rposition(|byte| matches!(byte, 0x1b | 0xc2));
        self.reach = match begun {
            Some(at) => REACH.saturating_sub(line.len() - at),
            None => self.reach.saturating_sub(line.len()),
        };
        self.held += line.len();
        if *last == b'\n' {
            (self.held, self.marked) = (0, false);
        } else if self.held > LONG && !self.marked && self.reach == 0 {
            out.extend(self.clean.finish());
            (self.held, self.long) = (0, true);
        }
    }
}

/// Whether a byte is a control, or begins a character that may be one.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b..=0x1f | 0x7f | 0xc2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closely(bytes: &[u8]) -> Vec<u8> {
        let mut clean = Clean::new(CLEAN);
        let mut out = clean.take(bytes);
        out.extend(clean.finish());
        out
    }

    fn tidy<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut tidy = Tidy::default();
        let mut out: Vec<u8> = pieces.into_iter().flat_map(|piece| tidy.take(piece)).collect();
        out.extend(tidy.finish());
        out
    }

    #[test]
    fn the_shorter_way_comes_to_the_same() {
        let parts: [&[u8]; 18] = [
            b"plain\n",
            b"\n",
            b"half ",
            b"\t",
            b"10 %\r100 %",
            b"\r\n",
            b"\x1b[31mred\x1b[0m",
            b"\x1b]0;title",
            b"\x07",
            b"\x1b",
            b"[K",
            "\u{20ac}\u{e9}".as_bytes(),
            "\u{9b}2K".as_bytes(),
            b"\xe2\x82",
            b"\xff",
            b"\x08",
            b"\xc2",
            b"two\nlines\n",
        ];
        let mut seed = 7_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        for _ in 0..2000 {
            let text: Vec<u8> = (0..random(30)).flat_map(|_| parts[random(parts.len())].to_vec()).collect();
            let expected = closely(&text);
            assert_eq!(tidy([&text[..]]), expected, "{}", text.escape_ascii());
            let size = 1 + random(12);
            assert_eq!(tidy(text.chunks(size)), expected, "{} by {size}", text.escape_ascii());
        }
    }

    #[test]
    fn a_line_without_end_passes() {
        let text = [b"a".repeat(300_000), b"\nnext\rN\n".to_vec(), b"\xe2\x82\xac".repeat(100_000)].concat();
        for size in [1, 1000, 65_536, 1_000_000] {
            let mut expected = text.clone();
            let next = expected.windows(5).position(|window| window == b"next\r").unwrap();
            expected.splice(next..next + 6, *b"Next");
            let got = tidy(text.chunks(size));
            assert!(got == expected, "{size}: {} and {}", got.len(), expected.len());
        }
        let mut tidy = Tidy::default();
        let passed: usize = (0..100).map(|_| tidy.take(&b"x".repeat(10_000)).len()).sum();
        assert!(passed >= 1_000_000 - 80_000, "{passed}");
    }
}
