//! Finds what stands between the blank lines and the white space at either end of what is wanted.
//!
//! What is taken off the old text is taken off the new one too, as far as it has it.

use super::found::{Found, Wanted};
use super::lines::Lines;
use super::mapped::cuts_word;
use super::order::{by, exact};
use super::spaces::{is_space, trimmed};
use super::strategy::Strategy;

/// Looks for a part of the text.
pub(super) fn part(lines: &Lines, wanted: Wanted) -> Option<Found> {
    let old = wanted.old.trim_matches(|c| is_space(c) || c == '\n');
    let start = wanted.old.find(old)?;
    let (before, behind) = (&wanted.old[..start], &wanted.old[start + old.len()..]);
    let new = &wanted.new[same(before.bytes(), wanted.new.bytes())..];
    let new = &new[..new.len() - same(behind.bytes().rev(), new.bytes().rev())];
    let text = lines.text();
    // A line end that is taken off must still be one in the file.
    let ends = |at: usize| !behind.contains('\n') || ends_line(text[at..].chars());
    let mut matches = exact(text, old);
    matches.retain(|found| {
        !cuts_word(text, &found.range)
            && begins_as(text, found.range.start, wanted.old)
            && ends(found.range.end)
    });
    Found::of(Strategy::TrimmedBoundary, Wanted { old, new, ..wanted }, matches)
}

/// Looks for whole lines.
pub(super) fn whole_lines(lines: &Lines, wanted: Wanted) -> Option<Found> {
    let old: Vec<&str> = wanted.old.split_inclusive('\n').collect();
    let new: Vec<&str> = wanted.new.split_inclusive('\n').collect();
    let is_blank = |line: &&&str| trimmed(line.trim_end_matches('\n')).is_empty();
    let start = old.iter().take_while(is_blank).count();
    let end = old[start..].iter().rev().take_while(is_blank).count();
    if start + end == 0 {
        return None;
    }
    let new_start = new.iter().take_while(is_blank).count().min(start);
    let new_end = new[new_start..].iter().rev().take_while(is_blank).count().min(end);
    let (old, new) = (old[start..old.len() - end].concat(), new[new_start..new.len() - new_end].concat());
    let found = by(Strategy::LineTrimmed, lines, Wanted { old: &old, new: &new, ..wanted })?;
    Some(Found { strategy: Strategy::TrimmedBoundary, ..found })
}

/// Returns whether a place begins as `old` does: if that begins with a line end, or with the indentation of the first
/// of several lines, at the beginning of a line.
pub(super) fn begins_as(text: &str, at: usize, old: &str) -> bool {
    let bare = old.trim_start_matches(|c| is_space(c) || c == '\n');
    let lead = &old[..old.len() - bare.len()];
    let is_line = lead.contains('\n') || !lead.is_empty() && bare.trim_end_matches('\n').contains('\n');
    !is_line || ends_line(text[..at].chars().rev())
}

/// Returns whether nothing but white space comes before the end of a line, or of the text.
fn ends_line(mut rest: impl Iterator<Item = char>) -> bool {
    rest.find(|c| !is_space(*c)).is_none_or(|c| c == '\n')
}

fn same(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}
