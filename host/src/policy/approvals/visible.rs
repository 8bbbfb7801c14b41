//! Text as it is shown to a person who is to decide about it: nothing in it can hide.
//!
//! What is asked about was written by a model, or by whatever the model has read. A control sequence could wipe it off a
//! terminal, a character without a shape could make one word look like another, and a thousand empty lines could move the end out
//! of sight. So all that is not plainly there is written out.

use std::fmt::Write as _;

/// More blanks than this in a row are counted instead of shown.
const BLANKS: usize = 60;

/// More empty lines than this in a row are counted instead of shown.
const EMPTY: usize = 5;

/// The most characters of a line of ours that holds somebody else's text.
const LINE: usize = 1000;

/// Returns `text` with everything in it visible, on as many lines as it has.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut empty = 0;
    for (number, line) in text.split('\n').enumerate() {
        if line.trim_matches([' ', '\t']).is_empty() && number > 0 {
            empty += 1;
            continue;
        }
        push_empty(&mut shown, empty);
        empty = 0;
        if number > 0 {
            shown.push('\n');
        }
        push_line(&mut shown, line);
    }
    push_empty(&mut shown, empty);
    shown
}

/// Returns `text` as one short line, with everything in it visible.
#[must_use]
pub fn line(text: &str) -> String {
    let (text, mut shown) = (text.trim(), String::new());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push_str("^J");
        }
        push_line(&mut shown, line);
    }
    cut(&shown, LINE).replace('\n', " ")
}

/// Cuts what is longer than `most` characters in the middle, and says so.
pub(super) fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(count - most / 2).collect();
    format!("{head}\n[{} characters are left out here]\n{tail}", count - most / 2 * 2)
}

fn push_empty(shown: &mut String, empty: usize) {
    if empty > EMPTY {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\n[{empty} empty lines]");
    } else {
        shown.extend(std::iter::repeat_n('\n', empty));
    }
}

fn push_line(shown: &mut String, line: &str) {
    let mut blanks = String::new();
    for character in line.chars() {
        if matches!(character, ' ' | '\t') {
            blanks.push(character);
            continue;
        }
        push_blanks(shown, &mut blanks);
        push(shown, character);
    }
    push_blanks(shown, &mut blanks);
}

fn push_blanks(shown: &mut String, blanks: &mut String) {
    if blanks.len() > BLANKS {
        let _ = write!(shown, "[{} blanks]", blanks.len());
    } else {
        shown.push_str(blanks);
    }
    blanks.clear();
}

fn push(shown: &mut String, character: char) {
    match character {
        '\u{7f}' => shown.push_str("^?"),
        '\0'..='\u{1f}' => {
            shown.push('^');
            // From `@` on, in the order of the controls.
            shown.extend(char::from_u32(u32::from(character) + u32::from('@')));
        }
        _ if is_unseen(character) => {
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        }
        _ => shown.push(character),
    }
}

/// Whether a character has no shape of its own, looks like a blank and is none, or changes how others are shown.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{1680}'
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["", "make test", "a\n\tb\n\n  c\n", "für 7 € 日本", "x\n\n\n\n\n\ny"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn what_could_hide_is_written_out() {
        for (text, expected) in [
            ("ls\x1b[2J\x1b[H", "ls^[[2J^[[H"),
            ("good\rbad", "good^Mbad"),
            ("a\x08b\x7f\0", "a^Hb^?^@"),
            ("a\u{202e}b\u{200b}c\u{a0}d\u{9b}e", "a<U+202E>b<U+200B>c<U+00A0>d<U+009B>e"),
            ("x\u{e0041}\u{fe0f}", "x<U+E0041><U+FE0F>"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(visible(&format!("ls{}; rm", " ".repeat(300))), "ls[300 blanks]; rm");
        assert_eq!(visible(&format!("ls{}rm", "\n \t".repeat(300))), "ls\n[299 empty lines]\n \trm");
        assert_eq!(visible(&format!("ls{}", "\n".repeat(300))), "ls\n[300 empty lines]");
    }

    #[test]
    fn the_middle_is_left_out_with_a_word() {
        assert_eq!(cut("äöüß", 4), "äöüß");
        assert_eq!(cut("0123456789", 4), "01\n[6 characters are left out here]\n89");
        assert_eq!(line(" a\nb\x07 "), "a^Jb^G");
        let long = line(&"x".repeat(5000));
        assert!(long.len() < 1100 && long.contains("[4000 characters"), "{long}");
    }
}
