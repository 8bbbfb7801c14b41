//! Makes a command's output safe for a person's terminal.
//!
//! Output is data, but a terminal obeys it: it can retitle the window, write into the clipboard, clear what was on the
//! screen, or hide a line behind another. Colours pass. Every other control is shown in the notation of `cat -v` instead of
//! being obeyed, except for line breaks, tabs, and carriage returns that a line break follows.

/// Turns output into what may be shown.
#[derive(Debug, Default)]
pub struct Screen {
    state: State,
    /// The escape sequence that is being read, or the beginning of a character.
    held: Vec<u8>,
    /// Whether the last colour that passed is still on.
    coloured: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After a carriage return.
    Return,
    /// After ESC.
    Escape,
    /// Within `ESC [ …`.
    Control,
    /// Within a character of so many bytes.
    Character(usize),
}

/// The longest colour sequence that anybody needs.
const LONGEST: usize = 64;

/// Returns whether the parameters of a colour sequence hide the text, as 8 does. After 38, 48 and 58 come the parts of a
/// colour (ECMA-48 and ITU T.416), where an 8 is only a number.
fn conceals(parameters: &[u8]) -> bool {
    let numbers = parameters
        .split(|byte| *byte == b';')
        .map(|part| std::str::from_utf8(part).ok()?.parse::<u32>().ok());
    let mut numbers = numbers.map(|number| number.unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            8 => return true,
            38 | 48 | 58 => {
                let parts = if numbers.next() == Some(5) { 1 } else { 3 };
                numbers.by_ref().take(parts).for_each(drop);
            }
            _ => {}
        }
    }
    false
}

impl Screen {
    /// Returns what may be shown of some more output.
    pub fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut safe = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut safe);
        }
        safe
    }

    /// Returns what was held back, and what ends a colour that is still on.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut safe = Vec::new();
        self.give_up(&mut safe);
        if std::mem::take(&mut self.coloured) {
            safe.extend(b"\x1b[0m");
        }
        safe
    }

    fn take(&mut self, byte: u8, safe: &mut Vec<u8>) {
        match (self.state, byte) {
            (State::Text, _) => self.begin(byte, safe),
            (State::Return, b'\n') => {
                safe.extend(b"\r\n");
                self.reset();
            }
            (State::Escape, b'[') => {
                self.held.push(byte);
                self.state = State::Control;
            }
            (State::Control, b'0'..=b'9' | b';' | b':') if self.held.len() < LONGEST => self.held.push(byte),
            (State::Control, b'm') if !conceals(&self.held[2..]) => {
                self.coloured = !matches!(&self.held[2..], b"" | b"0");
                safe.append(&mut self.held);
                safe.push(b'm');
                self.reset();
            }
            (State::Character(length), 0x80..=0xbf) => {
                self.held.push(byte);
                if self.held.len() == length {
                    self.character(safe);
                }
            }
            _ => {
                self.give_up(safe);
                self.begin(byte, safe);
            }
        }
    }

    fn begin(&mut self, byte: u8, safe: &mut Vec<u8>) {
        self.state = match byte {
            b'\r' => State::Return,
            0x1b => State::Escape,
            0xc2..=0xdf => State::Character(2),
            0xe0..=0xef => State::Character(3),
            0xf0..=0xf4 => State::Character(4),
            b'\n' | b'\t' => {
                safe.push(byte);
                return;
            }
            _ => {
                push_visibly(byte, safe);
                return;
            }
        };
        self.held.push(byte);
    }

    /// Passes a whole character on, unless it is a control or turns the direction of the text.
    fn character(&mut self, safe: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        match std::str::from_utf8(&held).ok().and_then(|text| text.chars().next()) {
            // The second of its two bytes is the control itself.
            Some('\u{80}'..='\u{9f}') => push_visibly(held[1], safe),
            Some(turn @ ('\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')) => {
                safe.extend(format!("<U+{:04X}>", u32::from(turn)).bytes());
            }
            Some(_) => safe.extend(held),
            None => held.into_iter().for_each(|byte| push_visibly(byte, safe)),
        }
        self.reset();
    }

    /// Shows what was held back, as it is no sequence that passes.
    fn give_up(&mut self, safe: &mut Vec<u8>) {
        for byte in std::mem::take(&mut self.held) {
            push_visibly(byte, safe);
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.state = State::Text;
        self.held.clear();
    }
}

/// Shows a byte that stands by itself: controls in the notation of `cat -v`.
fn push_visibly(byte: u8, safe: &mut Vec<u8>) {
    match byte {
        0..0x20 | 0x7f => safe.extend([b'^', byte ^ 0x40]),
        0x80..0xa0 => safe.extend([b'M', b'-', b'^', byte - 0x40]),
        other => safe.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> Vec<u8> {
        let mut screen = Screen::default();
        let mut safe: Vec<u8> = pieces.iter().flat_map(|piece| screen.show(piece)).collect();
        safe.extend(screen.finish());
        safe
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
        let cases: [(&[u8], &[u8]); 15] = [
            (b"\x1b]0;title\x07", b"^[]0;title^G"),
            (b"\x1b[2J\x1b[H", b"^[[2J^[[H"),
            (b"\x1b[3A", b"^[[3A"),
            (b"good\rbad ", b"good^Mbad "),
            (b"a\x08b", b"a^Hb"),
            ("\u{9b}2J".as_bytes(), b"M-^[2J"),
            (b"\x1b\x1b[0m", b"^[\x1b[0m"),
            (b"\x9b2J", b"M-^[2J"),
            (b"a\xff\xfe\xc2", b"a\xff\xfe\xc2"),
            (b"\x1b[8mhidden\x1b[0m", b"^[[8mhidden\x1b[0m"),
            (b"\x1b[1;08mhidden\x1b[0m", b"^[[1;08mhidden\x1b[0m"),
            (b"\x1b[38;5;8mgrey\x1b[0m", b"\x1b[38;5;8mgrey\x1b[0m"),
            (b"\x1b[31mred", b"\x1b[31mred\x1b[0m"),
            ("a\u{202e}b".as_bytes(), b"a<U+202E>b"),
            (b"end\x1b[", b"end^[["),
        ];
        for (bytes, expected) in cases {
            assert_eq!(shown(&[bytes]), expected, "{}", bytes.escape_ascii());
        }
    }
}
