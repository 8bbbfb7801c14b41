//! Makes a command's output safe for a person's terminal.
//!
//! Output is data, but a terminal obeys it: it can retitle the window, write into the clipboard, clear what was on the
//! screen, or hide a line behind another. Colours pass. Every other control is shown in the notation of `cat -v` instead of
//! being obeyed, except for line breaks, tabs, and carriage returns that a line break follows.

use std::io::{self, Write};

/// Passes output on to a terminal.
pub struct Screen<W> {
    out: W,
    state: State,
    /// The escape sequence that is being read, or the beginning of a character.
    held: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After a carriage return.
    Return,
    /// After ESC.
    Escape,
    /// Within `ESC [ …`.
    Control,
    /// Within a character of several bytes that could be a C1 control (`0xC2`).
    Wide,
}

/// The longest colour sequence that anybody needs.
const LONGEST: usize = 64;

impl<W: Write> Screen<W> {
    /// Passes output on to `out`.
    pub fn new(out: W) -> Self {
        Self { out, state: State::Text, held: Vec::new() }
    }

    /// Passes some bytes on.
    ///
    /// # Errors
    ///
    /// Fails as the terminal does.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut safe = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut safe);
        }
        self.out.write_all(&safe)?;
        self.out.flush()
    }

    /// Shows what was held back.
    ///
    /// # Errors
    ///
    /// Fails as the terminal does.
    pub fn finish(&mut self) -> io::Result<()> {
        let mut safe = Vec::new();
        self.give_up(&mut safe);
        self.out.write_all(&safe)?;
        self.out.flush()
    }

    fn take(&mut self, byte: u8, safe: &mut Vec<u8>) {
        match (self.state, byte) {
            (State::Return, b'\n') => {
                safe.extend(b"\r\n");
                self.reset();
            }
            (State::Escape, b'[') => {
                self.held.push(byte);
                self.state = State::Control;
            }
            (State::Control, b'0'..=b'9' | b';' | b':') if self.held.len() < LONGEST => self.held.push(byte),
            (State::Control, b'm') => {
                safe.append(&mut self.held);
                safe.push(b'm');
                self.reset();
            }
            (State::Wide, 0xa0..=0xbf) => {
                safe.extend([0xc2, byte]);
                self.reset();
            }
            (State::Wide, 0x80..=0x9f) => {
                safe.extend(b"M-^");
                safe.push(byte - 0x80 + b'@');
                self.reset();
            }
            (State::Text, _) => self.begin(byte, safe),
            _ => {
                self.give_up(safe);
                self.begin(byte, safe);
            }
        }
    }

    fn begin(&mut self, byte: u8, safe: &mut Vec<u8>) {
        let next = match byte {
            b'\r' => State::Return,
            0x1b => State::Escape,
            0xc2 => State::Wide,
            b'\n' | b'\t' => {
                safe.push(byte);
                return;
            }
            0..0x20 | 0x7f => {
                safe.extend([b'^', byte ^ 0x40]);
                return;
            }
            _ => {
                safe.push(byte);
                return;
            }
        };
        self.state = next;
        self.held.push(byte);
    }

    /// Shows what was held back, as it is no sequence that passes.
    fn give_up(&mut self, safe: &mut Vec<u8>) {
        for byte in std::mem::take(&mut self.held) {
            match byte {
                0..0x20 | 0x7f => safe.extend([b'^', byte ^ 0x40]),
                other => safe.push(other),
            }
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.state = State::Text;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> Vec<u8> {
        let mut screen = Screen::new(Vec::new());
        for piece in pieces {
            screen.write(piece).unwrap();
        }
        screen.finish().unwrap();
        screen.out
    }

    #[test]
    fn colours_and_text_pass() {
        let text = "plain \x1b[1;31mred\x1b[0m äöü €\u{a0}\ttab\r\nnext\n".as_bytes();
        assert_eq!(shown(&[text]), text);
        for cut in 0..text.len() {
            assert_eq!(shown(&[&text[..cut], &text[cut..]]), text, "cut at {cut}");
        }
    }

    #[test]
    fn what_drives_or_deceives_is_shown_and_not_obeyed() {
        let cases: [(&[u8], &[u8]); 8] = [
            (b"\x1b]0;title\x07", b"^[]0;title^G"),
            (b"\x1b[2J\x1b[H", b"^[[2J^[[H"),
            (b"\x1b[3A", b"^[[3A"),
            (b"good\rbad ", b"good^Mbad "),
            (b"a\x08b", b"a^Hb"),
            ("\u{9b}2J".as_bytes(), b"M-^[2J"),
            (b"\x1b\x1b[0m", b"^[\x1b[0m"),
            (b"end\x1b[", b"end^[["),
        ];
        for (bytes, expected) in cases {
            assert_eq!(shown(&[bytes]), expected, "{}", bytes.escape_ascii());
        }
    }
}
