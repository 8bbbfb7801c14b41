//! Makes the changes that one section of a patch wants in the text of a file.
//!
//! All hunks are found in the text as it is before the first of them, and none is applied before all are found.

use super::edit::{edit, missing, several, warning};
use super::files::{Edit, Text};
use super::refusal::Refusal;
use super::section::{Hunk, Kind};
use super::strategies::{Found, Lines, Match, Wanted, find, indent, trimmed};

/// A text after all hunks.
#[derive(Debug)]
pub(super) struct Patched {
    pub(super) text: Text,
    /// What the caller should look at.
    pub(super) warnings: Vec<String>,
}

/// A hunk that cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// The line of the patch on which it begins.
    pub(super) line: usize,
    pub(super) refusal: Refusal,
}

/// Applies hunks to a text.
///
/// # Errors
///
/// One of them does not fit, or two change the same.
pub(super) fn apply(text: &Text, hunks: &[Hunk]) -> Result<Patched, Unfit> {
    let lines = Lines::new(&text.text);
    let mut edits: Vec<(usize, Edit)> = Vec::new();
    let mut warnings = Vec::new();
    let mut behind = 0;
    for hunk in hunks {
        let placed =
            place(text, &lines, hunk, behind).map_err(|refusal| Unfit { line: hunk.line, refusal })?;
        behind = placed.edit.range.end;
        warnings.extend(placed.warning);
        edits.push((hunk.line, placed.edit.shrunk(&text.text)));
    }
    edits.sort_by_key(|(_, edit)| (edit.range.start, edit.range.end));
    for pair in edits.windows(2) {
        if pair[0].1.range.end > pair[1].1.range.start {
            return Err(Unfit { line: pair[0].0.max(pair[1].0), refusal: Refusal::Overlap });
        }
    }
    let edits: Vec<Edit> = edits.into_iter().map(|(_, edit)| edit).collect();
    let edited = text.edited(&edits);
    if edited.text == text.text && !hunks.is_empty() {
        return Err(Unfit { line: hunks[0].line, refusal: Refusal::NoChange });
    }
    Ok(Patched { text: edited, warnings })
}

struct Placed {
    edit: Edit,
    warning: Option<String>,
}

/// Finds where a hunk belongs. `behind` is where the one before it ends.
fn place(text: &Text, lines: &Lines, hunk: &Hunk, behind: usize) -> Result<Placed, Refusal> {
    let of = |kind: Kind| {
        let chosen = hunk.lines.iter().filter(move |(is, _)| *is == Kind::Context || *is == kind);
        chosen.map(|(_, line)| as_seen(text, line)).collect::<Vec<_>>()
    };
    let (old, new) = (of(Kind::Old), of(Kind::New));
    if old.is_empty() {
        return Ok(Placed { edit: insertion(lines, hunk, &new)?, warning: None });
    }
    let whole = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let (old, new) = (whole(&old), whole(&new));
    let wanted = Wanted { old: &old, new: &new, whole_lines: true, approximate: true };
    let found = find(lines, wanted).ok_or_else(|| missing(text, lines, &wanted))?;
    let place = choose(lines, hunk, &found, behind)?;
    let (edit, drifted) = edit(text, lines, &wanted, &found, place)?;
    let what = format!("the hunk on line {}", hunk.line);
    Ok(Placed { edit, warning: warning(&what, found.strategy, drifted) })
}

/// Returns a line of a hunk as the text of the file has it.
fn as_seen<'a>(text: &Text, line: &'a str) -> &'a str {
    if text.has_crlf() { line.strip_suffix('\r').unwrap_or(line) } else { line }
}

/// Returns the only place that can be meant.
fn choose<'a>(lines: &Lines, hunk: &Hunk, found: &'a Found, behind: usize) -> Result<&'a Match, Refusal> {
    let mut places: Vec<&Match> = found.matches.iter().collect();
    if !hunk.contexts.is_empty() {
        places = after_context(lines, hunk, &places)?;
    }
    if let [only] = places[..] {
        return Ok(only);
    }
    let last = places.iter().find(|place| hunk.at_end && lines.number_at(place.body.end) == lines.len());
    let mut later = places.iter().filter(|place| place.body.start >= behind && behind > 0);
    match (last, later.next(), later.next()) {
        (Some(place), ..) | (None, Some(place), None) => Ok(place),
        _ => {
            let places: Vec<Match> = places.into_iter().cloned().collect();
            Err(several(lines, &places))
        }
    }
}

/// Returns the places that the lines after `@@` lead to.
fn after_context<'a>(lines: &Lines, hunk: &Hunk, places: &[&'a Match]) -> Result<Vec<&'a Match>, Refusal> {
    let ends = contexts(lines, &hunk.contexts);
    let context = hunk.contexts.last().cloned().unwrap_or_default();
    if ends.is_empty() {
        return Err(Refusal::Context { context, is_there: false });
    }
    let mut led: Vec<&Match> = Vec::new();
    for at in ends {
        let start = lines.span(&(at..at + 1)).start;
        let scope = scope(lines, at);
        let mut later = places.iter().copied().filter(|place| place.body.start >= start);
        let inside = |place: &&Match| lines.number_at(place.body.start) <= scope;
        let within: Vec<&Match> = later.clone().filter(inside).collect();
        // A line that opens no block only says what comes before.
        let is_block = scope > at + 1;
        if !within.is_empty() {
            led.extend(within);
        } else if is_block {
            led.extend(later);
        } else {
            led.extend(later.next());
        }
    }
    led.sort_by_key(|place| place.body.start);
    led.dedup();
    if led.is_empty() {
        return Err(Refusal::Context { context, is_there: true });
    }
    Ok(led)
}

/// Returns the lines at which a chain of contexts ends, counted from 0.
fn contexts(lines: &Lines, chain: &[String]) -> Vec<usize> {
    let is_it = |wanted: &str, at: &usize| is_context(lines.line(*at), trimmed(wanted));
    let Some((first, rest)) = chain.split_first() else { return Vec::new() };
    let mut ends: Vec<usize> = (0..lines.len()).filter(|at| is_it(first, at)).collect();
    for wanted in rest {
        // The next is in the block that the one before opens, or else it is the first behind it.
        let next = |end: usize| {
            let later: Vec<usize> = (end + 1..lines.len()).filter(|at| is_it(wanted, at)).collect();
            let inside = later.iter().take_while(|at| **at < scope(lines, end)).count();
            later.into_iter().take(inside.max(1))
        };
        ends = ends.into_iter().flat_map(next).collect();
        ends.sort_unstable();
        ends.dedup();
    }
    ends
}

/// Returns whether a line is the one that was given after `@@`, if only its beginning.
fn is_context(line: &str, wanted: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    trimmed(line)
        .strip_prefix(wanted)
        .is_some_and(|rest| !(wanted.ends_with(is_word) && rest.starts_with(is_word)))
}

/// Returns the number, from 1, of the last line of the block that the line `at` opens by indentation.
fn scope(lines: &Lines, at: usize) -> usize {
    let own = indent(lines.line(at)).len();
    let deeper = |line: &usize| {
        let text = lines.line(*line);
        trimmed(text).is_empty() || indent(text).len() > own
    };
    let inside =
        (at + 1..lines.len()).take_while(deeper).filter(|line| !trimmed(lines.line(*line)).is_empty());
    inside.last().map_or(at + 1, |last| last + 1)
}

/// Returns the edit of a hunk that only adds lines.
fn insertion(lines: &Lines, hunk: &Hunk, new: &[&str]) -> Result<Edit, Refusal> {
    let text = lines.text();
    let added = new.join("\n");
    let at_end = || {
        let new =
            if text.is_empty() || text.ends_with('\n') { added.clone() + "\n" } else { format!("\n{added}") };
        Edit { range: text.len()..text.len(), new }
    };
    if text.is_empty() || hunk.at_end {
        return Ok(at_end());
    }
    let Some(context) = hunk.contexts.last() else { return Err(Refusal::Nowhere) };
    match contexts(lines, &hunk.contexts)[..] {
        [] => Err(Refusal::Context { context: context.clone(), is_there: false }),
        [only] => {
            let end = lines.span(&(only..only + 1)).end;
            Ok(Edit { range: end..end, new: format!("\n{added}") })
        }
        ref several => Err(Refusal::Several { lines: several.iter().map(|at| at + 1).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::Action;
    use super::super::v4a::parse;
    use super::*;

    fn patched(file: &[u8], hunks: &str) -> Result<Vec<u8>, Refusal> {
        let sections = parse(&format!("*** Update File: f\n{hunks}")).unwrap();
        let Action::Update { hunks, .. } = &sections[0].action else { panic!("an update") };
        let patched = apply(&Text::decode(file).unwrap(), hunks);
        patched.map(|patched| patched.text.bytes()).map_err(|unfit| unfit.refusal)
    }

    fn text(file: &str, hunks: &str) -> String {
        String::from_utf8(patched(file.as_bytes(), hunks).unwrap()).unwrap()
    }

    const FILE: &str =
        "class A:\n    def run(self):\n        retry(2)\n\nclass B:\n    def run(self):\n        retry(2)\n";

    #[test]
    fn hunks_are_applied_together() {
        assert_eq!(text("a\nb\nc\nd\n", "@@\n a\n-b\n+B\n c\n@@\n c\n+x\n d\n"), "a\nB\nc\nx\nd\n");
        assert_eq!(text("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A\n"), "A\nb\nC\n");
        let twice = patched(b"a\nb\n", "@@\n-a\n+x\n@@\n-a\n+y\n");
        assert_eq!(twice, Err(Refusal::Overlap));
    }

    #[test]
    fn only_whole_lines_are_found() {
        assert!(matches!(patched(b"max = 1\n", "@@\n-x = 1\n+x = 2\n"), Err(Refusal::Missing { .. })));
    }

    #[test]
    fn line_ends_and_a_missing_last_one_stay() {
        assert_eq!(patched(b"a\r\nb", "@@\n a\n-b\n+c\n+d\n").unwrap(), b"a\r\nc\r\nd");
        assert_eq!(patched(b"a\r\nb", "@@\n-b\n").unwrap(), b"a");
        assert_eq!(patched(b"\xef\xbb\xbfa\r\nb\r\n", "@@\n-a\n").unwrap(), b"\xef\xbb\xbfb\r\n");
        assert_eq!(text("a\nb\n\n", "@@\n-a\n+A\n"), "A\nb\n\n");
    }

    #[test]
    fn a_place_that_may_be_another_is_refused_unless_a_context_leads_to_it() {
        let change = "-        retry(2)\n+        retry(3)\n";
        assert_eq!(
            patched(FILE.as_bytes(), &format!("@@\n{change}")),
            Err(Refusal::Several { lines: vec![3, 7] })
        );
        let many = patched(FILE.as_bytes(), &format!("@@ def run(self):\n{change}"));
        assert_eq!(many, Err(Refusal::Several { lines: vec![3, 7] }));
        let expected = FILE.replacen(
            "B:\n    def run(self):\n        retry(2)",
            "B:\n    def run(self):\n        retry(3)",
            1,
        );
        for context in ["@@ class B:\n@@ def run(self):\n", "@@ class B\n"] {
            assert_eq!(text(FILE, &format!("{context}{change}")), expected, "{context}");
        }
        assert_eq!(
            text(FILE, &format!("@@ class A:\n@@ def run\n{change}")),
            FILE.replacen("retry(2)", "retry(3)", 1)
        );
        let end = text(FILE, &format!("@@\n{change}*** End of File\n"));
        assert_eq!(end, expected);
        let none = patched(FILE.as_bytes(), &format!("@@ class C:\n{change}"));
        assert_eq!(none, Err(Refusal::Context { context: "class C:".into(), is_there: false }));
        let before = patched(b"x\ny\n", "@@ y\n-x\n+z\n");
        assert_eq!(before, Err(Refusal::Context { context: "y".into(), is_there: true }));
    }

    #[test]
    fn lines_that_are_only_added_need_a_place() {
        assert_eq!(text("a\nb\n", "@@ a\n+x\n"), "a\nx\nb\n");
        assert_eq!(text("a\nb", "@@ b\n+x\n"), "a\nb\nx");
        assert_eq!(text("a\nb", "@@\n+x\n*** End of File\n"), "a\nb\nx");
        assert_eq!(text("a\n", "@@\n+x\n*** End of File\n"), "a\nx\n");
        assert_eq!(text("", "@@\n+x\n"), "x\n");
        assert_eq!(patched(b"a\n", "@@\n+x\n"), Err(Refusal::Nowhere));
        assert_eq!(patched(b"a\na\n", "@@ a\n+x\n"), Err(Refusal::Several { lines: vec![1, 2] }));
    }
}
