//! How alike two texts are, from 0 to 1.

use similar::{Algorithm, capture_diff_slices, diff_ratio};

use super::mapped::{Form, Mapped};
use super::spaces::{same_words, trimmed};
use super::unicode::{Dash, is_plain};

/// Longer texts than this many characters are compared word by word: the time grows with the square of the difference.
const CHARACTERS: usize = 1000;

/// Returns how much of two texts is the same, in the same order.
pub(crate) fn similarity(one: &str, other: &str) -> f32 {
    if one == other {
        return 1.0;
    }
    if one.len().max(other.len()) > CHARACTERS {
        let (one, other): (Vec<&str>, Vec<&str>) =
            (one.split_inclusive(' ').collect(), other.split_inclusive(' ').collect());
        return diff_ratio(&capture_diff_slices(Algorithm::Myers, &one, &other), one.len(), other.len());
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    diff_ratio(&capture_diff_slices(Algorithm::Myers, &one, &other), one.len(), other.len())
}

/// Returns whether two lines say the same: they differ in white space and in characters that look alike, and in
/// nothing else.
pub(crate) fn says_the_same(one: &str, other: &str) -> bool {
    if same_words(one, other) {
        return true;
    }
    if is_plain(one) && is_plain(other) {
        return false;
    }
    let alike = |dash| plain(one, dash) == plain(other, dash);
    alike(Dash::One) || alike(Dash::Two)
}

/// Returns what a line says, without what [`says_the_same`] takes no notice of.
pub(crate) fn plain(line: &str, dash: Dash) -> String {
    trimmed(&Mapped::new(line, Form::Plain(dash)).text).to_owned()
}

/// Returns the names and numbers in a line.
pub(crate) fn names(line: &str) -> Vec<&str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_the_share_of_what_is_the_same() {
        assert!((similarity("abcd", "abxd") - 0.75).abs() < f32::EPSILON);
        assert!(similarity("abc", "xyz") < f32::EPSILON && similarity("", "") > 0.99);
        let long = "word ".repeat(1000);
        assert!(similarity(&long, &long.replacen("word", "sword", 10)) > 0.95);
    }

    #[test]
    fn a_name_or_number_is_never_the_same_as_another() {
        assert!(says_the_same("  say( “hi” )", "say( \"hi\" )  "));
        assert!(says_the_same("a — b", "a -- b") && says_the_same("a — b", "a - b"));
        assert!(!says_the_same("retry(2)", "retry(9)") && !says_the_same("a,b", "a, b"));
        assert_eq!(names("let x_1 = foo(2.5);"), ["let", "x_1", "foo", "2", "5"]);
    }
}
