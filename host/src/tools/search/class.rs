//! Brackets for `grep -E`, where a backslash is a character like any other and the order matters.

use std::iter::Peekable;
use std::str::Chars;

use super::extended::{property, single};

/// What a class holds.
#[derive(Debug, Default)]
struct Class {
    negated: bool,
    characters: Vec<char>,
    ranges: Vec<(char, char)>,
    /// With their own brackets, such as `[:space:]`.
    named: Vec<String>,
}

/// Translates a class whose `[` has been read.
///
/// # Errors
///
/// Fails with what there is no word for.
pub(super) fn translate(rest: &mut Peekable<Chars>) -> Result<String, String> {
    let mut class = Class { negated: rest.next_if_eq(&'^').is_some(), ..Class::default() };
    let mut first = true;
    loop {
        let Some(character) = rest.next() else {
            // Grep will say that it is not closed.
            return Ok("[".to_owned());
        };
        match character {
            ']' if !first => break,
            '&' if rest.peek() == Some(&'&') => return Err("`&&` in brackets".to_owned()),
            '[' if rest.peek() == Some(&':') => {
                let name: String = rest.by_ref().take_while(|character| *character != ']').collect();
                class.named.push(format!("[{name}]"));
            }
            '\\' => {
                let Some(escaped) = rest.next() else { return Ok("[".to_owned()) };
                class.escape(escaped, rest)?;
            }
            _ => class.character(character, rest)?,
        }
        first = false;
    }
    class.written()
}

impl Class {
    fn escape(&mut self, escaped: char, rest: &mut Peekable<Chars>) -> Result<(), String> {
        match escaped {
            'd' => self.ranges.push(('0', '9')),
            'w' => {
                self.named.push("[:alnum:]".to_owned());
                self.characters.push('_');
            }
            's' => self.named.push("[:space:]".to_owned()),
            'p' => self.named.push(property(rest)?.to_owned()),
            'b' => self.characters.push('\x08'),
            // No line holds one.
            'n' => {}
            _ => match single(escaped, rest)? {
                Some(character) => self.character(character, rest)?,
                None => return Err(format!(r"`\{escaped}` in brackets")),
            },
        }
        Ok(())
    }

    /// Takes a character, and the end of its range if it begins one.
    fn character(&mut self, character: char, rest: &mut Peekable<Chars>) -> Result<(), String> {
        let mut ahead = rest.clone();
        let is_range = ahead.next() == Some('-') && !matches!(ahead.peek(), None | Some(']'));
        if !is_range {
            self.characters.push(character);
            return Ok(());
        }
        rest.next();
        let end = match rest.next() {
            Some('\\') => match rest.next() {
                Some(escaped) => single(escaped, rest)?,
                None => None,
            },
            end => end,
        };
        match end {
            Some(end) if !"]-^".contains(character) && end != ']' => self.ranges.push((character, end)),
            _ => return Err(format!("the range from `{character}` in brackets")),
        }
        Ok(())
    }

    /// Writes it so that nothing stands where it would mean something else: `]` first, `^` and `-` last.
    fn written(self) -> Result<String, String> {
        let has = |wanted| self.characters.contains(&wanted);
        let nothing = self.ranges.is_empty() && self.named.is_empty();
        if nothing && self.characters.is_empty() {
            return Err("empty brackets".to_owned());
        }
        if nothing && !self.negated && self.characters.iter().all(|character| *character == '^') {
            return Ok(r"\^".to_owned());
        }
        let mut text = String::from(if self.negated { "[^" } else { "[" });
        text.extend(has(']').then_some(']'));
        for (from, to) in &self.ranges {
            text.extend([*from, '-', *to]);
        }
        text.extend(self.named.iter().map(String::as_str));
        text.extend(self.characters.iter().filter(|character| !"][^-".contains(**character)));
        // An opening bracket behind which no `:`, `.` or `=` can come. A `^` must not stand first, where a `-` may.
        let lasts = if text == "[" && has('-') && !has('[') { ['[', '-', '^'] } else { ['[', '^', '-'] };
        for last in lasts {
            text.extend(has(last).then_some(last));
        }
        text.push(']');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Result<String, String> {
        translate(&mut text.chars().peekable())
    }

    #[test]
    fn classes_are_written_anew() {
        for (given, made) in [
            ("abc]", "[abc]"),
            ("^abc]", "[^abc]"),
            (r"\d.]", "[0-9.]"),
            (r"\w-]", "[[:alnum:]_-]"),
            (r"a-z\]\[]", "[]a-z[]"),
            (r"\^]", r"\^"),
            (r"\^\-]", "[-^]"),
            (r"^\^]", "[^^]"),
            (r"\\/]", r"[\/]"),
            ("]a]", "[]a]"),
            ("-a]", "[a-]"),
            ("a-]", "[a-]"),
            ("[:alpha:]_]", "[[:alpha:]_]"),
            (r"^\n\t]", "[^\t]"),
            (r"\x41-\x43]", "[A-C]"),
            ("[.a]", "[.a[]"),
        ] {
            assert_eq!(class(given).as_deref(), Ok(made), "[{given}");
        }
    }

    #[test]
    fn what_has_no_translation_is_named() {
        assert_eq!(class(r"\S]"), Err(r"`\S` in brackets".to_owned()));
        assert_eq!(class("a&&b]"), Err("`&&` in brackets".to_owned()));
        assert_eq!(class(r"\n]"), Err("empty brackets".to_owned()));
        // What is not closed stays so, for grep to complain of.
        assert_eq!(class("abc"), Ok("[".to_owned()));
    }
}
