//! A text cut into lines, and where a block of lines stands in it.

use std::ops::Range;

/// How many lines of a block are looked for all over the text.
const PROBES: usize = 8;

/// Among how many of its first lines those are chosen.
const DISTINCT: usize = 64;

/// The lines of a text, without what ends them.
pub(crate) struct Lines<'a> {
    text: &'a str,
    spans: Vec<Range<usize>>,
}

impl<'a> Lines<'a> {
    /// Cuts a text into lines. Behind the last `\n` there is none, unless something stands there.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut spans = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let ended = line.ends_with('\n');
            spans.push(at..at + line.len() - usize::from(ended));
            at += line.len();
        }
        Self { text, spans }
    }

    /// The text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns a line, counted from 0.
    pub(crate) fn line(&self, index: usize) -> &'a str {
        self.spans.get(index).map_or("", |span| &self.text[span.clone()])
    }

    /// Returns these lines.
    pub(crate) fn block(&self, lines: Range<usize>) -> Vec<&'a str> {
        lines.map(|index| self.line(index)).collect()
    }

    /// Returns which bytes these lines are, of which there is at least one, without the end of the last.
    pub(crate) fn span(&self, lines: &Range<usize>) -> Range<usize> {
        self.spans[lines.start].start..self.spans[lines.end - 1].end
    }

    /// Returns the line in which a byte stands, counted from 1.
    pub(crate) fn number_at(&self, byte: usize) -> usize {
        self.spans.partition_point(|span| span.start <= byte).max(1)
    }

    /// Returns every line with which a block begins that is the same as `old`.
    pub(super) fn blocks(&self, old: &[&str], same: impl Fn(&str, &str) -> bool) -> Vec<usize> {
        let Some(last) = self.len().checked_sub(old.len()) else { return Vec::new() };
        // By the line of a few that is rarest in the text: files are full of braces and blank lines.
        let probes = (0..old.len().min(DISTINCT)).filter(|at| !old[..*at].contains(&old[*at])).take(PROBES);
        let places =
            |at: usize| (0..self.len()).filter(|line| same(old[at], self.line(*line))).collect::<Vec<_>>();
        let rarest = probes.map(|at| (at, places(at))).min_by_key(|(_, places)| places.len());
        let Some((probe, places)) = rarest else { return Vec::new() };
        let fits = |start: usize| (0..old.len()).all(|at| same(old[at], self.line(start + at)));
        let starts = places.into_iter().filter_map(|line| line.checked_sub(probe));
        starts.filter(|start| *start <= last && fits(*start)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_people_do() {
        let lines = Lines::new("a\n\nb");
        assert_eq!(lines.block(0..lines.len()), ["a", "", "b"]);
        assert_eq!(
            (lines.number_at(0), lines.number_at(1), lines.number_at(2), lines.number_at(3)),
            (1, 1, 2, 3)
        );
        assert_eq!(lines.span(&(1..3)), 2..4);
        assert_eq!(Lines::new("a\n").len(), 1);
        assert_eq!((Lines::new("").len(), Lines::new("\n").len()), (0, 1));
    }

    #[test]
    fn a_block_is_found_wherever_it_begins() {
        let lines = Lines::new("x\nx\nx\ny\n");
        assert_eq!(lines.blocks(&["x", "x"], |one, other| one == other), [0, 1]);
        assert!(lines.blocks(&["x"; 5], |one, other| one == other).is_empty());
    }
}
