//! The form of the file: reading it, and writing one value.

use std::collections::BTreeSet;
use std::ops::Range;

/// One assignment.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: String,
    /// Where the value stands in the text, quotes included.
    pub(super) place: Range<usize>,
}

/// The line in which something is wrong, and what.
pub(super) type Wrong = (usize, &'static str);

/// Returns whether a variable can be called so.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads all assignments.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, Wrong> {
    let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
    let (mut line, mut counted) = (1, 0);
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    while at < text.len() {
        line += text[counted..at].matches('\n').count();
        counted = at;
        let wrong = |reason| Err((line, reason));
        let end = line_end(text, at);
        let whole = text[at..end].trim();
        if whole.is_empty() || whole.starts_with('#') {
            at = end + 1;
            continue;
        }
        let Some(equals) = text[at..end].find('=').map(|offset| at + offset) else {
            return wrong("there is no `=`");
        };
        let left = text[at..equals].trim_start();
        let name = match left.strip_prefix("export") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
            _ => left,
        };
        if !is_name(name) {
            return wrong("what stands before the `=` is not the name of a variable");
        }
        let (value, place) = value(text, equals + 1).map_err(|reason| (line, reason))?;
        if value.contains('\0') {
            return wrong("the value holds a NUL character");
        }
        if !names.insert(name) {
            return wrong("the variable is set a second time");
        }
        at = line_end(text, place.end) + 1;
        entries.push(Entry { name: name.to_owned(), value, place });
    }
    Ok(entries)
}

/// Returns where the line that `at` is in ends.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |offset| at + offset)
}

/// Reads the value that begins at `at`. Returns it, and where it stands.
fn value(text: &str, at: usize) -> Result<(String, Range<usize>), &'static str> {
    let end = line_end(text, at);
    let blank = text[at..end].len() - text[at..end].trim_start().len();
    let start = at + blank;
    let (value, stop) = match text[start..end].chars().next() {
        Some('\'') => single(text, start)?,
        Some('"') => double(text, start)?,
        _ => {
            // A comment begins at a `#` that something blank is in front of.
            let line = &text[at..end];
            let mut marks = line.match_indices('#').map(|(offset, _)| offset);
            let comment = marks.find(|offset| line[..*offset].ends_with([' ', '\t']));
            let bare = line[..comment.unwrap_or(line.len())].trim();
            // What is empty stands right after the `=`.
            let start = if bare.is_empty() { at } else { start };
            return Ok((bare.to_owned(), start..start + bare.len()));
        }
    };
    let after = text[stop..line_end(text, stop)].trim();
    if after.is_empty() || after.starts_with('#') {
        Ok((value, start..stop))
    } else {
        Err("something follows the closing quote")
    }
}

/// Reads what stands in single quotes from `start` on. Returns it, and where it ends.
fn single(text: &str, start: usize) -> Result<(String, usize), &'static str> {
    let inner = &text[start + 1..];
    let length = inner.find('\'').ok_or("a single quote is not closed")?;
    Ok((inner[..length].to_owned(), start + 1 + length + 1))
}

/// Reads what stands in double quotes from `start` on. Returns it, and where it ends.
fn double(text: &str, start: usize) -> Result<(String, usize), &'static str> {
    let mut value = String::new();
    let mut characters = text[start + 1..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            '"' => return Ok((value, start + 1 + offset + 1)),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$' | '`')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            character => value.push(character),
        }
    }
    Err("a double quote is not closed")
}

/// Writes a value so that this and every shell reads it as it is.
pub(super) fn quoted(value: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_./:@%+,=-".contains(character);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    if !value.chars().any(|character| character == '\'' || character.is_control()) {
        return format!("'{value}'");
    }
    let mut text = String::from('"');
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' | '$' | '`' => text.extend(['\\', character]),
            character => text.push(character),
        }
    }
    text.push('"');
    text
}
