//! The lines of one page, fetched from the files that hold them.

use std::time::{Duration, Instant};

use hostel_plugin_api::Ended;

use super::dialects::Patterns;
use super::page::Item;
use super::place::Place;
use super::query::Query;
use super::records::lines_of;
use super::walk::{Walked, stopped, with_patterns};
use crate::tools::call::Call;
use crate::tools::script::Script;
use crate::tools::session::Session;
use crate::tools::tool::Failure;

const LINES: &str = concat!(
    include_str!("begin.sh"),
    include_str!("place.sh"),
    include_str!("match.sh"),
    include_str!("lines.sh")
);

/// The time that is left for fetching what was found, however long the finding took.
const LEAST: Duration = Duration::from_secs(5);

/// The most characters of a line.
const LONGEST: usize = 500;

/// What was fetched, item by item as it was asked for, without those that were not reached.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// The pieces.
    pub(super) pieces: Vec<Piece>,
    /// Why some are missing.
    pub(super) limit: Option<&'static str>,
    /// What could not be read.
    pub(super) problems: Vec<String>,
}

/// What was fetched of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// It is binary, and has no lines.
    pub(super) binary: bool,
    /// Matching lines and their neighbours, in order.
    pub(super) lines: Vec<FileLine>,
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileLine {
    /// From 1.
    pub(super) number: u64,
    /// It is one of those that were asked for.
    pub(super) asked: bool,
    /// Its beginning.
    pub(super) content: String,
}

/// Fetches the lines of some items.
///
/// # Errors
///
/// Fails if nothing could be fetched.
pub(super) fn fetch(
    session: &Session,
    call: &Call,
    query: &Query,
    (patterns, context): (&Patterns, u64),
    (walked, items): (&Walked, &[Item]),
) -> Result<Fetched, Failure> {
    if items.is_empty() {
        return Ok(Fetched::default());
    }
    let mut input = Vec::new();
    for item in items {
        input.extend_from_slice(format!("{},{},./", item.skip, item.take).as_bytes());
        input.extend_from_slice(&walked.files[item.file].name);
        input.push(0);
    }
    let script = Script::new(LINES)
        .limit(walked.deadline.saturating_duration_since(Instant::now()).max(LEAST))
        .stdin(input)
        .var("HOSTEL_ROOT", &query.path)
        .var("HOSTEL_ENGINE", &walked.engine.name)
        .var("HOSTEL_RG", &walked.engine.options)
        .var("HOSTEL_LOCALE", &walked.engine.locale)
        .var("HOSTEL_CONTEXT", context.to_string());
    let ran = with_patterns(script, patterns).run_in_time(session, call)?;
    let mut printed = ran.output.as_slice();
    let place = Place::read(&query.path, &mut printed)?;
    if place != walked.place {
        return Err(Failure::new("what is searched was moved meanwhile").with_hint("search again"));
    }
    let limit = match (ran.ended == Ended::TIMEOUT, ran.cut) {
        (true, _) => Some("search_timeout"),
        (_, true) => Some("output_limit"),
        _ => None,
    };
    let (pieces, problems) = pieces(printed, items, context);
    if limit.is_none() && problems.is_none() {
        return Err(stopped());
    }
    let problems = lines_of(problems.as_deref().unwrap_or_default(), 5);
    Ok(Fetched { pieces, limit, problems })
}

/// Reads the pieces, and what went wrong if the program came to its end.
fn pieces(printed: &[u8], items: &[Item], context: u64) -> (Vec<Piece>, Option<String>) {
    let mut fields = printed.split(|byte| *byte == 0);
    // Nothing stands before the first NUL, and nothing between the two that end the pieces.
    let _ = fields.next();
    let mut pieces = Vec::new();
    for field in fields.by_ref() {
        if field.is_empty() {
            break;
        }
        let Some(item) = items.get(pieces.len()) else { break };
        pieces.push(piece(field, item.take, context));
    }
    // Behind the last field there is one more NUL.
    let problems = fields.next().filter(|_| fields.next().is_some());
    (pieces, problems.map(|problems| String::from_utf8_lossy(problems).into_owned()))
}

fn piece(field: &[u8], take: u64, context: u64) -> Piece {
    let mut rows = field.split_inclusive(|byte| *byte == b'\n').filter_map(|row| row.strip_suffix(b"\n"));
    let head = String::from_utf8_lossy(rows.next().unwrap_or_default()).into_owned();
    let mut numbers = head.split(' ').map(|number| number.parse::<u64>().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let (binary, start, first) = (number() == 1, number().max(1), number());
    let mut lines: Vec<FileLine> = Vec::new();
    let (mut taken, mut last) = (0, 0);
    for row in rows {
        let Some(digits) = row.iter().position(|byte| !byte.is_ascii_digit()) else { continue };
        let Some(number) = str::from_utf8(&row[..digits]).ok().and_then(|text| text.parse::<u64>().ok())
        else {
            continue;
        };
        let number = number.saturating_add(start - 1);
        let asked = row[digits] == b':' && number >= first && taken < take;
        if asked {
            (taken, last) = (taken + 1, number);
        }
        // Behind the last one that was asked for come its neighbours, and then what only was printed with them.
        if !asked && taken == take && number > last + context {
            break;
        }
        lines.push(FileLine { number, asked, content: content(&row[digits + 1..], number) });
    }
    Piece { binary, lines }
}

/// Returns the beginning of a line as it is shown.
fn content(line: &[u8], number: u64) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    // The program has cut after some bytes, maybe within a character; what is shown ends before that.
    String::from_utf8_lossy(line).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(take: u64) -> Item {
        Item { take, ..Item::default() }
    }

    fn numbers(piece: &Piece) -> Vec<(u64, bool)> {
        piece.lines.iter().map(|line| (line.number, line.asked)).collect()
    }

    #[test]
    fn pieces_are_read_in_order() {
        let printed =
            b"\x000 1 0\n1:a:b\r\n2-c\n--\n9:d\n\x001 1 0\n\x000 1 0\n3:\xff\xfe\n\0\0grep: x: gone\0";
        let (pieces, problems) = pieces(printed, &[item(9), item(9), item(9)], 1);
        assert_eq!(numbers(&pieces[0]), [(1, true), (2, false), (9, true)]);
        assert_eq!(pieces[0].lines[0].content, "a:b");
        assert!(pieces[1].binary && pieces[1].lines.is_empty());
        assert_eq!(pieces[2].lines[0].content, "\u{fffd}\u{fffd}");
        assert_eq!(problems.as_deref(), Some("grep: x: gone"));
    }

    #[test]
    fn a_piece_holds_what_was_asked_for_and_its_neighbours() {
        // Reading began at line 10, and the first match that counts is in line 12.
        let printed = b"\x000 10 12\n2:before\n3:one\n4-between\n5:two\n6:three\n7-after\n\0\0\0";
        let (read, problems) = pieces(printed, &[item(2)], 1);
        assert_eq!(problems.as_deref(), Some(""));
        assert_eq!(numbers(&read[0]), [(11, false), (12, true), (13, false), (14, true), (15, false)]);
    }

    #[test]
    fn what_is_cut_off_has_no_end() {
        let (read, problems) = pieces(b"\x000 1 0\n1:a\n2:hal", &[item(9)], 0);
        assert_eq!((numbers(&read[0]), problems), (vec![(1, true)], None));
        assert_eq!(pieces(b"\x000 1 0\n1:a\n\0\0hal", &[item(9)], 0).1, None);
    }

    #[test]
    fn lines_are_cut_on_characters() {
        assert_eq!(content("é".repeat(700).as_bytes(), 5).chars().count(), 500);
        assert_eq!(content(b"\xef\xbb\xbfx", 1), "x");
    }
}
