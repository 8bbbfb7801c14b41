//! White space within lines, which models get wrong more often than anything else.
//!
//! Only that of ASCII counts here: a no-break space is another character, and belongs to the Unicode forms.

/// Returns whether this is white space within a line.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}')
}

/// Returns a line without the white space around it.
pub(crate) fn trimmed(line: &str) -> &str {
    line.trim_matches(is_space)
}

/// Returns the white space before a line.
pub(crate) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(is_space).len()]
}

/// Returns the white space behind a line that is not blank.
pub(crate) fn trail(line: &str) -> &str {
    &line[line.trim_end_matches(is_space).len()..]
}

/// Returns whether two lines are the same but for the white space around them.
pub(super) fn same_trimmed(one: &str, other: &str) -> bool {
    trimmed(one) == trimmed(other)
}

/// Returns whether two lines have the same words, whatever white space stands around and between them.
pub(super) fn same_words(one: &str, other: &str) -> bool {
    let words = |line| <str>::split(line, is_space).filter(|word: &&str| !word.is_empty());
    words(one).eq(words(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_that_of_ascii() {
        assert_eq!((trimmed("\t a b \r"), indent("\t a"), trail("a \r")), ("a b", "\t ", " \r"));
        assert!(same_trimmed("  a", "a\t") && !same_trimmed("a  b", "a b"));
        assert!(same_words(" a  b", "a b ") && !same_words("ab", "a b") && !same_words("a\u{a0}b", "a b"));
    }
}
