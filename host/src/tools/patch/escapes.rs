//! Keeps backslashes out of files that only stand in a call.
//!
//! A model that escapes its quotes once too often quotes `say(\"hi\")` where the file has `say("hi")`. Its place can
//! be found all the same, but its new text has most likely been escaped in the same way, and would bring the
//! backslashes into the file. Where the old text is there as it is, the new one is taken as it is, whatever
//! backslashes it has.

use std::collections::HashMap;

/// What may stand behind a backslash that was not meant.
const STRAY: &str = "\"'`\\ntr/$";

/// Returns an escape that both texts have, and that the place has not, or less often than the old text.
pub(super) fn stray(old: &str, place: &str, new: &str) -> Option<String> {
    let (old, place, new) = (escapes(old), escapes(place), escapes(new));
    let more = |escape: &char| old.get(escape) > place.get(escape) && new.contains_key(escape);
    STRAY.chars().find(more).map(|escape| format!("\\{escape}"))
}

/// Counts the characters behind backslashes. A backslash that is escaped itself escapes nothing.
fn escapes(text: &str) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\\'
            && let Some(next) = rest.next()
        {
            *counts.entry(next).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_only_the_call_has_are_stray() {
        let stray = |old, place, new| stray(old, place, new);
        assert_eq!(stray(r#"say(\"a\")"#, r#"say("a")"#, r#"say(\"b\")"#), Some("\\\"".to_owned()));
        assert_eq!(stray(r"a\nb", "a\nb", r"c\nd"), Some("\\n".to_owned()));
        assert_eq!(stray(r#"say(\"a\")"#, r#"say("a")"#, "say(b)"), None);
        assert_eq!(stray(r#"say( \"a\")"#, r#"say(\"a\")"#, r#"say(\"b\")"#), None);
        assert_eq!(stray("a  b", "a b", r#"\1 \n \" $&"#), None);
        assert_eq!(stray(r"C:\\n", r"C:\n", r"D:\\n"), Some("\\\\".to_owned()));
    }
}
