//! Makes the change that a model wants, line by line, in a place that is not quite what the model believes it to be.
//!
//! What the model asks for is the difference between its old and its new text. Only that is made: lines that it leaves
//! alone stay as the file has them. And a near miss is never edited: a wrong edit that says it went well costs more
//! than one that is refused. The rules, for a place that has *drifted*, which means that lines of it are not there
//! word for word:
//!
//! 1. A line that the model changes, or beside which it adds one, must be there: the same but for white space and
//!    characters that look alike. A name, a number or a sign that differs is a miss.
//! 2. A line that it leaves alone may have drifted if its names and numbers are the same.
//! 3. Where the first and the last line are there, and one of them stands in the file once only, the lines between
//!    that the model leaves alone may differ at will, unless one is much like another and its names or numbers are not
//!    the same: that is a sign of the wrong place. Comments are no such sign.
//! 4. Blocks of fewer than four lines do not drift (`strategies/strategy.rs`).

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::merge::merged;
use super::reindent::Reindent;
use super::strategies::{
    Dash, Fit, Found, Match, indent, is_space, names, plain, similarity, trail, trimmed,
};

/// A line this much like another that has other names or numbers in it was mistaken for it.
const MISTAKEN: f32 = 0.80;

/// A new line at least this much like an old one was made of it.
const MADE_OF: f32 = 0.60;

/// How many pairs of lines are compared at most to find out which was made of which.
const COMPARED: usize = 2500;

/// Why a place is not edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Miss {
    /// A line that the model believes to be there.
    pub(super) wanted: String,
    /// The line of the place that stands there instead, if one does.
    pub(super) line: Option<usize>,
}

/// The new text of a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) text: String,
    /// How many lines were not as the model believed, and were left as they are.
    pub(super) drifted: usize,
}

/// Returns what comes in the place of `place`, which is one of `found`'s.
///
/// # Errors
///
/// The place is a near miss.
pub(super) fn replacement(text: &str, found: &Found, place: &Match) -> Result<Replacement, Miss> {
    let new: Vec<&str> = found.new.as_deref().map_or_else(Vec::new, |new| new.split('\n').collect());
    let Fit::Lines { pairs, certain } = &place.fit else {
        return Ok(Replacement { text: new.join("\n"), drifted: 0 });
    };
    let old: Vec<&str> = found.old.split('\n').collect();
    let file: Vec<&str> = text[place.body.clone()].split('\n').collect();
    let gaps = gaps(pairs, old.len(), file.len());
    let known = pairs.iter().enumerate().filter_map(|(at, pair)| Some((at, old[at], file[(*pair)?])));
    let reindent = Reindent::new(known);
    let change = Change { old, new, file, pairs, gaps, reindent };
    change.check(*certain)?;
    let drifted = change.gaps.iter().map(|gap| gap.old.len().max(gap.file.len())).sum();
    Ok(Replacement { text: change.lines()?.join("\n"), drifted })
}

/// Lines that do not correspond: those that the model believes in, and those that are there.
struct Gap {
    old: Range<usize>,
    file: Range<usize>,
}

fn gaps(pairs: &[Option<usize>], old: usize, file: usize) -> Vec<Gap> {
    let known = pairs.iter().enumerate().filter_map(|(at, pair)| Some((at, (*pair)?)));
    let mut gaps = Vec::new();
    let mut next = (0, 0);
    for (at, line) in known.chain([(old, file)]) {
        if at > next.0 || line > next.1 {
            gaps.push(Gap { old: next.0..at, file: next.1..line });
        }
        next = (at + 1, line + 1);
    }
    gaps
}

struct Change<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    file: Vec<&'a str>,
    pairs: &'a [Option<usize>],
    gaps: Vec<Gap>,
    reindent: Reindent,
}

impl Change<'_> {
    /// Holds what has drifted to the rules.
    fn check(&self, certain: bool) -> Result<(), Miss> {
        for gap in &self.gaps {
            let (old, file) = (&self.old[gap.old.clone()], &self.file[gap.file.clone()]);
            let same_names = |(old, file): (&&str, &&str)| names(old) == names(file);
            if old.len() == file.len() && old.iter().zip(file).all(same_names) {
                continue;
            }
            let mistaken = |old: &&&str| file.iter().any(|line| is_mistaken(old, line));
            let wrong = old.iter().find(mistaken).or_else(|| old.first().filter(|_| !certain));
            if let Some(wrong) = wrong {
                return Err(self.miss(wrong, gap));
            }
            if !certain {
                return Err(self.miss("", gap));
            }
        }
        Ok(())
    }

    fn miss(&self, wanted: &str, gap: &Gap) -> Miss {
        let alike = |line: &usize| similarity(&plain(wanted, Dash::One), &plain(self.file[*line], Dash::One));
        let line = gap.file.clone().max_by(|one, other| alike(one).total_cmp(&alike(other)));
        Miss { wanted: wanted.to_owned(), line }
    }

    /// Makes the change.
    fn lines(&self) -> Result<Vec<String>, Miss> {
        let mut made = Vec::new();
        // The gaps before this one are written.
        let mut next = 0;
        for op in capture_diff_slices(Algorithm::Myers, &self.old, &self.new) {
            let (old, new) = (op.old_range(), op.new_range());
            if let DiffOp::Equal { .. } = op {
                for at in old {
                    self.fill(&mut made, &mut next, at);
                    made.extend(self.pairs[at].map(|line| self.file[line].to_owned()));
                }
                continue;
            }
            if let Some(gap) = self.gaps.iter().find(|gap| gap.is_touched_by(&old)) {
                return Err(self.miss(self.old.get(gap.old.start).unwrap_or(&""), gap));
            }
            if !old.is_empty() {
                self.fill(&mut made, &mut next, old.start);
            }
            let partners = self.partners(&old, &new);
            let lines = new.clone().zip(partners);
            made.extend(lines.map(|(line, partner)| self.new_line(line, partner, &old, &new)));
        }
        self.fill(&mut made, &mut next, self.old.len());
        Ok(made)
    }

    /// Writes the gap before the old line `at`.
    fn fill(&self, made: &mut Vec<String>, next: &mut usize, at: usize) {
        if let Some(gap) = self.gaps.get(*next).filter(|gap| gap.old.start <= at) {
            made.extend(self.file[gap.file.clone()].iter().map(|line| (*line).to_owned()));
            *next += 1;
        }
    }

    /// Says for each of the lines `new` which of the lines `old`, in whose place they come, it was made of.
    fn partners(&self, old: &Range<usize>, new: &Range<usize>) -> Vec<Option<usize>> {
        if old.len() == new.len() {
            return old.clone().map(Some).collect();
        }
        if old.len() * new.len() > COMPARED {
            return vec![None; new.len()];
        }
        let mut next = old.start;
        let mut partner = |line: usize| {
            let alike = |at: usize| similarity(trimmed(self.old[at]), trimmed(self.new[line]));
            let best =
                (next..old.end).map(|at| (at, alike(at))).max_by(|one, other| one.1.total_cmp(&other.1));
            let found = best.filter(|(_, alike)| *alike >= MADE_OF).map(|(at, _)| at);
            next = found.map_or(next, |at| at + 1);
            found
        };
        new.clone().map(&mut partner).collect()
    }

    /// Returns the new line `line`, one of `new`, which come in the place of the old lines `old`. It was made of
    /// `partner`.
    fn new_line(
        &self,
        line: usize,
        partner: Option<usize>,
        old: &Range<usize>,
        new: &Range<usize>,
    ) -> String {
        let text = self.new[line];
        if trimmed(text).is_empty() {
            return text.to_owned();
        }
        let beside = (old.start + line - new.start).min(old.end.saturating_sub(1).max(old.start));
        let at = partner.unwrap_or(beside);
        let indent = self.reindent.indent(indent(text), at);
        let pair = partner.and_then(|at| self.pairs[at]);
        let Some(file) = pair.map(|pair| self.file[pair]) else {
            return indent + text.trim_start_matches(is_space);
        };
        let quoted = self.old[at];
        let end = if trail(quoted) == trail(text) { trail(file) } else { trail(text) };
        indent + &merged(trimmed(file), trimmed(quoted), trimmed(text)) + end
    }
}

impl Gap {
    /// Returns whether a change of these old lines, or one that adds before them, is a change of what has drifted.
    fn is_touched_by(&self, old: &Range<usize>) -> bool {
        if old.is_empty() {
            let within = self.old.start < old.start && old.start < self.old.end;
            return within || self.old.is_empty() && self.old.start == old.start;
        }
        let overlaps = self.old.start < old.end && old.start < self.old.end;
        overlaps && !self.old.is_empty()
            || self.old.is_empty() && old.start < self.old.start && self.old.start < old.end
    }
}

/// Returns whether one line may have been taken for the other.
fn is_mistaken(one: &str, other: &str) -> bool {
    let is_comment =
        |line| ["//", "/*", "* ", "# ", "-- ", "<!--"].iter().any(|mark| trimmed(line).starts_with(mark));
    !is_comment(one)
        && !is_comment(other)
        && names(one) != names(other)
        && similarity(&plain(one, Dash::One), &plain(other, Dash::One)) >= MISTAKEN
}

#[cfg(test)]
mod tests {
    use super::super::strategies::{Lines, Strategy, Wanted, find};
    use super::*;

    /// Replaces in the only place that is found.
    fn replaced(file: &str, old: &str, new: &str) -> Result<(Strategy, String), Miss> {
        let wanted = Wanted { old, new, whole_lines: false, approximate: true };
        let found = find(&Lines::new(file), wanted).expect("a place");
        assert_eq!(found.matches.len(), 1, "{:?}", found.matches);
        let place = &found.matches[0];
        let new = replacement(file, &found, place)?;
        let text = format!("{}{}{}", &file[..place.range.start], new.text, &file[place.range.end..]);
        Ok((found.strategy, text))
    }

    fn text(file: &str, old: &str, new: &str) -> String {
        replaced(file, old, new).unwrap().1
    }

    const BLOCK: &str =
        "fn start() {\n    // the old words\n    load(1);\n\n    check();\n    run();\n    stop();\n}\n";

    #[test]
    fn lines_that_are_left_alone_stay_as_the_file_has_them() {
        let file = "if a:\n\tb  ()\n\tc()  \nd()\n";
        assert_eq!(
            text(file, "if a:\n  b ()\n  c()", "if a:\n  b ()\n  e()"),
            "if a:\n\tb  ()\n\te()  \nd()\n"
        );
        assert_eq!(
            text(file, "  c()\nd()", "  c()\n  new()\nd()"),
            "if a:\n\tb  ()\n\tc()  \n\tnew()\nd()\n"
        );
        assert_eq!(
            text(" x\n say(“a”)\n", "say(\"a\")\n", "go()\nsay(\"a\", 1)\n"),
            " x\n go()\n say(“a”, 1)\n"
        );
        assert_eq!(
            text("  “a” = 1\n  “b” = 2\n", "\"a\" = 1\n\"b\" = 2", "\"a\" = 1\n\"b\" = 3"),
            "  “a” = 1\n  “b” = 3\n"
        );
    }

    #[test]
    fn a_last_line_stays_without_an_end_and_deleted_lines_leave_none_behind() {
        assert_eq!(text("a\n  b", "b\n", "c\n"), "a\n  c");
        assert_eq!(text("a\n  b \nc\n", "b\n", ""), "a\nc\n");
        assert_eq!(text("a\n\tb", " b\n", ""), "a");
    }

    #[test]
    fn what_has_drifted_between_the_ends_is_left_as_it_is() {
        let old =
            "fn start() {\n    // quite new words\n    load(1);\n    check();\n    run();\n    stop();\n}";
        let expected = BLOCK.replace("check", "verify");
        assert_eq!(
            replaced(BLOCK, old, &old.replace("check", "verify")).unwrap(),
            (Strategy::BlockAnchor, expected)
        );
        let more = old.replace("    run", "    log();\n    run");
        assert_eq!(text(BLOCK, old, &more), BLOCK.replace("    run", "    log();\n    run"));
    }

    #[test]
    fn a_near_miss_is_never_edited() {
        let old =
            "fn start() {\n    // the old words\n    load(1);\n\n    check();\n    walk();\n    stop();\n}";
        // The line that is changed is not there.
        let miss = replaced(BLOCK, old, &old.replace("walk", "fly")).unwrap_err();
        assert_eq!(miss, Miss { wanted: "    walk();".to_owned(), line: Some(5) });
        // The place may be another.
        let old = BLOCK.replace("load(1)", "load(2)");
        assert!(replaced(BLOCK, old.trim_end(), &old.trim_end().replace("check", "verify")).is_err());
        // It is not said on which side of what has drifted the line belongs.
        let old = BLOCK.replace("    load(1);\n\n", "");
        assert!(
            replaced(BLOCK, old.trim_end(), &old.trim_end().replace("    check", "    log();\n    check"))
                .is_err()
        );
    }

    #[test]
    fn without_sure_ends_only_signs_may_have_drifted() {
        let file = "call(a,\n     b,\n     c)\nd = 1\ne = 2\n";
        let old = "call(a,\n     b,\n     c);\nd = 1\ne = 2";
        let expected = (Strategy::BlockAnchor, file.replace("d = 1", "d = 5"));
        assert_eq!(replaced(file, old, &old.replace("d = 1", "d = 5")).unwrap(), expected);
        let old = "call(a\n     b,\n     c)\nd = 1\ne = 2;";
        let expected = (Strategy::ContextAware, file.replace("d = 1", "d = 5"));
        assert_eq!(replaced(file, old, &old.replace("d = 1", "d = 5")).unwrap(), expected);
        let old = "call(z,\n     b,\n     c)\nd = 1\ne = 2;";
        assert!(replaced(file, old, &old.replace("d = 1", "d = 5")).is_err());
    }
}
