//! Replaces one text by another in a file's text.
//!
//! The new text is what it is: bytes, never a pattern in which `$&`, `\1` or `%s` mean something. If the old text is
//! not there exactly, `strategies/` may find the place all the same; `piecewise.rs` and `escapes.rs` then say whether
//! it is edited.

use super::escapes::stray;
use super::files::{Edit, Text};
use super::near;
use super::piecewise::{Miss, replacement};
use super::refusal::Refusal;
use super::strategies::{Found, Lines, Match, Strategy, Wanted, find};

/// An edited text, and how it came about.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) text: Text,
    /// How the place was found.
    pub(super) strategy: Strategy,
    /// How many places there were.
    pub(super) replacements: usize,
    /// What the caller should look at.
    pub(super) warning: Option<String>,
}

/// Replaces `old` by `new`: once, where it stands once, or everywhere.
///
/// # Errors
///
/// It is not there, or more than once and `all` is not set, or the place is not certain.
pub(super) fn replace(text: &Text, old: &str, new: &str, all: bool) -> Result<Edited, Refusal> {
    if old.is_empty() {
        return Err(Refusal::Empty);
    }
    let (old, new) = as_seen(text, old, new);
    if old == new {
        return Err(Refusal::Same);
    }
    let lines = Lines::new(&text.text);
    let wanted = Wanted { old: &old, new: &new, whole_lines: false, approximate: !all };
    let found = find(&lines, wanted).ok_or_else(|| missing(text, &lines, &wanted))?;
    if found.matches.len() > 1 && !all {
        return Err(several(&lines, &found.matches));
    }
    let mut edits: Vec<Edit> = Vec::new();
    let mut drifted = 0;
    for place in &found.matches {
        if edits.last().is_none_or(|before| before.range.end <= place.range.start) {
            let (edit, lines) = edit(text, &lines, &wanted, &found, place)?;
            edits.push(edit);
            drifted += lines;
        }
    }
    let edited = text.edited(&edits);
    if edited.text == text.text {
        return Err(Refusal::NoChange);
    }
    let warning = warning("`old_string`", found.strategy, drifted);
    Ok(Edited { text: edited, strategy: found.strategy, replacements: edits.len(), warning })
}

/// Returns both texts as a file's text has them: without its mark, and with its line ends.
fn as_seen(text: &Text, old: &str, new: &str) -> (String, String) {
    let is_crlf = text.has_crlf() || old.contains("\r\n");
    let seen = |given: &str| {
        let given = if text.has_mark() { given.strip_prefix('\u{feff}').unwrap_or(given) } else { given };
        if is_crlf { given.replace("\r\n", "\n") } else { given.to_owned() }
    };
    (seen(old), seen(new))
}

/// Makes the edit of one place. Also returns how many lines of it have drifted.
///
/// # Errors
///
/// The place is a near miss, or the new text has escapes that were not meant.
pub(super) fn edit(
    text: &Text,
    lines: &Lines,
    wanted: &Wanted,
    found: &Found,
    place: &Match,
) -> Result<(Edit, usize), Refusal> {
    let there = &text.text[place.range.clone()];
    if found.strategy != Strategy::Exact
        && let Some(escape) = stray(wanted.old, there, wanted.new)
    {
        return Err(Refusal::Escaped { escape });
    }
    let first = lines.number_at(place.body.start);
    let new = replacement(&text.text, found, place).map_err(|Miss { wanted, line }| Refusal::Miss {
        wanted,
        line: line.map(|line| first + line),
        near: text.shown(&near::shown(lines, first - 1, there.split('\n').count())).into_owned(),
    })?;
    Ok((Edit { range: place.range.clone(), new: new.text }, new.drifted))
}

/// Says that what is wanted is not there, and what is.
pub(super) fn missing(text: &Text, lines: &Lines, wanted: &Wanted) -> Refusal {
    let near = near::nearest(lines, wanted.old).map(|near| text.shown(&near).into_owned());
    let new = wanted.new.trim();
    let already = (new.len() > 3).then(|| text.text.find(new)).flatten().map(|at| lines.number_at(at));
    Refusal::Missing { near, already }
}

/// Says in which places it is.
pub(super) fn several(lines: &Lines, matches: &[Match]) -> Refusal {
    Refusal::Several { lines: matches.iter().map(|place| lines.number_at(place.body.start)).collect() }
}

/// Returns what to say if the place was not found exactly.
pub(super) fn warning(what: &str, strategy: Strategy, drifted: usize) -> Option<String> {
    let kept = match drifted {
        0 => String::new(),
        1 => " 1 line of it reads otherwise and was left as it is;".to_owned(),
        _ => format!(" {drifted} lines of it read otherwise and were left as they are;"),
    };
    (strategy != Strategy::Exact).then(|| {
        format!(
            "{what} is not in the file exactly as it was given: the place was found by `{}`, which takes no notice of {};{kept} \
             check the diff",
            strategy.name(),
            strategy.difference()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(file: &[u8], old: &str, new: &str) -> Vec<u8> {
        replace(&Text::decode_beside(file, &[old, new]).unwrap(), old, new, false).unwrap().text.bytes()
    }

    fn refused(file: &[u8], old: &str, new: &str) -> Refusal {
        replace(&Text::decode(file).unwrap(), old, new, false).unwrap_err()
    }

    const FILE: &[u8] = b"def a():\n    retry(2)\n    done()\n\ndef b():\n    retry(2)\n    done()\n";

    #[test]
    fn nothing_but_the_edit_changes() {
        let file = b"\xef\xbb\xbfalpha\r\nbeta\r\ngamma";
        let once = done(file, "beta", "BETA");
        assert_eq!(once, b"\xef\xbb\xbfalpha\r\nBETA\r\ngamma");
        assert_eq!(done(&once, "alpha\nBETA", "alpha\nBETA2"), b"\xef\xbb\xbfalpha\r\nBETA2\r\ngamma");
        assert_eq!(done(file, "alpha\r\nbeta", "a\r\nb"), b"\xef\xbb\xbfa\r\nb\r\ngamma");
        assert_eq!(done(file, "\u{feff}alpha", "\u{feff}x\ny"), b"\xef\xbb\xbfx\r\ny\r\nbeta\r\ngamma");
        assert_eq!(done(file, "gamma\n", "delta\n"), b"\xef\xbb\xbfalpha\r\nbeta\r\ndelta");
        assert_eq!(done(b"one\ntwo\n\n", "one", "ONE"), b"ONE\ntwo\n\n");
        assert_eq!(done(b"a\nb\n", "a", "x\r\ny"), b"x\r\ny\nb\n");
        assert_eq!(done(b"caf\xe9 1\n", "1", "\u{100000}2"), b"caf\xe9 \xf4\x80\x80\x802\n".to_vec());
    }

    #[test]
    fn a_near_miss_changes_nothing_and_says_what_is_near() {
        let refusal = refused(FILE, "    retry(9)\n    done()", "    retry(0)\n    done()");
        assert_eq!(refusal.near(), Some("2|    retry(2)\n3|    done()"));
        assert_eq!(refused(FILE, "retry(2)", "retry(3)"), Refusal::Several { lines: vec![2, 6] });
    }

    #[test]
    fn new_text_is_never_a_pattern() {
        let new = "def b():  # $& \\1 \\n ${x} \\\" %s";
        let text = String::from_utf8(done(FILE, "def b():", new)).unwrap();
        assert!(text.contains(&format!("\n{new}\n")), "{text}");
    }

    #[test]
    fn all_places_are_replaced_if_that_is_asked_for() {
        let text = Text::decode(FILE).unwrap();
        let edited = replace(&text, "retry(2)", "retry(2, 2)", true).unwrap();
        assert_eq!((edited.replacements, edited.strategy), (2, Strategy::Exact));
        assert_eq!(edited.text.text, text.text.replace("retry(2)", "retry(2, 2)"));
        assert_eq!(replace(&Text::decode(b"aaa").unwrap(), "aa", "b", true).unwrap().text.text, "ba");
        assert!(replace(&text, "retry(9)", "retry(3)", true).is_err());
    }

    #[test]
    fn escapes_of_the_call_do_not_get_into_the_file() {
        let file = b"say(\"hi\")\n";
        assert_eq!(
            refused(file, r#"say(\"hi\")"#, r#"say(\"ho\")"#),
            Refusal::Escaped { escape: "\\\"".into() }
        );
        assert_eq!(done(file, r#"say(\"hi\")"#, "say(1)"), b"say(1)\n");
        assert_eq!(done(br#"say(\"hi\")"#, r#"say(\"hi\")"#, r#"say(\"ho\")"#), br#"say(\"ho\")"#);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(refused(FILE, "", "x"), Refusal::Empty);
        assert_eq!(refused(FILE, "x", "x"), Refusal::Same);
        assert_eq!(refused(b"a\r\nb", "a\nb", "a\r\nb"), Refusal::Same);
        assert_eq!(refused(b"\ta b\n", "a  b", "a b"), Refusal::NoChange);
        let Refusal::Missing { already, .. } = refused(FILE, "fn one()", "def b():") else {
            panic!("missing")
        };
        assert_eq!(already, Some(5));
    }

    #[test]
    fn a_place_that_is_not_exact_comes_with_a_warning() {
        let text = Text::decode(FILE).unwrap();
        let edited = replace(&text, "def b():\n  retry(2)\n", "def b():\n  retry(3)\n", false).unwrap();
        assert_eq!(edited.text.text, text.text.replacen("b():\n    retry(2)", "b():\n    retry(3)", 1));
        assert!(edited.warning.unwrap().contains("`line_trimmed`"));
        assert_eq!(replace(&text, "def b", "def c", false).unwrap().warning, None);
    }
}
