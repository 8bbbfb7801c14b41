//! Why an edit is not made, and how that is said.

use crate::tools::Failure;

/// What to do if it is not there.
const AGAIN: &str = "read the file again, and give the text exactly as it is there";

/// Why an edit is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is nothing to look for.
    Empty,
    /// The new text is the old one.
    Same,
    /// It is not there.
    Missing {
        /// The lines that are most like it.
        near: Option<String>,
        /// The line on which the new text stands already.
        already: Option<usize>,
    },
    /// It is there more than once.
    Several {
        /// The lines on which it begins.
        lines: Vec<usize>,
    },
    /// A place is much like it, but not in what would be changed.
    Miss {
        /// A line that is not there; empty if lines are there that are not known of.
        wanted: String,
        /// The line that is there instead.
        line: Option<usize>,
        /// The place.
        near: String,
    },
    /// It is there without the escapes.
    Escaped {
        /// One of them.
        escape: String,
    },
    /// It would leave the file as it is.
    NoChange,
    /// The lines after `@@` are not there, or what is to be changed is not behind them.
    Context {
        /// The last of them.
        context: String,
        /// Whether they are there.
        is_there: bool,
    },
    /// Lines are to be added, and nothing says where.
    Nowhere,
    /// It changes what another one changes.
    Overlap,
}

/// What an edit that is refused was.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// `old_string`.
    OldString,
    /// The hunk that begins on this line of `patch`.
    Hunk(usize),
}

impl Refusal {
    /// Says why the edit of `path` was not made, and what to do.
    pub(super) fn failure(&self, subject: Subject, path: &str) -> Failure {
        let what = match subject {
            Subject::OldString => "`old_string`".to_owned(),
            Subject::Hunk(line) => format!("the hunk on line {line} of `patch`"),
        };
        let (message, hint) = match self {
            Self::Empty => (
                format!("{what} is empty"),
                "to make a file or to replace all of it, use `write_file`; to add lines, give the line beside them as \
                 `old_string`, and the same line with them as `new_string`",
            ),
            Self::Same => (
                "`old_string` and `new_string` are the same, so nothing would change".to_owned(),
                "give as `new_string` what is to come in place of `old_string`",
            ),
            Self::Missing { already: Some(line), .. } => (
                format!("{what} is not in `{path}`, but what is to come in its place is, on line {line}"),
                "read the file again: the edit may have been made before",
            ),
            Self::Missing { .. } => (format!("{what} is not in `{path}`"), AGAIN),
            Self::Several { lines } => {
                let hint = match subject {
                    Subject::OldString => {
                        "give more of the lines around it, so that it fits only one, or set `replace_all`"
                    }
                    Subject::Hunk(_) => {
                        "give more of the lines around it, or a line that stands before it after `@@`"
                    }
                };
                (format!("{what} is in `{path}` {} times, on {}", lines.len(), listed(lines)), hint)
            }
            Self::Miss { wanted, line, .. } => {
                let differs = differs(wanted.trim(), *line);
                (format!("{what} is not in `{path}` as it was given: {differs}"), AGAIN)
            }
            Self::Escaped { escape } => (
                format!(
                    "{what} has `{escape}` where `{path}` has no such backslash, and so has the new text"
                ),
                "give both texts without the extra backslashes",
            ),
            Self::NoChange => (
                format!("{what} would leave `{path}` as it is"),
                "read the file again: the edit may have been made before",
            ),
            Self::Context { context, is_there: false } => (
                format!("{what} stands behind `@@ {context}`, and there is no such line in `{path}`"),
                "give a whole line of the file after `@@`, or leave it out and give more lines around the change",
            ),
            Self::Context { context, .. } => (
                format!("{what} is not behind the line `{context}` in `{path}`"),
                "give a line after `@@` that stands before the change",
            ),
            Self::Nowhere => (
                format!("{what} only adds lines, and nothing says where in `{path}`"),
                "give the line before them as context, or after `@@`, or end the hunk with `*** End of File`",
            ),
            Self::Overlap => (
                format!("{what} changes lines of `{path}` that another hunk changes as well"),
                "make one hunk of both",
            ),
        };
        Failure::new(message).with_hint(hint)
    }

    /// Returns the lines that may have been meant.
    pub(super) fn near(&self) -> Option<&str> {
        match self {
            Self::Missing { near, .. } => near.as_deref(),
            Self::Miss { near, .. } => Some(near),
            _ => None,
        }
    }
}

/// Says in which line a place is not what was believed.
fn differs(wanted: &str, line: Option<usize>) -> String {
    match line {
        Some(line) if wanted.is_empty() => format!("it leaves out line {line}"),
        Some(line) => format!("it has `{wanted}` where line {line} reads otherwise"),
        None => format!("there is no `{wanted}` at that place"),
    }
}

/// Lists the numbers of lines, of which there are several.
fn listed(lines: &[usize]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = lines.iter().take(MOST).map(ToString::to_string).collect();
    match (&shown[..], lines.len().saturating_sub(MOST)) {
        (_, more @ 1..) => format!("lines {} and {more} more", shown.join(", ")),
        ([rest @ .., last], _) => format!("lines {} and {last}", rest.join(", ")),
        ([], _) => "no line".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_are_listed_up_to_twenty() {
        let say = |lines: Vec<usize>| Refusal::Several { lines }.failure(Subject::OldString, "m.py").message;
        assert_eq!(say(vec![2, 6]), "`old_string` is in `m.py` 2 times, on lines 2 and 6");
        assert!(say((1..=25).collect()).ends_with("18, 19, 20 and 5 more"));
    }

    #[test]
    fn a_near_miss_says_which_line_differs() {
        let miss = Refusal::Miss { wanted: "  retry(9)".into(), line: Some(4), near: "4|  retry(2)".into() };
        assert_eq!(
            miss.failure(Subject::Hunk(3), "m.py").message,
            "the hunk on line 3 of `patch` is not in `m.py` as it was given: it has `retry(9)` where line 4 reads otherwise"
        );
        assert_eq!(miss.near(), Some("4|  retry(2)"));
    }
}
