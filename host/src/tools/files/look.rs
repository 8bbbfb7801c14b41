//! What a file of the sandbox is, and the part of it that somebody wants to see.
//!
//! One script tells all of it, since each costs a start of a shell, and a file could change in between. A file may be far
//! larger than memory here or there, so of its lines no more comes than can be shown.

use std::time::Duration;

use hostel_plugin_api::Ended;

use super::access::{Files, MOST};
use super::answer::{Asked, Fields};
use super::error::FileError;
use super::protected::Doing;
use super::reads::State;
use crate::tools::script::{Ran, Script};
use crate::tools::tool::Failure;

const LOOK: &str = concat!(include_str!("begin.sh"), include_str!("resolve.sh"), include_str!("look.sh"));

/// The most bytes of a line that come: more than enough for 2,000 characters, so that a longer line shows itself.
pub(super) const LONGEST_LINE: usize = 8004;

/// The most bytes of all lines that come: more than enough for 100,000 characters.
const ENOUGH: usize = 420_000;

/// The most bytes that are taken from a file to make lines of: there are programs that hold a whole line to cut it.
const TAKEN: usize = 64 * 1024 * 1024;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Which lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range {
    /// The first, from 1.
    pub(super) offset: u64,
    /// How many at the most.
    pub(super) limit: u64,
}

/// What there is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Missing {
        /// The nearest folder above it, absolute and without links.
        folder: String,
        /// What is missing in that.
        wanted: String,
        /// What is there instead.
        names: Vec<String>,
    },
    /// A plain file.
    File(Look),
}

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Where it is, absolute and without links.
    pub(super) path: String,
    /// Its size in bytes, as the file system has it.
    pub(super) size: u64,
    /// What tells this state of it from others.
    pub(super) state: State,
    /// Its first bytes, at most 1,000.
    pub(super) head: Vec<u8>,
    /// What is shown of it.
    pub(super) body: Body,
}

/// What came of a file's contents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Nothing, since there is a NUL in its first bytes.
    Binary,
    /// All of it, since it is not to be shown as the lines that it consists of.
    Whole(Vec<u8>),
    /// Some of its lines.
    Lines {
        /// The lines, each cut after [`LONGEST_LINE`] bytes. There may be fewer than were asked for.
        bytes: Vec<u8>,
        /// How many lines the file has. None if there was no time to count them.
        total: Option<u64>,
    },
}

impl Files<'_> {
    /// Looks at what there is at a path. Links are followed.
    ///
    /// # Errors
    ///
    /// Fails if it is there but no plain file, protected, or cannot be read.
    pub(super) fn look(&self, path: &str, range: Range) -> Result<Found, FileError> {
        let script = self.script(LOOK, path, Doing::Reading)?;
        let ran = run(self, script, range)?;
        let asked = Asked { path, most: MOST as u64, sent: 0 };
        let mut fields = asked.answer(&ran)?;
        found(&ran, &mut fields, range).ok_or_else(|| match ran.ended {
            Ended::TIMEOUT => FileError::Unreadable {
                path: path.to_owned(),
                why: format!("it took longer than {} s", LIMIT.as_secs()),
            },
            _ => asked.garbled(&ran),
        })
    }
}

fn run(files: &Files<'_>, script: Script, range: Range) -> Result<Ran, FileError> {
    script
        .var("HOSTEL_MOST", MOST.to_string())
        .var("HOSTEL_OFFSET", range.offset.to_string())
        .var("HOSTEL_LIMIT", range.limit.to_string())
        .var("HOSTEL_LONGEST", LONGEST_LINE.to_string())
        .var("HOSTEL_ENOUGH", ENOUGH.to_string())
        .var("HOSTEL_TAKEN", TAKEN.to_string())
        .limit(LIMIT)
        .run_in_time(files.session, files.call)
        .map_err(|error| FileError::Environment(Failure::from(error)))
}

fn found(ran: &Ran, fields: &mut Fields<'_>, range: Range) -> Option<Found> {
    if fields.take()? == b"missing" {
        let _ = fields.take()?;
        let (folder, wanted) = (fields.text()?, fields.text()?);
        return Some(Found::Missing { folder, wanted, names: fields.texts() });
    }
    let path = fields.text()?;
    let size = fields.number()?;
    let state = State::read(&fields.text()?);
    let head = octal(fields.take()?);
    let body = match fields.take()? {
        b"binary" => Body::Binary,
        b"whole" if ran.exit_code == 0 && !ran.cut => Body::Whole(fields.contents()?.to_vec()),
        b"lines" => {
            let (bytes, total) = (fields.take()?, fields.number());
            Body::Lines { bytes: whole_lines(bytes, range, total).to_vec(), total }
        }
        _ => return None,
    };
    Some(Found::File(Look { path, size, state, head, body }))
}

/// Returns those lines of which it is certain that they are whole, or longer than is shown. Where fewer came than there are, what
/// was taken from the file ended within the last one.
fn whole_lines(bytes: &[u8], range: Range, total: Option<u64>) -> &[u8] {
    let there = total.map_or(u64::MAX, |total| (total + 1).saturating_sub(range.offset));
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    let is_cut_off = bytes.len() >= ENOUGH || (ends.len() as u64) < there.min(range.limit);
    match ends.as_slice() {
        [.., end, last] if is_cut_off && last + 1 == bytes.len() => &bytes[..=*end],
        [.., last] => &bytes[..=*last],
        [] => bytes,
    }
}

/// Reads bytes as `od -b` prints them: an address, and then three digits for each.
fn octal(printed: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(printed);
    let bytes = text.lines().flat_map(|line| line.split_ascii_whitespace().skip(1));
    bytes.filter_map(|digits| u8::from_str_radix(digits, 8).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(printed: &[u8], ended: Ended) -> Option<Found> {
        let ran = Ran { output: printed.to_vec(), cut: false, exit_code: 0, ended };
        let mut fields = Fields::new(&ran.output);
        found(&ran, &mut fields, Range { offset: 1, limit: 2 })
    }

    #[test]
    fn bytes_are_read_as_od_prints_them() {
        assert_eq!(octal(b"0000000 000 012 377\n0000020 101\n0000021\n"), [0, 10, 255, 65]);
        assert!(octal(b"0000000\n").is_empty() && octal(b"").is_empty());
    }

    #[test]
    fn what_there_is_comes_back() {
        let head = b"file\0/w/a\x006\0abc\x000000000 141 012 142\n\0";
        let look = |body| Look {
            path: "/w/a".into(),
            size: 6,
            state: State::read("abc"),
            head: b"a\nb".to_vec(),
            body,
        };
        for (body, expected) in [
            (&b"binary\0"[..], Body::Binary),
            (b"whole\0a\0b\0done", Body::Whole(b"a\0b".to_vec())),
            (b"lines\0a\nb\n\x002\0", Body::Lines { bytes: b"a\nb\n".to_vec(), total: Some(2) }),
            (b"lines\0a\nb\n\0", Body::Lines { bytes: b"a\nb\n".to_vec(), total: None }),
        ] {
            let printed = [&head[..], body].concat();
            assert_eq!(read(&printed, Ended::EXITED), Some(Found::File(look(expected))));
        }
        for cut in [&b"lines\0a\nb"[..], b"whole\0a\0b\0do", b"whole\0", b""] {
            assert_eq!(read(&[&head[..], cut].concat(), Ended::EXITED), None, "{cut:?}");
        }
    }

    #[test]
    fn a_line_that_may_be_cut_off_does_not_come_back() {
        let range = Range { offset: 3, limit: 3 };
        for (bytes, total, whole) in [
            (&b"a\nb\nc\n"[..], Some(9), &b"a\nb\nc\n"[..]),
            (b"a\nb\n", Some(4), b"a\nb\n"),
            (b"a\nb\n", Some(5), b"a\n"),
            (b"a\nb\n", None, b"a\n"),
            (b"a\nhal", Some(4), b"a\n"),
            // The first is certain to be longer than is shown.
            (b"a\n", Some(9), b"a\n"),
            (b"", Some(2), b""),
        ] {
            assert_eq!(whole_lines(bytes, range, total), whole, "{bytes:?} {total:?}");
        }
        let long = b"0123456789\n".repeat(ENOUGH / 11 + 1);
        let range = Range { offset: 1, limit: 100_000 };
        assert_eq!(whole_lines(&long, range, None).len(), long.len() - 11);
    }

    #[test]
    fn names_come_back_where_nothing_is() {
        let names = vec!["a\nb".to_owned(), ".c".to_owned()];
        let missing = Found::Missing { folder: "/w".into(), wanted: "x/y".into(), names };
        assert_eq!(read(b"missing\0/w/x/y\0/w\0x/y\0a\nb\0.c\0ha", Ended::EXITED), Some(missing));
    }
}
