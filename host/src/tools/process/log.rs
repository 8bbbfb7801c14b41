//! Shows lines of a process's output, as many as a tool may show.

use super::result::Reply;
use super::seen::{Seen, status};
use crate::processes::{Lines, LogView};
use crate::tools::shown::Shown;

/// Makes the answer from the lines that were found. No more than `most` bytes of them are shown.
pub(super) fn show(view: LogView, lines: Lines, most: usize, shown: &Shown) -> Reply {
    let text = shown.output(&view.output);
    let (text, cut) = fit(&text, most, lines.offset == 0);
    let mut showing = view.showing;
    let truncation_note = cut.then(|| {
        showing = format!("{} lines", text.lines().count());
        let part = if lines.offset == 0 { "the last" } else { "the first" };
        format!("{part} {} bytes are shown; ask for fewer lines with `offset` and `limit`", text.len())
    });
    Reply {
        seen: Seen::acted(status(view.status), view.session_id.to_string()),
        output: Some(text.to_owned()),
        total_lines: Some(view.total_lines),
        showing: Some(showing),
        truncation_note,
        dropped_bytes: Some(view.dropped_bytes).filter(|bytes| *bytes > 0),
        ..Reply::default()
    }
}

/// Cuts a text to whole lines of together at most `most` bytes, its last or its first ones. A line that is too long for that is cut
/// between characters. Returns whether anything was cut.
fn fit(text: &str, most: usize, last: bool) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    if last {
        let start =
            (text.len() - most..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        // A line that begins just there is whole.
        let line = if text[..start].ends_with('\n') {
            Some(start)
        } else {
            text[start..].find('\n').map(|at| start + at + 1)
        };
        let start = line.filter(|at| *at < text.len()).unwrap_or(start);
        return (&text[start..], true);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_shown_where_that_goes() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(fit(text, 14, true), (text, false));
        assert_eq!(fit(text, 10, true), ("two\nthree\n", true));
        assert_eq!(fit(text, 9, true), ("three\n", true));
        assert_eq!(fit(text, 9, false), ("one\ntwo\n", true));
        assert_eq!(fit("a€€€€", 7, true), ("€€", true));
        assert_eq!(fit("a€€€€", 6, false), ("a€", true));
        assert_eq!(fit("a\nbbbbbbbb\n", 5, true), ("bbbb\n", true));
    }
}
