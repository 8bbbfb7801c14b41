//! What the programs in the sandbox print, read without trust.
//!
//! Names of files may hold anything but a NUL: line breaks, colons, bytes that are no text. So fields end in a NUL, records end
//! in a line break where the name has none, and stand between two NULs where it has.

use std::borrow::Cow;

/// Takes the field at the beginning, up to its NUL. None if that is missing: then the program did not get so far.
pub(super) fn field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (field, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    Some(field)
}

/// As [`field`], as text.
pub(super) fn text<'a>(bytes: &mut &'a [u8]) -> Option<Cow<'a, str>> {
    field(bytes).map(String::from_utf8_lossy)
}

/// As [`field`], for what a program printed that ends each answer with a line break.
pub(super) fn answer<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    field(bytes).map(|field| field.strip_suffix(b"\n").unwrap_or(field))
}

/// Records, and what went wrong besides.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Records<'a> {
    /// Those that are whole.
    pub(super) records: Vec<&'a [u8]>,
    /// What programs said of problems. None if the program did not come to its end.
    pub(super) problems: Option<String>,
}

/// Parts what was printed into records.
pub(super) fn records(mut bytes: &[u8]) -> Records<'_> {
    let mut records = Vec::new();
    while let Some(first) = bytes.first() {
        if *first != 0 {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { break };
            records.push(&bytes[..end]);
            bytes = &bytes[end + 1..];
            continue;
        }
        bytes = &bytes[1..];
        if bytes.first() == Some(&0) {
            bytes = &bytes[1..];
            let problems = text(&mut bytes).map(Cow::into_owned);
            return Records { records, problems };
        }
        let Some(record) = field(&mut bytes) else { break };
        records.push(record);
    }
    Records { records, problems: None }
}

/// Returns the lines in which programs said what went wrong, at most `most` of them and then how many more there are.
pub(super) fn lines_of(problems: &str, most: usize) -> Vec<String> {
    let lines: Vec<&str> = problems.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut shown: Vec<String> =
        lines.iter().take(most).map(|line| line.chars().take(300).collect()).collect();
    if lines.len() > most {
        shown.push(format!("and {} more like these", lines.len() - most));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_parted_whatever_the_names_hold() {
        let printed =
            b"./a:12:b.txt:1\n\0./two\nlines.txt:3\0./caf\xe9:2\n\0\0grep: ./x: Permission denied\0";
        let read = records(printed);
        assert_eq!(read.records, [&b"./a:12:b.txt:1"[..], b"./two\nlines.txt:3", b"./caf\xe9:2"]);
        assert_eq!(read.problems.as_deref(), Some("grep: ./x: Permission denied"));
    }

    #[test]
    fn what_is_cut_off_is_no_record() {
        for cut in [&b"./a:1\n./b"[..], b"./a:1\n\0./b\nc", b"./a:1\n", b"./a:1\n\0", b"./a:1\n\0\0half"] {
            let read = records(cut);
            assert_eq!((read.records, read.problems), (vec![&b"./a:1"[..]], None), "{cut:?}");
        }
    }

    #[test]
    fn problems_are_told_up_to_some() {
        assert_eq!(lines_of("a\n\nb\nc\n", 2), ["a", "b", "and 1 more like these"]);
        assert!(lines_of(" \n", 2).is_empty());
    }
}
