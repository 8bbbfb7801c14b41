//! One line of a terminal, as it is written over.
//!
//! Progress bars go back to the beginning of their line (`\r`) or some columns (backspace) and write over what stands
//! there, column by column. Nobody wants to read a hundred states of one line, so the line is held until it ends, and
//! its last state is passed on. Every character is taken for one column wide.

/// Bytes of a line that are held. What is longer is passed on before the line ends.
const LONGEST: usize = 64 * 1024;

/// A cursor is moved no farther to the right than this, unless there is text.
const FARTHEST: usize = 512;

/// Columns between the stops of a tab.
const TAB: usize = 8;

/// A line that is being written.
#[derive(Debug, Default)]
pub(super) struct Line {
    cells: Vec<Cell>,
    cursor: usize,
    /// Sequences that take no room and stand in front of the next character.
    pending: Vec<u8>,
    /// Bytes held, in the cells and pending.
    size: usize,
}

#[derive(Debug)]
struct Cell {
    /// Sequences in front of the character.
    before: Vec<u8>,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// So many of these bytes.
    Character([u8; 4], u8),
    /// The first column of a tab.
    Tab,
    /// Another column of a tab.
    Gap,
    /// Nothing was written here, or it was erased.
    Blank,
}

impl Cell {
    fn size(&self) -> usize {
        self.before.len() + self.content.size()
    }
}

impl Content {
    fn size(self) -> usize {
        if let Self::Character(_, length) = self { usize::from(length) } else { 1 }
    }
}

impl Line {
    /// Writes a character of at most four bytes at the cursor.
    pub(super) fn write(&mut self, character: &[u8], out: &mut Vec<u8>) {
        let mut bytes = [0; 4];
        let mut length = 0;
        for (byte, place) in character.iter().zip(&mut bytes) {
            *place = *byte;
            length += 1;
        }
        self.put(Content::Character(bytes, length));
        self.limit(out);
    }

    /// Obeys a control, and returns whether it is one that means something here.
    pub(super) fn control(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            b'\n' => {
                self.flush(out);
                out.push(b'\n');
            }
            b'\r' => self.cursor = 0,
            0x08 => self.cursor = self.cursor.saturating_sub(1),
            b'\t' => {
                let stop = next_stop(self.cursor);
                if self.cells.len() < stop {
                    self.cursor = self.cursor.max(self.cells.len());
                    self.put(Content::Tab);
                    while self.cursor < stop {
                        self.put(Content::Gap);
                    }
                    self.limit(out);
                } else {
                    self.cursor = stop;
                }
            }
            _ => return false,
        }
        true
    }

    /// Obeys a sequence, and returns whether it is one that means something here: one that erases to the end of the line,
    /// or all of it, or moves the cursor within it.
    pub(super) fn sequence(&mut self, bytes: &[u8]) -> bool {
        let parameter = bytes.strip_prefix(b"\x1b[").or_else(|| bytes.strip_prefix(b"\xc2\x9b"));
        let Some((last, digits)) = parameter.and_then(|parameter| parameter.split_last()) else {
            return false;
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return false;
        }
        let number = digits
            .iter()
            .fold(0, |number: usize, digit| (number * 10 + usize::from(digit - b'0')).min(FARTHEST));
        let distance = number.max(1);
        match (last, number) {
            (b'K' | b'J', 0) => self.truncate(self.cursor),
            (b'K' | b'J', 2) => self.truncate(0),
            (b'C', _) => self.cursor += distance,
            (b'D', _) => self.cursor = self.cursor.saturating_sub(distance),
            (b'G', _) => self.cursor = distance - 1,
            _ => return false,
        }
        self.cursor = self.cursor.min(self.cells.len().max(FARTHEST));
        true
    }

    /// Keeps what takes no room and means nothing here, in front of the character that comes next.
    pub(super) fn keep(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.pending.extend(bytes);
        self.size += bytes.len();
        self.limit(out);
    }

    /// Passes on what is held.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let is_there = |cell: &Cell| cell.content != Content::Blank || !cell.before.is_empty();
        let end = self.cells.iter().rposition(is_there).map_or(0, |last| last + 1);
        let mut column = 0;
        while column < end {
            let cell = &self.cells[column];
            out.extend(&cell.before);
            match cell.content {
                Content::Character(bytes, length) => out.extend(&bytes[..usize::from(length)]),
                Content::Tab if self.is_whole(column) => {
                    out.push(b'\t');
                    column = next_stop(column);
                    continue;
                }
                Content::Tab | Content::Gap | Content::Blank => out.push(b' '),
            }
            column += 1;
        }
        out.append(&mut self.pending);
        self.cells.clear();
        (self.cursor, self.size) = (0, 0);
    }

    /// Returns whether the tab that begins in this column has not been written over.
    fn is_whole(&self, column: usize) -> bool {
        let rest = &self.cells[column + 1..next_stop(column).min(self.cells.len())];
        rest.iter().all(|cell| cell.content == Content::Gap)
    }

    fn put(&mut self, content: Content) {
        while self.cells.len() < self.cursor {
            self.push(Cell { before: Vec::new(), content: Content::Blank });
        }
        self.size -= self.pending.len();
        let cell = Cell { before: std::mem::take(&mut self.pending), content };
        match self.cells.get_mut(self.cursor) {
            Some(place) => {
                self.size += cell.size();
                self.size -= place.size();
                *place = cell;
            }
            None => self.push(cell),
        }
        self.cursor += 1;
    }

    fn push(&mut self, cell: Cell) {
        self.size += cell.size();
        self.cells.push(cell);
    }

    fn truncate(&mut self, length: usize) {
        for cell in self.cells.drain(length.min(self.cells.len())..) {
            self.size -= cell.size();
        }
    }

    fn limit(&mut self, out: &mut Vec<u8>) {
        if self.size > LONGEST {
            self.flush(out);
        }
    }
}

fn next_stop(column: usize) -> usize {
    (column / TAB + 1) * TAB
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes text; `<` and `>` enclose what follows ESC `[`.
    fn written(text: &str) -> String {
        let (mut line, mut out) = (Line::default(), Vec::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character == '<' {
                let sequence: String = characters.by_ref().take_while(|other| *other != '>').collect();
                assert!(line.sequence(format!("\x1b[{sequence}").as_bytes()), "{sequence}");
            } else if !(character.is_ascii() && line.control(character as u8, &mut out)) {
                line.write(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
            }
        }
        line.flush(&mut out);
        assert_eq!((line.size, line.cells.len()), (0, 0));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_shows_its_last_state() {
        let cases = [
            ("abc\rX", "Xbc"),
            ("abc\r\nd", "abc\nd"),
            ("abc\r", "abc"),
            (" 10 %\r 50 %\r100 %\ndone", "100 %\ndone"),
            ("abc\u{8}\u{8}X\u{8}\u{8}\u{8}\u{8}Y", "YXc"),
            ("äöü\r€", "€öü"),
            ("abcdef\rX<K>", "X"),
            ("abcdef<2K>\rX", "X"),
            ("abc<2K>X", "   X"),
            ("abc<2K>", ""),
            ("abc<1G>X<C>Y<2D>Z", "XZY"),
            ("a<3C>b", "a   b"),
            ("abc\r<J>X", "X"),
        ];
        for (text, expected) in cases {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_tab_stays_one_until_it_is_written_over() {
        let cases = [
            ("\ta\tb\t\tc", "\ta\tb\t\tc"),
            ("a\tb\rX", "X\tb"),
            ("a\tb\rXYZ", "XYZ     b"),
            ("abcdefghij\rX\tY", "XbcdefghYj"),
            ("abc\rX\tY", "Xbc\tY"),
            ("a\tb\r\tc", "a\tc"),
        ];
        for (text, expected) in cases {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_takes_no_room_goes_with_its_character() {
        let (mut line, mut out) = (Line::default(), Vec::new());
        for (color, character) in [(b"\x1b[31m", b"a"), (b"\x1b[32m", b"b")] {
            line.control(b'\r', &mut out);
            line.keep(color, &mut out);
            line.write(character, &mut out);
        }
        line.keep(b"\x1b[0m", &mut out);
        line.control(b'\n', &mut out);
        assert_eq!(out, b"\x1b[32mb\x1b[0m\n");
    }

    #[test]
    fn a_line_is_held_in_bounded_memory() {
        let (mut line, mut out) = (Line::default(), Vec::new());
        for count in 0..200_000 {
            line.write(b"x", &mut out);
            assert!(line.size <= LONGEST && out.len() + line.size == count + 1);
        }
        line.flush(&mut out);
        assert!(out.iter().all(|byte| *byte == b'x'));
        out.clear();
        for _ in 0..100_000 {
            line.keep(b"\x1b[m", &mut out);
            assert!(line.size <= LONGEST);
        }
        assert!(out.len() > 200_000);
    }

    #[test]
    fn a_cursor_does_not_run_away() {
        assert_eq!(written(&format!("{}X", "<999999999999999999999C>".repeat(9))).len(), FARTHEST + 1);
        assert_eq!(written(&format!("{}<2K>X", "a".repeat(60_000))).len(), FARTHEST + 1);
    }
}
