//! Tells the text of a terminal's output from its escape sequences.
//!
//! Output comes in chunks that end anywhere, also within a sequence or a character, and it need not be meant for a
//! terminal at all: what looks like the beginning of a sequence in a binary file must not swallow the rest. The grammar is
//! that of ECMA-48, with the C1 controls in their two forms that UTF-8 leaves: ESC and a letter, and U+0080 to U+009F.

/// Bytes of a sequence that are waited for. One that has not ended by then is text.
const LONGEST: usize = 4096;

/// A part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Printable ASCII.
    Run(&'a [u8]),
    /// Another character, or one byte that is no UTF-8.
    Character(&'a [u8]),
    /// A C0 control that stands by itself, or DEL.
    Control(u8),
    /// An escape sequence or a C1 control. One that was broken off is not whole, but a terminal does not show it either.
    Sequence(&'a [u8]),
}

/// Splits output into pieces. Keeps what has not ended from one chunk to the next.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    state: State,
    /// The sequence or character that is being read.
    held: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Within a character of so many bytes.
    Character(usize),
    /// After ESC.
    Escape,
    /// After ESC and intermediate bytes.
    Intermediate,
    /// Within a control sequence (CSI).
    Control,
    /// Within an operating system command (OSC), which BEL may end.
    Command,
    /// Within another control string (DCS, SOS, PM, APC).
    String,
    /// After an ESC within a string, which is not held yet.
    StringEscape,
}

impl Sequences {
    /// Hands on the pieces of some more output.
    pub(super) fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            let run = match self.state {
                State::Text => rest.iter().take_while(|byte| matches!(byte, 0x20..=0x7e)).count(),
                _ => 0,
            };
            if run > 0 {
                each(Piece::Run(&rest[..run]));
                rest = &rest[run..];
            } else {
                self.step(*first, true, each);
                rest = after;
            }
        }
    }

    /// Hands on what was held back: a string that never ended is text.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        match self.state {
            State::Command | State::String => self.give_up(each),
            State::StringEscape => {
                self.give_up(each);
                self.broken_character(each);
                each(Piece::Sequence(b"\x1b"));
            }
            State::Escape | State::Intermediate | State::Control => self.end(each),
            State::Text | State::Character(_) => {}
        }
        self.broken_character(each);
    }

    /// `may_begin` is false for what was a sequence that did not end: it cannot hold another one.
    fn step(&mut self, byte: u8, may_begin: bool, each: &mut impl FnMut(Piece<'_>)) {
        match (self.state, byte) {
            (State::Text, _) => self.begin(byte, each),
            (State::Character(length), 0x80..=0xbf) => {
                self.held.push(byte);
                if self.held.len() == length {
                    self.character(may_begin, each);
                }
            }
            (State::Character(_), _) => {
                self.broken_character(each);
                self.begin(byte, each);
            }
            (State::Command | State::String, 0x1b) => self.state = State::StringEscape,
            (State::Command | State::String, 0x18 | 0x1a) => {
                self.end(each);
                each(Piece::Control(byte));
            }
            (State::Command, 0x07) => self.last(&[byte], each),
            (State::Command | State::String, 0x9c) if self.held.last() == Some(&0xc2) => {
                self.last(&[byte], each);
            }
            (State::StringEscape, b'\\') => self.last(b"\x1b\\", each),
            // A string ends where another sequence begins.
            (State::StringEscape, _) => {
                self.end(each);
                self.begin(0x1b, each);
                self.step(byte, may_begin, each);
            }
            (State::Escape, b'[') => self.hold(byte, State::Control, each),
            (State::Escape, b']') => self.hold(byte, State::Command, each),
            (State::Escape, b'P' | b'X' | b'^' | b'_') => self.hold(byte, State::String, each),
            (State::Escape | State::Intermediate, 0x20..=0x2f) => self.hold(byte, State::Intermediate, each),
            (State::Escape | State::Intermediate, 0x30..=0x7e) | (State::Control, 0x40..=0x7e) => {
                self.last(&[byte], each);
            }
            (State::Command | State::String, _) | (State::Control, 0x20..=0x3f) => {
                self.hold(byte, self.state, each);
            }
            (State::Escape | State::Intermediate | State::Control, _) => {
                self.end(each);
                self.begin(byte, each);
            }
        }
    }

    fn begin(&mut self, byte: u8, each: &mut impl FnMut(Piece<'_>)) {
        self.state = match byte {
            0x1b => State::Escape,
            0xc2..=0xdf => State::Character(2),
            0xe0..=0xef => State::Character(3),
            0xf0..=0xf4 => State::Character(4),
            0x20..=0x7e => return each(Piece::Run(&[byte])),
            0..=0x1f | 0x7f => return each(Piece::Control(byte)),
            _ => return each(Piece::Character(&[byte])),
        };
        self.held.push(byte);
    }

    /// Hands on a character that is all there, or begins the sequence that it introduces.
    fn character(&mut self, may_begin: bool, each: &mut impl FnMut(Piece<'_>)) {
        match std::str::from_utf8(&self.held).map(|text| text.chars().next()) {
            Ok(Some(control @ '\u{80}'..='\u{9f}')) => match control {
                '\u{9b}' if may_begin => self.state = State::Control,
                '\u{9d}' if may_begin => self.state = State::Command,
                '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' if may_begin => self.state = State::String,
                _ => self.end(each),
            },
            Ok(_) => {
                each(Piece::Character(&self.held));
                self.reset();
            }
            Err(_) => self.broken_character(each),
        }
    }

    /// Hands on the bytes of a character that is not all there.
    fn broken_character(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        self.held.iter().for_each(|byte| each(Piece::Character(&[*byte])));
        self.reset();
    }

    fn hold(&mut self, byte: u8, state: State, each: &mut impl FnMut(Piece<'_>)) {
        self.held.push(byte);
        self.state = state;
        if self.held.len() > LONGEST {
            self.give_up(each);
        }
    }

    fn last(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        self.held.extend(bytes);
        self.end(each);
    }

    fn end(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        each(Piece::Sequence(&self.held));
        self.reset();
    }

    /// Takes what is held for text after all, except for what introduced it.
    fn give_up(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.reset();
        let (introducer, text) = held.split_at(if held.first() == Some(&0x1b) { 1 } else { 2 });
        each(Piece::Sequence(introducer));
        for byte in text {
            self.step(*byte, false, each);
        }
    }

    fn reset(&mut self) {
        self.state = State::Text;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Marks sequences with `<>` and controls with `{}`.
    fn marked(bytes: &[u8]) -> String {
        let (mut text, mut sequences) = (String::new(), Sequences::default());
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Run(bytes) | Piece::Character(bytes) => text.push_str(&bytes.escape_ascii().to_string()),
            Piece::Control(byte) => write!(text, "{{{byte:02x}}}").unwrap(),
            Piece::Sequence(bytes) => write!(text, "<{}>", bytes[1..].escape_ascii()).unwrap(),
        };
        sequences.take(bytes, &mut each);
        sequences.finish(&mut each);
        assert!(sequences.held.is_empty() && sequences.state == State::Text);
        text
    }

    #[test]
    fn every_kind_of_sequence_is_told_from_text() {
        let cases: [(&[u8], &str); 18] = [
            (b"a\x1b[1;31mb\x1b[0m", "a<[1;31m>b<[0m>"),
            (b"\x1b[?25l\x1b[>4;2m\x1b[2 qx", "<[?25l><[>4;2m><[2 q>x"),
            (b"\x1b]0;t\x07x\x1b]8;;u\x1b\\y", "<]0;t\\x07>x<]8;;u\\x1b\\\\>y"),
            (
                b"\x1bPq\x07#\x1b\\x\x1b_a\x1b\\\x1b^p\x1b\\\x1bXs\x1b\\",
                "<Pq\\x07#\\x1b\\\\>x<_a\\x1b\\\\><^p\\x1b\\\\><Xs\\x1b\\\\>",
            ),
            (b"\x1b7\x1b=\x1b(B\x1b#8x", "<7><=><(B><#8>x"),
            ("\u{9b}31mx\u{9d}t\u{9c}y\u{85}z".as_bytes(), "<\\x9b31m>x<\\x9dt\\xc2\\x9c>y<\\x85>z"),
            (b"\x07a\x7f\x00", "{07}a{7f}{00}"),
            (b"\x9b31m\xff", "\\x9b31m\\xff"),
            // A sequence within another, and cancelled ones.
            (b"\x1b\x1b[1mx", "<><[1m>x"),
            (b"\x1b]0;t\x1b[1mx", "<]0;t><[1m>x"),
            (b"\x1b]0;t\x18x\x1b[3\x1ax", "<]0;t>{18}x<[3>{1a}x"),
            (b"\x1b[3\nx\x1b[1\xc3\xa9", "<[3>{0a}x<[1>\\xc3\\xa9"),
            // Nothing ends them.
            (b"x\x1b", "x<>"),
            (b"x\x1b[12", "x<[12>"),
            (b"\x1b]0;a\nb", "<>]0;a{0a}b"),
            (b"\x1b]0;a\x1b", "<>]0;a<>"),
            ("\u{9d}a\u{9b}b\u{20ac}".as_bytes(), "<\\x9d>a<\\x9b>b\\xe2\\x82\\xac"),
            (b"x\xe2\x82", "x\\xe2\\x82"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(marked(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_string_that_does_not_end_soon_is_text() {
        let fits = format!("\x1b]{}\x07x", "a".repeat(4000));
        assert!(marked(fits.as_bytes()).ends_with("a\\x07>x"));
        let long = format!("\x1b]{}\x07x", "a".repeat(5000));
        assert_eq!(marked(long.as_bytes()), format!("<>]{}{{07}}x", "a".repeat(5000)));
        let long = format!("\x1b[{}mx", "1".repeat(5000));
        assert_eq!(marked(long.as_bytes()), format!("<>[{}mx", "1".repeat(5000)));
    }
}
