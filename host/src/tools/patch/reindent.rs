//! Indents new lines as the file does.
//!
//! A model that quotes lines with the wrong indentation writes the new ones in the same wrong way. How the lines that
//! it quotes are indented in the file says how the new ones are to be: the same depth elsewhere, another width, or
//! tabs for spaces.

use super::strategies::{indent, trimmed};

/// A line as it was quoted and as the file has it.
struct Pair {
    at: usize,
    quoted: String,
    file: String,
}

/// How quoted lines are indented, and the same lines in the file.
pub(super) struct Reindent {
    pairs: Vec<Pair>,
    line: Option<Straight>,
    same: bool,
}

/// What makes `quoted` characters of indentation `times / per * quoted + more` in the file.
struct Straight {
    times: i64,
    per: i64,
    more: i64,
    file_is_tabs: bool,
    quoted_is_tabs: bool,
}

impl Reindent {
    /// Learns from lines: the number, as it was quoted, as the file has it.
    pub(super) fn new<'a>(lines: impl Iterator<Item = (usize, &'a str, &'a str)>) -> Self {
        let filled =
            lines.filter(|(_, quoted, file)| !trimmed(quoted).is_empty() && !trimmed(file).is_empty());
        let pair = |(at, quoted, file): (usize, &str, &str)| Pair {
            at,
            quoted: indent(quoted).to_owned(),
            file: indent(file).to_owned(),
        };
        let pairs: Vec<Pair> = filled.map(pair).collect();
        let same = pairs.iter().all(|pair| pair.quoted == pair.file);
        // The first line is often quoted from its first word on, whatever the others are.
        let line = straight(&pairs).or_else(|| straight(pairs.get(1..)?));
        Self { pairs, line, same }
    }

    /// Returns the indentation in the file for one that a new line has which stands at or near the quoted line `at`.
    pub(super) fn indent(&self, new: &str, at: usize) -> String {
        if self.same {
            return new.to_owned();
        }
        let near = |pairs: &mut dyn Iterator<Item = &Pair>| {
            pairs.min_by_key(|pair| pair.at.abs_diff(at)).map(|pair| (pair.quoted.clone(), pair.file.clone()))
        };
        if let Some((_, file)) = near(&mut self.pairs.iter().filter(|pair| pair.quoted == new)) {
            return file;
        }
        if let Some(indent) = self.line.as_ref().and_then(|line| line.indent(new)) {
            return indent;
        }
        let longest = self
            .pairs
            .iter()
            .filter(|pair| new.starts_with(&pair.quoted))
            .map(|pair| pair.quoted.len())
            .max();
        let prefix = |pair: &&Pair| Some(pair.quoted.len()) == longest && new.starts_with(&pair.quoted);
        match near(&mut self.pairs.iter().filter(prefix)) {
            Some((quoted, file)) => file + &new[quoted.len()..],
            None => new.to_owned(),
        }
    }
}

/// Finds the rule that all pairs follow. None if there is none, or one mixes tabs and spaces.
fn straight(pairs: &[Pair]) -> Option<Straight> {
    let quoted_is_tabs = is_tabs(pairs.iter().map(|pair| &*pair.quoted))?;
    let file_is_tabs = is_tabs(pairs.iter().map(|pair| &*pair.file))?;
    let (quoted_is_tabs, file_is_tabs) = match (quoted_is_tabs, file_is_tabs) {
        (None, None) => return None,
        (Some(one), None) | (None, Some(one)) => (one, one),
        (Some(quoted), Some(file)) => (quoted, file),
    };
    let mut points: Vec<(i64, i64)> =
        pairs.iter().map(|pair| (width(&pair.quoted), width(&pair.file))).collect();
    points.sort_unstable();
    points.dedup();
    let (first, last) = (*points.first()?, *points.last()?);
    let (times, per) = match (last.0 - first.0, last.1 - first.1) {
        // One depth only. In the same characters that is a shift, in others a change of width.
        (0, 0) if quoted_is_tabs == file_is_tabs || first.0 == 0 => (1, 1),
        (0, 0) => (first.1, first.0),
        (0, _) => return None,
        (_, times) if times < 0 => return None,
        (per, times) => (times, per),
    };
    let more = first.1 * per - first.0 * times;
    let fits = |(quoted, file): &(i64, i64)| quoted * times + more == file * per;
    (times > 0 && points.iter().all(fits)).then_some(Straight {
        times,
        per,
        more,
        file_is_tabs,
        quoted_is_tabs,
    })
}

impl Straight {
    fn indent(&self, new: &str) -> Option<String> {
        let fits = is_tabs([new].into_iter())?.is_none_or(|tabs| tabs == self.quoted_is_tabs);
        if !fits {
            return None;
        }
        let wide = (width(new) * self.times + self.more).max(0) / self.per;
        let one = if self.file_is_tabs { "\t" } else { " " };
        Some(one.repeat(usize::try_from(wide).ok()?))
    }
}

/// Returns whether indentations are of tabs; within, none if all are empty; none if they are mixed.
#[allow(clippy::option_option, reason = "mixed and empty are different")]
fn is_tabs<'a>(indents: impl Iterator<Item = &'a str>) -> Option<Option<bool>> {
    let mut found = None;
    for c in indents.flat_map(str::chars) {
        match (c, found) {
            ('\t', None | Some(true)) => found = Some(true),
            (' ', None | Some(false)) => found = Some(false),
            _ => return None,
        }
    }
    Some(found)
}

fn width(indent: &str) -> i64 {
    i64::try_from(indent.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pairs: &[(&str, &str)]) -> Reindent {
        let pair =
            |(at, (quoted, file)): (usize, &(&str, &str))| (at, format!("{quoted}x"), format!("{file}x"));
        let pairs: Vec<_> = pairs.iter().enumerate().map(pair).collect();
        Reindent::new(pairs.iter().map(|(at, quoted, file)| (*at, &**quoted, &**file)))
    }

    #[test]
    fn new_lines_get_the_depth_width_and_characters_of_the_file() {
        for (pairs, new, expected) in [
            (&[("", "    "), ("    ", "        ")][..], "        ", "            "),
            (&[("        ", "    ")], "            ", "        "),
            (&[("        ", "    ")], "    ", ""),
            (&[("", ""), ("  ", "    ")], "    ", "        "),
            (&[("", ""), ("    ", "\t")], "        ", "\t\t"),
            (&[("    ", "\t\t"), ("        ", "\t\t\t")], "            ", "\t\t\t\t"),
            (&[("\t", "    ")], "\t\t", "        "),
            (&[("    ", "\t")], "        ", "\t\t"),
            (&[("", "    "), ("    ", "    ")], "    ", "    "),
            (&[("", "    "), ("    ", "    ")], "        ", "        "),
            (&[(" \t", "  "), ("", "")], " \t  ", "    "),
            (&[("  ", "  ")], "\t", "\t"),
        ] {
            assert_eq!(lines(pairs).indent(new, 1), expected, "{pairs:?} {new:?}");
        }
    }

    #[test]
    fn of_two_ways_the_nearer_counts() {
        let lines = lines(&[("", ""), ("  ", "    "), ("", "    ")]);
        assert_eq!((lines.indent("", 0), lines.indent("", 2)), (String::new(), "    ".to_owned()));
    }
}
