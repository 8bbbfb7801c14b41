//! Cleans what a command prints for readers that are no terminal.
//!
//! Colours, window titles and cursor movements are noise to an agent and in a log, and a progress bar is a hundred lines
//! where a person sees one. Here the sequences go, and of a line that was written over the last state remains. What is
//! meant for a person's terminal goes through `screen.rs` instead, which shows what it does not let pass.

use super::line::Line;
use super::sequences::{Piece, Sequences};

/// What is cleaned. Without any, output passes as it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Removes escape sequences, and all controls but `\t`, `\n` and `\r`.
    pub strip_ansi: bool,
    /// Keeps only the last state of a line that was written over after `\r`, backspace or a sequence that moves within the
    /// line; `\r\n` becomes `\n`. A line is then held until it ends, or is longer than 64 KiB. Sequences that are not
    /// stripped stay with the character that they stand in front of, and go with it.
    pub collapse_cr: bool,
}

/// Cleans output as it comes. Text passes unchanged, and so do bytes that are no UTF-8. Where chunks end makes no
/// difference.
#[derive(Debug, Default)]
pub struct Clean {
    options: Options,
    sequences: Sequences,
    line: Line,
}

impl Clean {
    /// Cleans as these options say.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns what can be said of the output so far.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        if !self.options.strip_ansi && !self.options.collapse_cr {
            return bytes.to_vec();
        }
        let mut out = Vec::with_capacity(bytes.len());
        let Self { options, sequences, line } = self;
        sequences.take(bytes, &mut |piece| options.pass(piece, line, &mut out));
        out
    }

    /// Returns what was held back, once there is no more output.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let Self { options, sequences, line } = self;
        sequences.finish(&mut |piece| options.pass(piece, line, &mut out));
        line.flush(&mut out);
        out
    }
}

impl Options {
    fn pass(self, piece: Piece<'_>, line: &mut Line, out: &mut Vec<u8>) {
        if !self.collapse_cr {
            match piece {
                Piece::Run(bytes) | Piece::Character(bytes) => out.extend(bytes),
                Piece::Control(byte @ (b'\t' | b'\n' | b'\r')) => out.push(byte),
                Piece::Control(_) | Piece::Sequence(_) => {}
            }
            return;
        }
        match piece {
            Piece::Run(bytes) => bytes.iter().for_each(|byte| line.write(&[*byte], out)),
            Piece::Character(bytes) => line.write(bytes, out),
            Piece::Control(byte) => {
                if !line.control(byte, out) && !self.strip_ansi {
                    line.keep(&[byte], out);
                }
            }
            Piece::Sequence(bytes) => {
                if !line.sequence(bytes) && !self.strip_ansi {
                    line.keep(bytes, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIP: Options = Options { strip_ansi: true, collapse_cr: false };
    const COLLAPSE: Options = Options { strip_ansi: false, collapse_cr: true };
    const BOTH: Options = Options { strip_ansi: true, collapse_cr: true };
    const ALL: [Options; 4] = [Options { strip_ansi: false, collapse_cr: false }, STRIP, COLLAPSE, BOTH];

    fn clean<'a>(options: Options, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut clean = Clean::new(options);
        let mut out: Vec<u8> = pieces.into_iter().flat_map(|piece| clean.take(piece)).collect();
        out.extend(clean.finish());
        out
    }

    #[test]
    fn sequences_go_and_text_stays() {
        let cases: [(&[u8], &[u8]); 8] = [
            (b"\x1b[1;31mred\x1b[0m\n", b"red\n"),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"alink"),
            (b"a\x07b\x00c\x7fd\x0be", b"abcde"),
            (b"50 %\r100 %\r\n", b"50 %\r100 %\r\n"),
            ("\u{9b}31mä\u{85}€".as_bytes(), "ä€".as_bytes()),
            (b"\xff\x1b[m\xfe\xe2\x82", b"\xff\xfe\xe2\x82"),
            (b"\x1b]0;never ended\nnext", b"]0;never ended\nnext"),
            (b"\x1b(B\x1b7\x1bPdata\x1b\\x", b"x"),
        ];
        for (bytes, expected) in cases {
            let cleaned = clean(STRIP, [bytes]);
            assert_eq!(cleaned, expected, "{} gave {}", bytes.escape_ascii(), cleaned.escape_ascii());
        }
    }

    #[test]
    fn erasing_is_seen_before_it_is_stripped() {
        let text = b"\x1b[32mlonger text\x1b[0m\r\x1b[Kok\r\nabc\x1b[2K\x1b[1Gd\n";
        assert_eq!(clean(BOTH, [&text[..]]), b"ok\nd\n");
        assert_eq!(clean(STRIP, [&text[..]]), b"longer text\rok\r\nabcd\n");
        assert_eq!(clean(COLLAPSE, [&b"\x1b[31ma\x07b\x1b[0m\n"[..]]), b"\x1b[31ma\x07b\x1b[0m\n");
    }

    #[test]
    fn plain_text_is_unchanged() {
        let text =
            format!("plain\ttext\t\n\n  äöü € \u{a0}\u{1f600} \n{}\nend", "long line\t ü".repeat(20_000));
        for options in ALL {
            assert!(clean(options, [text.as_bytes()]) == text.as_bytes(), "{options:?}");
            assert!(clean(options, text.as_bytes().chunks(4093)) == text.as_bytes(), "{options:?}");
        }
    }

    #[test]
    fn where_chunks_end_makes_no_difference() {
        let text = "a\x1b[1;31mb\r\n\x1b]0;t\u{e9}\x1b\\c\u{9b}2Kd\r\u{20ac}\x08\tx\u{9d}y\u{9c}\x1b\x1b(B\x1bPq\x07z\x1b[K\u{1f600}\x1b]un";
        let text = [text.as_bytes(), b"\xe2\x82"].concat();
        for options in ALL {
            let whole = clean(options, [&text[..]]);
            for cut in 0..=text.len() {
                let (front, back) = text.split_at(cut);
                assert_eq!(clean(options, [front, back]), whole, "{options:?}, cut at {cut}");
            }
            assert_eq!(clean(options, text.chunks(1)), whole, "{options:?}");
        }
    }

    #[test]
    fn any_input_is_taken_and_text_stays_text() {
        const PARTS: [&str; 24] = [
            "a",
            "bc ",
            "\u{e9}",
            "\u{20ac}",
            "\u{1f600}",
            "\n",
            "\r",
            "\t",
            "\x08",
            "\x1b",
            "[",
            "]",
            "P",
            "\\",
            "1",
            ";",
            "m",
            "K",
            "G",
            "C",
            "\x07",
            "\u{9b}",
            "\u{9c}",
            "\u{9d}",
        ];
        let mut seed = 1_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        for _ in 0..300 {
            let mut text: Vec<u8> =
                (0..random(200)).flat_map(|_| PARTS[random(PARTS.len())].bytes()).collect();
            if random(20) == 0 {
                text = text.repeat(30);
            }
            for options in ALL {
                let whole = clean(options, [&text[..]]);
                assert!(std::str::from_utf8(&whole).is_ok(), "{options:?}: {}", text.escape_ascii());
                assert!(!options.strip_ansi || !whole.contains(&0x1b));
                assert_eq!(
                    clean(options, text.chunks(1 + random(9))),
                    whole,
                    "{options:?}: {}",
                    text.escape_ascii()
                );
            }
            let mut broken = text;
            for byte in &mut broken {
                *byte ^= u8::from(random(9) == 0) * 0x80;
            }
            let whole = clean(BOTH, [&broken[..]]);
            assert_eq!(clean(BOTH, broken.chunks(1)), whole, "{}", broken.escape_ascii());
        }
    }
}
