//! Tries the nine strategies, from the exact to the vague.
//!
//! The first that finds anything decides, so that a vague one never overrules a stricter. What it found may still not be
//! edited: `../piecewise.rs` holds the rules for that.

use super::found::{Block, Fit, Found, Match, Wanted};
use super::lines::Lines;
use super::mapped::{Form, Mapped};
use super::similarity::says_the_same;
use super::spaces::{is_space, same_trimmed, same_words};
use super::strategy::{ORDER, Strategy};
use super::unicode::{Dash, is_plain};
use super::{block_anchor, boundary, context_aware, unescape};

/// Finds what is wanted by the first strategy that finds anything.
pub(crate) fn find(lines: &Lines, wanted: Wanted) -> Option<Found> {
    // What is nothing but white space says nothing about a place unless it is exact.
    let blank = wanted.old.chars().all(|c| is_space(c) || c == '\n');
    let usable = |strategy: &Strategy| {
        *strategy == Strategy::Exact || !blank && (wanted.approximate || !strategy.is_approximate())
    };
    ORDER.into_iter().filter(usable).find_map(|strategy| by(strategy, lines, wanted))
}

/// Finds what is wanted by this strategy.
pub(super) fn by(strategy: Strategy, lines: &Lines, wanted: Wanted) -> Option<Found> {
    let text = lines.text();
    let block = Block::of(wanted);
    let by_line = |same: fn(&str, &str) -> bool| block.found(strategy, lines, block.places(lines, same));
    let by_form = |form: Form| {
        let mut parts = Mapped::new(text, form).find(&Mapped::new(wanted.old, form));
        parts.retain(|part| boundary::begins_as(text, part.start, wanted.old));
        // The indentation of a line that is found from its first word on belongs to it, so that lines beside it get
        // the same.
        for part in &mut parts {
            let bare = text[..part.start].trim_end_matches(is_space);
            if matches!(bare.chars().last(), None | Some('\n')) {
                part.start = bare.len();
            }
        }
        let fit = Fit::line_by_line(wanted.old.split('\n').count());
        let matches = parts.into_iter().map(|part| Match::part(part, fit.clone()));
        Found::of(strategy, wanted, matches.collect())
    };
    match strategy {
        Strategy::Exact if wanted.whole_lines => by_line(|one, other| one == other),
        Strategy::Exact => Found::of(strategy, wanted, exact(text, wanted.old)),
        Strategy::LineTrimmed => by_line(same_trimmed),
        Strategy::WhitespaceNormalized if wanted.whole_lines => None,
        Strategy::WhitespaceNormalized => by_form(Form::Spaces),
        Strategy::IndentationFlexible => by_line(same_words),
        Strategy::EscapeNormalized => unescape::readings(wanted.old).iter().find_map(|old| {
            let found = by(Strategy::Exact, lines, Wanted { old, ..wanted })?;
            Some(Found { strategy, ..found })
        }),
        Strategy::TrimmedBoundary if wanted.whole_lines => boundary::whole_lines(lines, wanted),
        Strategy::TrimmedBoundary => boundary::part(lines, wanted),
        Strategy::UnicodeNormalized if is_plain(text) && is_plain(wanted.old) => None,
        Strategy::UnicodeNormalized if wanted.whole_lines => by_line(says_the_same),
        Strategy::UnicodeNormalized => by_form(Form::Plain(Dash::One))
            .or_else(|| by_form(Form::Plain(Dash::Two)))
            .or_else(|| by_line(says_the_same)),
        Strategy::BlockAnchor => block.found(strategy, lines, block_anchor::find(lines, &block.old)),
        Strategy::ContextAware => block.found(strategy, lines, context_aware::find(lines, &block.old)),
    }
}

/// Returns where a text stands as it is.
pub(super) fn exact(text: &str, old: &str) -> Vec<Match> {
    let parts: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    let made = |at: usize| Match::part(at..at + old.len(), Fit::Literal);
    let mut found: Vec<Match> = parts.iter().copied().map(made).collect();
    // One that begins within the only one is a second all the same.
    if let ([only], Some(c)) = (&parts[..], old.chars().next()) {
        let from = only + c.len_utf8();
        found.extend(text[from..].find(old).map(|at| made(from + at)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, old: &str, whole_lines: bool) -> Option<(Strategy, Vec<String>)> {
        let wanted = Wanted { old, new: "", whole_lines, approximate: true };
        let found = find(&Lines::new(text), wanted)?;
        let parts = found.matches.iter().map(|found| text[found.body.clone()].to_owned());
        Some((found.strategy, parts.collect()))
    }

    fn one(text: &str, old: &str) -> (Strategy, String) {
        let (strategy, parts) = parts(text, old, false).unwrap();
        assert_eq!(parts.len(), 1, "{parts:?}");
        (strategy, parts[0].clone())
    }

    #[test]
    fn each_strategy_finds_what_it_is_for() {
        use Strategy::{
            EscapeNormalized, Exact, IndentationFlexible, LineTrimmed, TrimmedBoundary, UnicodeNormalized,
            WhitespaceNormalized,
        };
        for (text, old, strategy, found) in [
            ("a b c", "b", Exact, "b"),
            ("x\n\tif a:\n\t\tb()\n", "if a:\n  b()  ", LineTrimmed, "\tif a:\n\t\tb()"),
            ("y = (a  +  b)", "(a + b)", WhitespaceNormalized, "(a  +  b)"),
            ("    a  = 1\n    b = 2\n", "a = 1\nb  = 2", IndentationFlexible, "    a  = 1\n    b = 2"),
            ("say(\"hi\")", r#"say(\"hi\")"#, EscapeNormalized, "say(\"hi\")"),
            ("one()\ntwo()\n", r"one()\ntwo()", EscapeNormalized, "one()\ntwo()"),
            ("x(one()); y", " one() ", TrimmedBoundary, "one()"),
            ("\tone();\n two();", "\n\n  one();\n two();\n\n", TrimmedBoundary, "one();\n two();"),
            ("say “hi”, ok", "say \"hi\"", UnicodeNormalized, "say “hi”"),
            ("  a — b\n", "a -- b\n", UnicodeNormalized, "  a — b\n"),
        ] {
            assert_eq!(one(text, old), (strategy, found.to_owned()), "{old}");
        }
    }

    #[test]
    fn near_misses_are_not_found() {
        let file = "def a():\n    retry(2)\n    done()\n\ndef b():\n    retry(2)\n    done()\n";
        for old in ["    retry(9)\n    done()", "retry(22)", "tryr(2)", "Retry(2)", "   \n", "def a() :"] {
            assert_eq!(parts(file, old, false), None, "{old}");
        }
        assert_eq!(parts("max = 1", "x =  1", false), None);
        assert_eq!(parts("a\nb  c\n", "  \nb c\n", false), None);
        assert_eq!(parts("x one(); y", "\n one();\n", false), None);
        assert_eq!(parts("x one();\n  two()", " one();\ntwo()", false), None);
        assert_eq!(parts("max = 1\n", "x = 1\n", true), None);
    }

    #[test]
    fn every_place_is_found_also_one_that_overlaps() {
        assert_eq!(parts("aXaXa", "aXa", false).unwrap().1.len(), 2);
        assert_eq!(parts("a\na\na\n", "a\na\n", true).unwrap().1.len(), 2);
        assert_eq!(parts("f( 1 ); f( 1 );", "f( 1  )", false).unwrap().1.len(), 2);
    }

    #[test]
    fn a_last_line_without_an_end_is_found_as_it_is() {
        assert_eq!(parts("a\nb", "b\n", true), Some((Strategy::Exact, vec!["b".into()])));
        assert_eq!(one("a\nb", "b\n"), (Strategy::LineTrimmed, "b".into()));
    }
}
