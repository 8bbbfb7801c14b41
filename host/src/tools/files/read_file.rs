//! The tool `read_file`.

use std::sync::PoisonError;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Files;
use super::error::FileError;
use super::kinds::{Kind, from_utf16};
use super::look::{Body, Found, Look, Range};
use super::numbered::Numbered;
use super::reads::{Reads, Repeat};
use super::similar::similar;
use super::{notebook, office};
use crate::tools::arguments::whole;
use crate::tools::{Call, Effects, Failure, Session, Tool};

/// How many lines are shown if nobody says.
const USUAL: u64 = 500;

/// The most lines that are shown.
const MOST: u64 = 2000;

/// Reads text files.
pub(in crate::tools) struct ReadFile;

/// What `read_file` is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// The file. A relative path starts where the session stands, `~` is the home in the sandbox.
    path: String,
    /// The first line to show, from 1. Default 1.
    #[serde(default, deserialize_with = "whole")]
    offset: Option<u64>,
    /// How many lines to show. Default 500, at most 2000.
    #[serde(default, deserialize_with = "whole")]
    limit: Option<u64>,
}

/// What `read_file` answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(in crate::tools) struct Output {
    /// The lines, each as `NUMBER|TEXT`. Number and bar are not in the file, nor does its byte-order mark show, and lines end
    /// in `\n` however they do there.
    content: String,
    /// How many lines the file has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_size: Option<u64>,
    /// Whether there are lines behind those that are shown.
    truncated: bool,
    /// The `offset` with which to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Whether it is no text.
    is_binary: bool,
    /// Whether it is a picture.
    is_image: bool,
    /// Whether nothing is shown because the same lines were shown before and have not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    /// Why nothing is shown, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Paths that are like one that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    similar_files: Vec<String>,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a text file in the sandbox, with line numbers: 500 lines from the first, or `limit` \
        lines (at most 2000) from `offset`. Use it instead of cat, head, tail and sed. There is more while `next_offset` is given; \
        lines are cut after 2000 characters, and a result after 100,000. Files of any size can be read. Notebooks, and documents \
        in docx and xlsx, are shown as text; other binary files and pictures are not. `search_files` lists folders and finds \
        lines. What was read and has not changed is not shown again.";
    const EFFECTS: Effects =
        Effects { read_only: true, destructive: false, idempotent: true, open_world: false };
    type Input = Input;
    type Output = Output;

    fn run(session: &Session, input: Input, call: &Call) -> Output {
        let path = input.path.as_str();
        let range = Range {
            offset: input.offset.unwrap_or(1).max(1),
            limit: input.limit.unwrap_or(USUAL).clamp(1, MOST),
        };
        let looked = Files::new(session, call).look(path, range);
        let mut reads = session.memory.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = match looked {
            Ok(Found::File(look)) => shown(look, range, path, &mut reads, call.is_scripts()),
            Ok(Found::Missing { folder, wanted, names }) => Output {
                similar_files: similar(path, &folder, &wanted, &names),
                ..Self::failed(FileError::Missing(path.to_owned()).into())
            },
            Err(error) => Self::failed(error.into()),
        };
        match &mut output.error {
            Some(error) if !call.is_scripts() && output.unchanged.is_none() => {
                remark(error, reads.failed(path, range, error));
            }
            _ => reads.succeeded(path, range),
        }
        if input.limit.is_some_and(|limit| limit > MOST) {
            output.add_hint(&format!("`limit` is {MOST} at the most"));
        }
        output
    }

    fn failed(failure: Failure) -> Output {
        Output { error: Some(failure.line()), ..Output::default() }
    }
}

/// Tells a caller that does the same again and again.
fn remark(error: &mut String, times: u32) {
    match times {
        0..=2 => {}
        3 => error.push_str("; this read has failed 3 times, do something else"),
        _ => {
            *error = format!("this read was refused: it has failed {times} times in the same way: {error}");
        }
    }
}

impl Output {
    fn add_hint(&mut self, hint: &str) {
        match &mut self.hint {
            Some(before) => {
                before.push_str("; ");
                before.push_str(hint);
            }
            None => self.hint = Some(hint.to_owned()),
        }
    }
}

/// Shows a file, unless the same was shown before. A script has no memory of what it was shown.
fn shown(look: Look, range: Range, path: &str, reads: &mut Reads, is_scripts: bool) -> Output {
    let (file, size, state) = (look.path.clone(), look.size, look.state.clone());
    let output = Output { file_size: Some(size), ..contents(look, range, path) };
    if output.error.is_some() || is_scripts {
        return output;
    }
    let again = "to have them once more, give another range, such as a `limit` that is one higher";
    match reads.read(&file, state, range, &output.content) {
        Repeat::No => output,
        Repeat::Shown => Output {
            content: "These lines were shown before and have not changed since: use that result.".to_owned(),
            hint: Some(again.to_owned()),
            unchanged: Some(true),
            ..output
        },
        Repeat::Said => Output {
            unchanged: Some(true),
            total_lines: output.total_lines,
            file_size: output.file_size,
            ..ReadFile::failed(
                Failure::new(format!(
                    "this read of `{path}` was refused: the lines were shown before, have not changed, and you were told so"
                ))
                .with_hint(again),
            )
        },
    }
}

/// Makes what is shown of a file.
fn contents(look: Look, range: Range, path: &str) -> Output {
    let kind = Kind::of(&look.path, &look.head);
    match (look.body, kind) {
        (Body::Lines { bytes, total }, Kind::Text) => {
            let numbered = Numbered::bytes(&bytes, range.offset);
            page(numbered, range, total)
        }
        (Body::Whole(bytes), Kind::Utf16 { big_endian }) => {
            of_text(&from_utf16(&bytes, big_endian), range, "it is in UTF-16")
        }
        (Body::Whole(bytes), kind) => {
            if let Some(text) = notebook::text(&bytes) {
                let form = "it is a notebook, shown as text: to change it, write its JSON by a program in `terminal`";
                return of_text(&text, range, form);
            }
            if let Some(text) = office::text(&bytes) {
                return of_text(&text, range, "it is an office document, of which only the text is shown");
            }
            if kind == Kind::Text {
                let text = String::from_utf8_lossy(&bytes);
                let (numbered, total) = Numbered::text(text.trim_start_matches('\u{feff}'), range);
                return page(numbered, range, Some(total));
            }
            not_text(path, kind)
        }
        (_, kind) => not_text(path, kind),
    }
}

fn of_text(text: &str, range: Range, form: &str) -> Output {
    let (numbered, total) = Numbered::text(text, range);
    let mut output = page(numbered, range, Some(total));
    output.add_hint(form);
    output
}

/// Makes the answer of some lines of a file that has so many.
fn page(lines: Numbered, range: Range, total: Option<u64>) -> Output {
    let next = range.offset + lines.count;
    let mut output =
        Output { content: lines.content, total_lines: total, truncated: false, ..Output::default() };
    match total {
        Some(total) if lines.count == 0 && range.offset > total.max(1) => {
            output
                .add_hint(&format!("`offset` {} is past the end: the file has {total} lines", range.offset));
        }
        Some(0) => output.add_hint("the file is empty"),
        Some(total) => output.truncated = next <= total,
        None => {
            output.truncated = lines.count > 0;
            output.add_hint("the file is so large that there was no time to count its lines");
        }
    }
    if output.truncated {
        output.next_offset = Some(next);
        output.add_hint(&format!("there is more: go on with `offset` {next}"));
    }
    if !lines.cut.is_empty() {
        let some: Vec<String> = lines.cut.iter().take(5).map(u64::to_string).collect();
        let more = if lines.cut.len() > 5 { " and others" } else { "" };
        output.add_hint(&format!(
            "long lines were cut: {}{more}; `cut -c` in `terminal` shows the rest",
            some.join(", ")
        ));
    }
    output
}

fn not_text(path: &str, kind: Kind) -> Output {
    let failure = match kind {
        Kind::Image => Failure::new(format!("`{path}` is a picture, and this tool shows only text"))
            .with_hint(
                "look at it with a tool for pictures, or at what is known of it with `file` in `terminal`",
            ),
        Kind::Utf16 { .. } => Failure::new(format!("`{path}` is in UTF-16 and too large to be read so"))
            .with_hint("convert it with `iconv -f UTF-16 -t UTF-8` in `terminal`"),
        _ => Failure::new(format!("`{path}` is binary, and this tool shows only text"))
            .with_hint("use a program in `terminal`, such as `file`, `strings` or `od -c`"),
    };
    let is_image = kind == Kind::Image;
    Output { is_binary: !matches!(kind, Kind::Utf16 { .. }), is_image, ..ReadFile::failed(failure) }
}
