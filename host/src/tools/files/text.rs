//! The text in a file, apart from the form in which the file holds it.
//!
//! An agent is shown plain text and edits what it was shown: no byte-order mark, lines that end in `\n`. What is then
//! written must differ from the file in what was edited and in nothing else. So the form is kept beside the text, line
//! by line (files with both kinds of line end are common), and bytes that are not UTF-8 stay what they are. A file in UTF-16
//! stays in UTF-16.

mod carried;
mod endings;
mod wide;

use std::borrow::Cow;
use std::ops::Range;

use carried::Carrier;
use endings::Endings;
use wide::Wide;

/// The byte-order mark of UTF-8.
const MARK: &str = "\u{feff}";

/// What a file holds, as text.
#[allow(clippy::struct_field_names, reason = "the text is the text")]
#[derive(Debug, Clone)]
pub(in crate::tools) struct Text {
    /// The text, to be read only: no byte-order mark, `\n` at the end of lines. A `\r` in it is a character like any
    /// other.
    pub(in crate::tools) text: String,
    has_mark: bool,
    endings: Endings,
    carrier: Option<Carrier>,
    wide: Option<Wide>,
}

/// A part of a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Edit {
    /// Which bytes of the text.
    pub(in crate::tools) range: Range<usize>,
    /// What comes in their place.
    pub(in crate::tools) new: String,
}

impl Edit {
    /// Returns the same edit of `text` without what it leaves as it is at either end.
    #[must_use]
    pub(in crate::tools) fn shrunk(self, text: &str) -> Self {
        let old = &text[self.range.clone()];
        let start = common_start(old, &self.new);
        let (old, new) = (&old[start..], &self.new[start..]);
        let end = common_end(old, new);
        Self { range: self.range.start + start..self.range.end - end, new: new[..new.len() - end].to_owned() }
    }
}

impl Text {
    /// Reads the contents of a file. None if they are no text: they hold a NUL, and are not in UTF-16.
    #[must_use]
    pub(in crate::tools) fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode_beside(bytes, &[])
    }

    /// As [`decode`](Self::decode), for edits that bring in `others`: bytes that are not UTF-8 are carried by characters
    /// that do not occur in them either.
    #[must_use]
    pub(in crate::tools) fn decode_beside(bytes: &[u8], others: &[&str]) -> Option<Self> {
        if let Some((wide, text)) = Wide::decode(bytes) {
            let (text, endings) = Endings::split(text);
            return Some(Self { text, has_mark: true, endings, carrier: None, wide: Some(wide) });
        }
        if bytes.contains(&0) {
            return None;
        }
        let rest = bytes.strip_prefix(MARK.as_bytes());
        let (text, carrier) = carried::decode(rest.unwrap_or(bytes), others)?;
        let (text, endings) = Endings::split(text);
        Some(Self { text, has_mark: rest.is_some(), endings, carrier, wide: None })
    }

    /// Returns the contents of the file if its text were `new`. Lines that stay keep their line end, new ones take
    /// that of their neighbours; a byte-order mark stays. What `new` ends with is what the file ends with.
    #[must_use]
    pub(in crate::tools) fn encode(&self, new: &str) -> Vec<u8> {
        let new = if self.has_mark { new.strip_prefix(MARK).unwrap_or(new) } else { new };
        self.edited(&[Edit { range: 0..self.text.len(), new: new.to_owned() }]).bytes()
    }

    /// Returns the text after these edits, which are in order and do not overlap. Outside of them every byte of the file
    /// stays what it is.
    ///
    /// # Panics
    ///
    /// Panics if the edits are in another order, overlap, or cut a character.
    #[must_use]
    pub(in crate::tools) fn edited(&self, edits: &[Edit]) -> Self {
        let edits: Vec<Edit> = edits.iter().cloned().map(|edit| edit.shrunk(&self.text)).collect();
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for edit in &edits {
            text.push_str(&self.text[at..edit.range.start]);
            text.push_str(&edit.new);
            at = edit.range.end;
        }
        text.push_str(&self.text[at..]);
        let endings = self.endings.edited(&self.text, &edits);
        Self { text, has_mark: self.has_mark, endings, carrier: self.carrier, wide: self.wide }
    }

    /// Returns the contents of the file.
    #[must_use]
    pub(in crate::tools) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text.len() + self.endings.len() + MARK.len());
        if self.has_mark && self.wide.is_none() {
            bytes.extend_from_slice(MARK.as_bytes());
        }
        for (number, line) in self.text.split('\n').enumerate() {
            if number > 0 {
                bytes.extend_from_slice(self.endings.at(number - 1));
            }
            match &self.carrier {
                Some(carrier) => carrier.encode(line, &mut bytes),
                None => bytes.extend_from_slice(line.as_bytes()),
            }
        }
        match self.wide {
            Some(wide) => wide.encode(&String::from_utf8_lossy(&bytes)),
            None => bytes,
        }
    }

    /// Returns whether the file has a byte-order mark.
    #[must_use]
    pub(in crate::tools) fn has_mark(&self) -> bool {
        self.has_mark
    }

    /// Returns whether any line ends in `\r\n`.
    #[must_use]
    pub(in crate::tools) fn has_crlf(&self) -> bool {
        self.endings.has_crlf()
    }

    /// Returns a piece of this text as it can be shown: what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub(in crate::tools) fn shown<'a>(&self, piece: &'a str) -> Cow<'a, str> {
        match &self.carrier {
            Some(carrier) => carrier.shown(piece),
            None => Cow::Borrowed(piece),
        }
    }
}

fn common_start(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    (0..=same).rev().find(|at| one.is_char_boundary(*at) && other.is_char_boundary(*at)).unwrap_or(0)
}

fn common_end(one: &str, other: &str) -> usize {
    let same = one.bytes().rev().zip(other.bytes().rev()).take_while(|(one, other)| one == other).count();
    let fits = |length: &usize| {
        one.is_char_boundary(one.len() - length) && other.is_char_boundary(other.len() - length)
    };
    (0..=same).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Text {
        Text::decode(bytes).unwrap()
    }

    #[test]
    fn whatever_is_text_comes_back_byte_for_byte() {
        let all: &[&[u8]] = &[
            b"",
            b"a",
            b"a\n",
            b"\n\n",
            b"a\r\nb\nc\r\n",
            b"\xef\xbb\xbf",
            b"\xef\xbb\xbfa\r\nb",
            b"old\rmac\r",
            b"a\r\r\nb\r\n",
            b"caf\xe9\r\n\xff\xfe\n",
            b"\xf0\x9f\x98",
            b"\xed\xa0\x80\n",
            "é€😀\u{10fffd}\u{100000}".as_bytes(),
            b"\xf4\x80\x80\x80\xff",
            b"\xff\xfea\0\r\0\n\0b\0\n\0",
            b"\xfe\xff\0a\0\r\0\n",
            b"\xff\xfe",
            b"\xff\xfe\n",
        ];
        for bytes in all {
            let read = text(bytes);
            assert_eq!(read.bytes(), *bytes, "{bytes:?}");
            assert_eq!(read.encode(&read.text), *bytes, "{bytes:?}");
        }
        assert!(Text::decode(b"a\0b").is_none());
    }

    #[test]
    fn the_text_has_neither_mark_nor_carriage_returns_of_line_ends() {
        let read = text(b"\xef\xbb\xbfa\r\nb\rc\r\n");
        assert_eq!(read.text, "a\nb\rc\n");
        assert!(read.has_mark() && read.has_crlf());
        assert!(!text(b"a\rb\n").has_crlf());
    }

    #[test]
    fn mark_line_ends_and_a_missing_last_one_are_kept() {
        let read = text(b"\xef\xbb\xbfalpha\r\nbeta\r\ngamma");
        assert_eq!(read.encode("alpha\nBETA\ngamma"), b"\xef\xbb\xbfalpha\r\nBETA\r\ngamma");
        assert_eq!(read.encode("\u{feff}x\ny\n"), b"\xef\xbb\xbfx\r\ny\r\n");
        assert_eq!(text(b"one\ntwo\n\n").encode("ONE\ntwo\n\n"), b"ONE\ntwo\n\n");
    }

    #[test]
    fn what_is_in_utf_16_stays_in_it() {
        let read = text(b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0");
        assert_eq!(read.text, "a\nb\n");
        assert_eq!(read.encode("a\né\n"), b"\xff\xfea\0\r\0\n\0\xe9\0\r\0\n\0");
        assert_eq!(text(b"\xfe\xff\0a").encode("\u{feff}b"), b"\xfe\xff\0b");
    }

    #[test]
    fn lines_that_stay_keep_their_own_end_and_new_ones_take_their_neighbours() {
        let read = text(b"a\r\nb\nc\r\nd\n");
        assert_eq!(read.encode("a\nB\nc\nd\n"), b"a\r\nB\nc\r\nd\n");
        assert_eq!(read.encode("a\nc\nd\n"), b"a\r\nc\r\nd\n");
        assert_eq!(read.encode("a\nb\nc\nd\ne\nf"), b"a\r\nb\nc\r\nd\ne\nf");
        assert_eq!(read.encode("A\nb\nC\nnew\nd\n"), b"A\r\nb\nC\r\nnew\r\nd\n");
        assert_eq!(text(b"x").encode("x\ny\n"), b"x\ny\n");
    }

    #[test]
    fn an_edit_changes_no_line_end_elsewhere_even_among_equal_lines() {
        let read = text(b"a\r\nb\na\nb\r\n");
        let edited = read.edited(&[Edit { range: 0..1, new: "b".to_owned() }]);
        assert_eq!(edited.bytes(), b"b\r\nb\na\nb\r\n");
        let edits = [Edit { range: 2..3, new: "x\ny".to_owned() }, Edit { range: 6..8, new: String::new() }];
        assert_eq!(read.edited(&edits).bytes(), b"a\r\nx\ny\na\n");
    }

    #[test]
    fn a_carriage_return_that_is_brought_along_is_not_doubled() {
        assert_eq!(text(b"a\r\nb\r\n").encode("a\r\nc\r\n"), b"a\r\nc\r\n");
        assert_eq!(text(b"a\n").encode("a\nc\r\n"), b"a\nc\r\n");
    }

    #[test]
    fn bytes_that_are_not_utf8_survive_an_edit_elsewhere() {
        let read = text(b"name: caf\xe9\nsize: 1\n");
        let new = read.text.replace("size: 1", "size: 2");
        assert_eq!(read.encode(&new), b"name: caf\xe9\nsize: 2\n");
        assert_eq!(read.shown(&read.text), "name: caf\u{fffd}\nsize: 1\n");
        let taken: String = ('\u{100000}'..='\u{100080}').collect();
        let beside = Text::decode_beside(b"\xe9 1", &[&taken]).unwrap();
        let new = beside.text.replace('1', &taken);
        assert_eq!(beside.encode(&new), [b"\xe9 ", taken.as_bytes()].concat());
    }

    #[test]
    fn an_edit_shrinks_to_what_it_changes_without_cutting_characters() {
        let edit = Edit { range: 1..6, new: "aëb".to_owned() }.shrunk("xaébb.");
        assert_eq!(edit, Edit { range: 2..5, new: "ë".to_owned() });
    }
}
