//! What is looked for, and what is found.

use std::ops::Range;
use std::rc::Rc;

use super::lines::Lines;
use super::strategy::Strategy;

/// What is to be replaced by what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Whether both are whole lines, each with its end.
    pub(crate) whole_lines: bool,
    /// Whether a block may be found by what is merely alike.
    pub(crate) approximate: bool,
}

/// How a place and what was wanted fit together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fit {
    /// The new text comes in its place as it is.
    Literal,
    /// Line by line.
    Lines {
        /// For each line of what was wanted: which line of the place says the same, or none.
        pairs: Rc<[Option<usize>]>,
        /// Whether there can be no doubt about the place, though lines of it have drifted.
        certain: bool,
    },
}

impl Fit {
    /// Each of so many lines fits the line of the same number.
    pub(super) fn line_by_line(lines: usize) -> Self {
        Self::Lines { pairs: (0..lines).map(Some).collect(), certain: true }
    }
}

/// A place where it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Match {
    /// The bytes that are replaced.
    pub(crate) range: Range<usize>,
    /// Those of them that correspond to what was wanted: not an end of line that goes with it.
    pub(crate) body: Range<usize>,
    /// How they fit.
    pub(crate) fit: Fit,
}

impl Match {
    /// Makes one of whole lines.
    pub(super) fn new(lines: &Lines, block: &Range<usize>, fit: Fit) -> Self {
        let body = lines.span(block);
        Self { range: body.clone(), body, fit }
    }

    pub(super) fn part(range: Range<usize>, fit: Fit) -> Self {
        Self { body: range.clone(), range, fit }
    }
}

/// What was found.
pub(crate) struct Found {
    pub(crate) strategy: Strategy,
    /// What is replaced, as far as it corresponds to the body of a match.
    pub(crate) old: String,
    /// What comes in its place; none if that is no line at all.
    pub(crate) new: Option<String>,
    /// Where, in order. Places may overlap.
    pub(crate) matches: Vec<Match>,
}

impl Found {
    /// Makes one in which the new text comes in place of the old as both are. None if there is no place.
    pub(super) fn of(strategy: Strategy, wanted: Wanted, matches: Vec<Match>) -> Option<Self> {
        let (old, new) = (wanted.old.to_owned(), Some(wanted.new.to_owned()));
        (!matches.is_empty()).then_some(Self { strategy, old, new, matches })
    }
}

/// What is wanted, as whole lines.
pub(super) struct Block<'a> {
    pub(super) old: Vec<&'a str>,
    /// What comes in their place; none if they go altogether.
    new: Option<&'a str>,
    /// Whether the end of the last line goes with them.
    takes_end: bool,
}

impl<'a> Block<'a> {
    pub(super) fn of(wanted: Wanted<'a>) -> Self {
        let lines = |text: &'a str| text.split('\n').collect();
        match (wanted.old.strip_suffix('\n'), wanted.new.strip_suffix('\n')) {
            (None, _) => Self { old: lines(wanted.old), new: Some(wanted.new), takes_end: false },
            // A last line without an end in the file so stays without.
            (Some(old), Some(new)) => Self { old: lines(old), new: Some(new), takes_end: false },
            (Some(old), None) => {
                let new = Some(wanted.new).filter(|new| !new.is_empty());
                Self { old: lines(old), new, takes_end: true }
            }
        }
    }

    pub(super) fn places(&self, lines: &Lines, same: fn(&str, &str) -> bool) -> Vec<Match> {
        let fit = Fit::line_by_line(self.old.len());
        let found = lines.blocks(&self.old, same).into_iter();
        found.map(|start| Match::new(lines, &(start..start + self.old.len()), fit.clone())).collect()
    }

    pub(super) fn found(&self, strategy: Strategy, lines: &Lines, mut matches: Vec<Match>) -> Option<Found> {
        let text = lines.text();
        for found in matches.iter_mut().filter(|_| self.takes_end) {
            let range = &mut found.range;
            if text[range.end..].starts_with('\n') {
                range.end += 1;
            } else if self.new.is_none() && range.start > 0 {
                range.start -= 1;
            }
        }
        let (old, new) = (self.old.join("\n"), self.new.map(str::to_owned));
        (!matches.is_empty()).then_some(Found { strategy, old, new, matches })
    }
}
