//! Lines of a file with their numbers, no more of them than a model can use.

use std::borrow::Cow;

use super::look::{LONGEST_LINE, Range};

/// The most characters of a line.
const MOST_OF_LINE: usize = 2000;

/// The most characters in all.
const MOST: usize = 100_000;

/// Ends a line that was cut.
const CUT: &str = "… [cut]";

/// Some lines as they are shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Numbered {
    /// The lines, each behind its number and a `|`.
    pub(super) content: String,
    /// How many there are.
    pub(super) count: u64,
    /// Those that were cut, by their numbers.
    pub(super) cut: Vec<u64>,
}

impl Numbered {
    /// Shows lines as a script printed them, of which the first has the number `first`.
    pub(super) fn bytes(bytes: &[u8], first: u64) -> Self {
        let bytes = if first == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let is_long = line.len() >= LONGEST_LINE;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (String::from_utf8_lossy(line), is_long)
        });
        Self::of(lines, first)
    }

    /// Shows the lines of a text that are in a range, and returns how many there are in all.
    pub(super) fn text(text: &str, range: Range) -> (Self, u64) {
        let lines = || text.lines().map(|line| (Cow::Borrowed(line), false));
        let skip = usize::try_from(range.offset.saturating_sub(1)).unwrap_or(usize::MAX);
        let take = usize::try_from(range.limit).unwrap_or(usize::MAX);
        (Self::of(lines().skip(skip).take(take), range.offset), lines().count() as u64)
    }

    fn of<'a>(lines: impl Iterator<Item = (Cow<'a, str>, bool)>, first: u64) -> Self {
        let mut numbered = Self::default();
        let mut characters = 0;
        for ((line, is_long), number) in lines.zip(first..) {
            let mut shown = format!("{number}|{line}");
            if is_long || line.chars().count() > MOST_OF_LINE {
                let kept: String = line.chars().take(MOST_OF_LINE - CUT.chars().count()).collect();
                shown = format!("{number}|{kept}{CUT}");
                numbered.cut.push(number);
            }
            characters += shown.chars().count() + 1;
            if characters > MOST && numbered.count > 0 {
                numbered.cut.retain(|cut| *cut != number);
                break;
            }
            if numbered.count > 0 {
                numbered.content.push('\n');
            }
            numbered.content.push_str(&shown);
            numbered.count += 1;
        }
        numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], first: u64) -> String {
        Numbered::bytes(bytes, first).content
    }

    #[test]
    fn lines_have_their_numbers_and_no_marks_of_their_form() {
        assert_eq!(shown(b"\xef\xbb\xbfalpha\r\nbe\rta\r\n\r\n", 1), "1|alpha\n2|be\rta\n3|");
        assert_eq!(shown(b"\xef\xbb\xbfx\n", 2), "2|\u{feff}x");
        assert_eq!(shown(b"caf\xe9|\tx\n", 10), "10|caf\u{fffd}|\tx");
        assert_eq!(Numbered::bytes(b"", 1), Numbered::default());
        assert_eq!(shown(b"\n", 1), "1|");
    }

    #[test]
    fn a_long_line_is_cut_and_told() {
        for (line, is_cut) in [
            ("é".repeat(2000), false),
            ("é".repeat(2001), true),
            ("😀".repeat(2000), false),
            ("x".repeat(LONGEST_LINE), true),
        ] {
            let numbered = Numbered::bytes(format!("a\n{line}\n").as_bytes(), 7);
            assert_eq!(numbered.cut, if is_cut { vec![8] } else { vec![] }, "{}", line.len());
            let second = numbered.content.lines().nth(1).unwrap().strip_prefix("8|").unwrap();
            assert_eq!(second.chars().count(), 2000);
            assert_eq!(second.ends_with(CUT), is_cut);
        }
    }

    #[test]
    fn no_more_is_shown_than_can_be_used() {
        let bytes = "x".repeat(1000) + "\n";
        let numbered = Numbered::bytes(bytes.repeat(200).as_bytes(), 1);
        assert_eq!(numbered.count, 99);
        assert!(numbered.content.chars().count() <= MOST);
    }

    #[test]
    fn a_range_of_a_text_and_all_its_lines() {
        let range = Range { offset: 2, limit: 1 };
        let (numbered, total) = Numbered::text("a\nb\r\nc", range);
        assert_eq!((numbered.content.as_str(), total), ("2|b", 3));
        assert_eq!(Numbered::text("", range).1, 0);
        assert_eq!(Numbered::text("a\n", Range { offset: 9, limit: 9 }).0.count, 0);
    }
}
