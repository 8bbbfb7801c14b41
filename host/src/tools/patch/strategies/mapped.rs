//! A text in a form for comparing, which knows where each character of it comes from.

use std::ops::Range;

use super::spaces::is_space;
use super::unicode::{Dash, plain};

/// What makes no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// How much white space stands between words, and at the end of lines.
    Spaces,
    /// Besides, which of the characters that look alike it is.
    Plain(Dash),
}

/// A text in that form.
pub(crate) struct Mapped {
    pub(crate) text: String,
    /// For each byte of the form, and for its end: where in the text the character begins that it comes from. Each
    /// character of the form reaches to where the next begins.
    starts: Vec<usize>,
}

impl Mapped {
    /// Brings a text into a form.
    pub(crate) fn new(text: &str, form: Form) -> Self {
        let mut mapped =
            Self { text: String::with_capacity(text.len()), starts: Vec::with_capacity(text.len()) };
        let mut space = None;
        for (at, c) in text.char_indices() {
            mapped.take(c, at, form, &mut space);
        }
        if let Some(at) = space {
            mapped.push(' ', at);
        }
        mapped.starts.push(text.len());
        mapped
    }

    fn take(&mut self, c: char, at: usize, form: Form, space: &mut Option<usize>) {
        let mut one = |c: char| {
            if is_space(c) {
                space.get_or_insert(at);
                return;
            }
            let before = space.take();
            if let Some(start) = before.filter(|_| c != '\n') {
                self.push(' ', start);
            }
            self.push(c, at);
        };
        match form {
            Form::Spaces => one(c),
            Form::Plain(dash) => plain(c, dash, one),
        }
    }

    fn push(&mut self, c: char, start: usize) {
        self.text.push(c);
        self.starts.resize(self.text.len(), start);
    }

    /// Returns which part of the text this part of the form comes from. None if that would cut a character of the text.
    pub(crate) fn source(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let whole = |at: usize| at == 0 || self.starts[at] != self.starts[at - 1];
        (whole(part.start) && whole(part.end)).then(|| self.starts[part.start]..self.starts[part.end])
    }

    /// Returns where in the form a place in the text is, which is the beginning of a character.
    pub(crate) fn place(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start < at)
    }

    /// Returns every part of the text whose form is `other`'s, and that does not cut a word.
    pub(super) fn find(&self, other: &Self) -> Vec<Range<usize>> {
        let found = self.text.match_indices(&other.text);
        let parts = found.map(|(at, found)| at..at + found.len());
        parts.filter(|part| !cuts_word(&self.text, part)).filter_map(|part| self.source(&part)).collect()
    }
}

/// Returns whether a part of a text begins or ends inside a word.
pub(super) fn cuts_word(text: &str, part: &Range<usize>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let inside = |at: usize| text[..at].ends_with(is_word) && text[at..].starts_with(is_word);
    inside(part.start) || inside(part.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, other: &str, form: Form) -> Vec<&'static str> {
        let (mapped, other) = (Mapped::new(text, form), Mapped::new(other, form));
        let parts = mapped.find(&other);
        parts.into_iter().map(|part| &*Box::leak(text[part].to_owned().into_boxed_str())).collect()
    }

    #[test]
    fn white_space_between_words_and_at_line_ends_makes_no_difference() {
        assert_eq!(found("if  x  ==\t1 \n\ty", "x == 1\n y", Form::Spaces), ["x  ==\t1 \n\ty"]);
        assert!(found("max == 1", "x ==  1", Form::Spaces).is_empty());
        assert!(found("x == 12", "x ==  1", Form::Spaces).is_empty());
    }

    #[test]
    fn a_part_of_a_character_is_not_found() {
        let plain = Form::Plain(Dash::One);
        assert_eq!(found("so… “yes”", "... \"yes\"", plain), ["… “yes”"]);
        assert!(found("so…", ".", plain).is_empty());
        assert!(found("é", "e", plain).is_empty());
        assert_eq!(
            found("a\u{a0}—\u{200b}b", "a - b".replace(" b", "b").as_str(), plain),
            ["a\u{a0}—\u{200b}b"]
        );
    }
}
