//! The tool `write_file`.

use std::sync::PoisonError;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::{Before, Files, Loaded};
use super::anew::anew;
use super::error::FileError;
use super::lint::{self, Lint};
use super::look::{Found, Range};
use super::reads::State;
use super::syntax::Syntax;
use super::text::Text;
use crate::tools::arguments::flag;
use crate::tools::{Call, Effects, Failure, Session, Tool};

/// Writes whole files.
pub(in crate::tools) struct WriteFile;

/// What `write_file` is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// The file. A relative path starts where the session stands, `~` is the home in the sandbox. Folders that are missing are
    /// made.
    path: String,
    /// All that the file is to hold, without line numbers. Not even a last line end is added.
    content: String,
    /// Without effect. It is accepted since other programs know it.
    #[serde(default, deserialize_with = "flag")]
    #[allow(dead_code, reason = "it is accepted and has no effect")]
    cross_profile: bool,
}

/// What `write_file` answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(in crate::tools) struct Output {
    /// How many bytes the file has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_written: Option<u64>,
    /// The folders that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dirs_created: Vec<String>,
    /// Whether what was written can be read by what it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lint: Option<Lint>,
    /// What should be looked at: the file was changed by something else since it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Why nothing was written, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Where the file is: absolute, and without links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved_path: Option<String>,
    /// The files that were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files_modified: Vec<String>,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Makes a file in the sandbox, or replaces all that one holds. Use it instead of echo and \
        here-documents in `terminal`; use `patch` to change a part of a file. Folders that are missing are made. An existing file \
        keeps its mode, owner, byte-order mark and line ends (lines that stay keep theirs, new ones take those of their \
        neighbours); what a link leads to is written. JSON, YAML and TOML that cannot be read is refused, and of \
        Python you are told. Credentials, and files that rule the system, shells or Hostel, are refused.";
    const EFFECTS: Effects =
        Effects { read_only: false, destructive: true, idempotent: true, open_world: false };
    type Input = Input;
    type Output = Output;

    fn run(session: &Session, input: Input, call: &Call) -> Output {
        let _editing = session.memory.editing.lock().unwrap_or_else(PoisonError::into_inner);
        write(session, &input, call).unwrap_or_else(Self::failed)
    }

    fn failed(failure: Failure) -> Output {
        Output { error: Some(failure.line()), ..Output::default() }
    }
}

/// What was there before.
struct Old {
    /// What must still be there.
    before: Before,
    /// What it held, if it was text and not too large.
    text: Option<Text>,
    /// The same as bytes.
    bytes: Vec<u8>,
    /// Where it is and in which state, if it is there.
    state: Option<(String, State)>,
    /// What a new text must be given if the old one is not at hand.
    form: Form,
}

/// How the text of a file is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Form {
    has_mark: bool,
    has_crlf: bool,
}

impl Form {
    /// Finds it out from the first bytes.
    fn of(head: &[u8]) -> Self {
        let first = head.iter().position(|byte| *byte == b'\n');
        let has_crlf = first.is_some_and(|end| end > 0 && head[end - 1] == b'\r');
        Self { has_mark: head.starts_with(b"\xef\xbb\xbf"), has_crlf }
    }

    fn encode(self, content: &str) -> Vec<u8> {
        let has_mark = self.has_mark && !content.starts_with('\u{feff}');
        let mut text = String::from(if has_mark { "\u{feff}" } else { "" });
        if self.has_crlf && !content.contains('\r') {
            text.push_str(&content.replace('\n', "\r\n"));
        } else {
            text.push_str(content);
        }
        text.into_bytes()
    }
}

impl Old {
    fn load(files: &Files<'_>, path: &str) -> Result<Self, FileError> {
        let nothing =
            |before| Self { before, text: None, bytes: Vec::new(), state: None, form: Form::default() };
        match files.load(path) {
            Ok(Loaded { path, bytes, digest, .. }) => Ok(Self {
                state: Some((path, State::from(&digest))),
                before: Before::Is(digest),
                text: Text::decode(&bytes),
                bytes,
                form: Form::default(),
            }),
            Err(FileError::Missing(_)) => Ok(nothing(Before::Absent)),
            Err(FileError::Large { .. }) => match files.look(path, Range { offset: 1, limit: 1 })? {
                Found::File(look) => Ok(Self {
                    state: Some((look.path, look.state)),
                    form: Form::of(&look.head),
                    ..nothing(Before::Anything)
                }),
                Found::Missing { .. } => Ok(nothing(Before::Absent)),
            },
            // Whoever may not read it may still be allowed to write it.
            Err(FileError::Unreadable { .. }) => Ok(nothing(Before::Anything)),
            Err(error) => Err(error),
        }
    }

    /// Returns what the file will hold.
    fn encode(&self, content: &str) -> Vec<u8> {
        match &self.text {
            Some(text) => text.encode(content),
            None => self.form.encode(content),
        }
    }
}

fn write(session: &Session, input: &Input, call: &Call) -> Result<Output, Failure> {
    let Input { path, content, .. } = input;
    let files = Files::new(session, call);
    // What it is to hold hardly depends on what somebody else has written meanwhile.
    let is_raced = |error: &FileError| matches!(error, FileError::Changed(_) | FileError::Exists(_));
    let written = anew(is_raced, || {
        let old = Old::load(&files, path)?;
        let lint = match checked(path, content, &old) {
            Ok(lint) => lint,
            Err(refused) => return Ok(Err(refused)),
        };
        let warning = old.state.as_ref().and_then(|(file, state)| {
            let reads = session.memory.reads.lock().unwrap_or_else(PoisonError::into_inner);
            reads.has_changed(file, state).then(|| {
                format!("`{path}` had been changed by something else since this session last saw it: that is overwritten")
            })
        });
        let bytes = old.encode(content);
        let stored = files.store(path, &bytes, old.before.clone())?;
        Ok(Ok((old, bytes, lint, warning, stored)))
    });
    let (old, bytes, lint, warning, stored) = written??;
    // Only once the file is written, since it takes its time.
    let lint = lint.unwrap_or_else(|| lint::python(&files, &bytes, &old.bytes));
    Ok(Output {
        bytes_written: Some(stored.bytes as u64),
        dirs_created: stored.dirs_created,
        lint: Some(lint),
        warning,
        error: None,
        files_modified: vec![stored.path.clone()],
        resolved_path: Some(stored.path),
    })
}

/// Judges what is to be written by what the file is. None: that has to be asked of a program.
///
/// # Errors
///
/// Fails if it cannot be read. What could not be read before either may be a dialect, and is only told.
fn checked(path: &str, content: &str, old: &Old) -> Result<Option<Lint>, Failure> {
    if lint::is_python(path) {
        return Ok(None);
    }
    let error = match Syntax::of(path, content) {
        Syntax::Good => return Ok(Some(Lint::ok())),
        Syntax::Unknown(why) => return Ok(Some(Lint::skipped(why))),
        Syntax::Broken(error) => error,
    };
    let old = old.text.as_ref().map(|old| old.text.as_str()).filter(|old| !old.trim().is_empty());
    if old.is_some_and(|old| matches!(Syntax::of(path, old), Syntax::Broken(_))) {
        return Ok(Some(Lint::broken_before(&error)));
    }
    Err(Failure::new(format!("`{path}` was not written: `content` is {error}"))
        .with_hint("correct it and call again; what is meant to be no valid file needs another name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(text: Option<&str>) -> Old {
        let text = text.map(|text| Text::decode(text.as_bytes()).unwrap());
        Old { before: Before::Anything, text, bytes: Vec::new(), state: None, form: Form::default() }
    }

    #[test]
    fn the_form_of_a_large_file_is_known_by_its_beginning() {
        for (head, has_mark, has_crlf) in [
            (&b"\xef\xbb\xbfa\r\nb"[..], true, true),
            (b"a\nb\r\n", false, false),
            (b"\n", false, false),
            (b"", false, false),
            (b"one line", false, false),
        ] {
            assert_eq!(Form::of(head), Form { has_mark, has_crlf }, "{head:?}");
        }
        let form = Form { has_mark: true, has_crlf: true };
        assert_eq!(form.encode("a\nb"), b"\xef\xbb\xbfa\r\nb");
        assert_eq!(form.encode("\u{feff}a\r\nb\n"), b"\xef\xbb\xbfa\r\nb\n");
        assert_eq!(Form::default().encode("a\n"), b"a\n");
    }

    #[test]
    fn what_cannot_be_read_is_refused_unless_it_could_not_before() {
        let lint = |path, content, was: Option<&str>| checked(path, content, &old(was));
        assert_eq!(lint("a.json", "{}", None), Ok(Some(Lint::ok())));
        assert_eq!(lint("a.py", "def", None), Ok(None));
        assert_eq!(lint("a.txt", "{", None).unwrap().unwrap().status, "skipped");
        for was in [None, Some(""), Some("{}\n")] {
            let failure = lint("a.json", "{", was).unwrap_err();
            assert!(failure.message.contains("`a.json` was not written"), "{failure:?}");
        }
        assert_eq!(lint("a.json", "// x\n{}", Some("// y\n{}")).unwrap().unwrap().status, "error");
    }
}
