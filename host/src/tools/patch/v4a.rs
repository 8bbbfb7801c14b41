//! Reads patches of several files in the V4A format, which models are trained on.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/a.py
//! *** Move to: src/b.py
//! @@ def run():
//!  a line that stays
//! -a line that goes
//! +a line that comes
//! *** End of File
//! *** Add File: new.txt
//! +its first line
//! *** Delete File: old.txt
//! *** End Patch
//! ```
//!
//! Models get the frame wrong more often than what is in it. So the first and the last line may be missing, the whole
//! may stand in a code fence, and lines may end in `\r\n`. What cannot be understood is refused, with the number of
//! the line.

use super::section::{Action, Hunk, Kind, Section};

/// Why a patch was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// The line of the patch.
    pub(super) line: usize,
    /// What is wrong with it.
    pub(super) reason: String,
}

/// Reads a patch.
///
/// # Errors
///
/// It is not one.
pub(super) fn parse(patch: &str) -> Result<Vec<Section>, SyntaxError> {
    let mut reader = Reader::default();
    for (number, line) in lines(patch) {
        reader.read(number, line)?;
    }
    reader.close()?;
    if reader.sections.is_empty() {
        let reason = "it has no `*** Update File: `, `*** Add File: ` or `*** Delete File: ` line".to_owned();
        return Err(SyntaxError { line: 1, reason });
    }
    Ok(reader.sections)
}

/// Returns the lines of a patch with their numbers, without a code fence around them and without line ends.
fn lines(patch: &str) -> Vec<(usize, &str)> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let body = patch.strip_suffix('\n').unwrap_or(patch);
    let is_crlf = body.split('\n').rev().skip(1).all(|line| line.ends_with('\r')) && patch.contains('\r');
    let bare = |line| if is_crlf { str::strip_suffix(line, '\r').unwrap_or(line) } else { line };
    let mut lines: Vec<(usize, &str)> =
        body.split('\n').enumerate().map(|(at, line)| (at + 1, bare(line))).collect();
    let is_blank = |line: &(usize, &str)| line.1.trim().is_empty();
    let first = lines.iter().position(|line| !is_blank(line)).unwrap_or(0);
    if lines[first].1.starts_with("```") {
        lines.drain(..=first);
        if let Some(last) =
            lines.iter().rposition(|line| !is_blank(line)).filter(|at| lines[*at].1.trim() == "```")
        {
            lines.truncate(last);
        }
    }
    lines
}

#[derive(Default)]
struct Reader {
    sections: Vec<Section>,
    /// What is being read.
    open: Option<Open>,
}

struct Open {
    path: String,
    line: usize,
    body: Body,
}

enum Body {
    Add {
        contents: String,
        /// Empty lines that may belong to it, or only stand before the next section.
        blank: usize,
    },
    Delete,
    Update {
        to: Option<String>,
        hunks: Vec<Hunk>,
        /// The one that is being read.
        hunk: Option<Hunk>,
    },
}

impl Reader {
    fn read(&mut self, number: usize, line: &str) -> Result<(), SyntaxError> {
        let error = |reason: &str| Err(SyntaxError { line: number, reason: reason.to_owned() });
        if let Some(marker) = line.strip_prefix("***") {
            return self.marker(number, marker.trim());
        }
        let is_blank = line.trim().is_empty();
        match self.open.as_mut().map(|open| &mut open.body) {
            None | Some(Body::Delete) if is_blank => {}
            None => {
                return error(
                    "a patch begins with `*** Begin Patch` and a line such as `*** Update File: PATH`",
                );
            }
            Some(Body::Delete) => return error("nothing may stand below `*** Delete File: `"),
            Some(Body::Add { contents, blank }) => match line.strip_prefix('+') {
                Some(text) => {
                    contents.push_str(&"\n".repeat(std::mem::take(blank)));
                    contents.push_str(text);
                    contents.push('\n');
                }
                None if is_blank => *blank += 1,
                None if line.starts_with('\\') => contents.truncate(contents.trim_end_matches('\n').len()),
                None => return error("every line of a new file begins with `+`"),
            },
            Some(Body::Update { hunks, hunk, .. }) => {
                if let Some(context) = line.strip_prefix("@@") {
                    let mut next = Hunk { line: number, ..Hunk::default() };
                    match hunk.take() {
                        // Several in a row lead to one place.
                        Some(open) if open.lines.is_empty() => next.contexts = open.contexts,
                        Some(open) => hunks.push(closed(open)?),
                        None => {}
                    }
                    next.contexts.extend(context_of(context));
                    *hunk = Some(next);
                } else if let Some(line) = hunk_line(line) {
                    if line != (Kind::Context, "") || hunk.is_some() {
                        let hunk = hunk.get_or_insert_with(|| Hunk { line: number, ..Hunk::default() });
                        hunk.lines.push((line.0, line.1.to_owned()));
                    }
                } else if !line.starts_with('\\') {
                    // `\ No newline at end of file`: whether the last line has an end stays as it is.
                    return error("a line of a hunk begins with a space, `-` or `+`, and a hunk with `@@`");
                }
            }
        }
        Ok(())
    }

    /// Reads a line that begins with `***`.
    fn marker(&mut self, number: usize, marker: &str) -> Result<(), SyntaxError> {
        let error = |reason: String| SyntaxError { line: number, reason };
        let of = |name: &str| {
            let (head, path) = marker.split_once(':')?;
            head.trim_end().eq_ignore_ascii_case(name).then(|| path.trim())
        };
        if marker.eq_ignore_ascii_case("Begin Patch") || marker.eq_ignore_ascii_case("End Patch") {
            return self.close();
        }
        if marker.eq_ignore_ascii_case("End of File") {
            match self.open.as_mut().map(|open| &mut open.body) {
                Some(Body::Update { hunks, hunk: open @ Some(_), .. }) => {
                    let ended = open.take().map(|hunk| closed(Hunk { at_end: true, ..hunk }));
                    hunks.extend(ended.transpose()?);
                }
                Some(Body::Add { .. }) => {}
                _ => return Err(error("`*** End of File` stands below a hunk".to_owned())),
            }
            return Ok(());
        }
        if let Some(path) = of("Move to") {
            match self.open.as_mut().map(|open| &mut open.body) {
                Some(Body::Update { to: to @ None, hunks, hunk: None }) if hunks.is_empty() => {
                    *to = Some(checked(path).map_err(error)?);
                }
                _ => {
                    return Err(error(
                        "`*** Move to: ` stands directly below `*** Update File: `".to_owned(),
                    ));
                }
            }
            return Ok(());
        }
        let (path, body) = if let Some(path) = of("Update File") {
            (path, Body::Update { to: None, hunks: Vec::new(), hunk: None })
        } else if let Some(path) = of("Add File") {
            (path, Body::Add { contents: String::new(), blank: 0 })
        } else if let Some(path) = of("Delete File") {
            (path, Body::Delete)
        } else {
            return Err(error(format!("there is no `*** {}` in this format", marker.escape_debug())));
        };
        self.close()?;
        self.open = Some(Open { path: checked(path).map_err(error)?, line: number, body });
        Ok(())
    }

    /// Ends the section that is being read.
    fn close(&mut self) -> Result<(), SyntaxError> {
        let Some(Open { path, line, body }) = self.open.take() else { return Ok(()) };
        let action = match body {
            Body::Add { contents, .. } => Action::Add(contents),
            Body::Delete => Action::Delete,
            Body::Update { to, mut hunks, hunk } => {
                hunks.extend(hunk.map(closed).transpose()?);
                if hunks.is_empty() && to.is_none() {
                    let reason = format!("nothing is to be changed in `{path}`");
                    return Err(SyntaxError { line, reason });
                }
                Action::Update { to, hunks }
            }
        };
        self.sections.push(Section { path, line, action });
        Ok(())
    }
}

/// Returns what follows `@@`, without the line numbers and the second `@@` of a unified diff, which say nothing
/// reliable.
fn context_of(line: &str) -> Option<String> {
    let line = line.trim();
    let is_range = |text: &str| {
        let mut parts = text.split_whitespace();
        let ranges = parts.next().is_some_and(|part| part.starts_with('-'))
            && parts.next().is_some_and(|part| part.starts_with('+'));
        ranges && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | ',' | ' '))
    };
    let (head, tail) = line.split_once("@@").unwrap_or((line, ""));
    let context = match (is_range(head), tail.trim().is_empty()) {
        (true, _) => return None,
        (false, true) => head.trim(),
        (false, false) => line,
    };
    (!context.is_empty()).then(|| context.to_owned())
}

/// Returns what a line of a hunk is, and says. None if it is none.
fn hunk_line(line: &str) -> Option<(Kind, &str)> {
    match line.split_at_checked(1) {
        // Many leave out the space before an empty line.
        None => line.is_empty().then_some((Kind::Context, "")),
        Some((" ", text)) => Some((Kind::Context, text)),
        Some(("-", text)) => Some((Kind::Old, text)),
        Some(("+", text)) => Some((Kind::New, text)),
        Some(_) => None,
    }
}

/// Returns a hunk without the empty lines behind it.
fn closed(mut hunk: Hunk) -> Result<Hunk, SyntaxError> {
    while hunk.lines.last().is_some_and(|line| *line == (Kind::Context, String::new())) {
        hunk.lines.pop();
    }
    if hunk.lines.iter().all(|(kind, _)| *kind == Kind::Context) {
        let reason = "this hunk has no line that begins with `-` or `+`".to_owned();
        return Err(SyntaxError { line: hunk.line, reason });
    }
    Ok(hunk)
}

/// Returns a path that may stand in a header.
fn checked(path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Err("the path is missing".to_owned());
    }
    if path.contains('\0') {
        return Err("the path holds a NUL character".to_owned());
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!(
            "`..` is not allowed in the path `{path}`: give it from where the session stands, or an absolute one"
        ));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@ class A\n@@ def run():\n stays\n-goes\n+comes\n\n@@\n-x\n*** End of File\n*** Add File: new.txt\n+one\n\n+three\n\n*** Delete File: /abs/old.txt\n*** End Patch\n";

    fn error(patch: &str) -> (usize, String) {
        let error = parse(patch).unwrap_err();
        (error.line, error.reason)
    }

    #[test]
    fn a_patch_is_read_whole() {
        let sections = parse(PATCH).unwrap();
        let line = |kind, text: &str| (kind, text.to_owned());
        let first = Hunk {
            line: 5,
            contexts: vec!["class A".into(), "def run():".into()],
            lines: vec![line(Kind::Context, "stays"), line(Kind::Old, "goes"), line(Kind::New, "comes")],
            at_end: false,
        };
        let second = Hunk { line: 10, contexts: Vec::new(), lines: vec![line(Kind::Old, "x")], at_end: true };
        let update = Action::Update { to: Some("src/b.py".into()), hunks: vec![first, second] };
        assert_eq!(sections[0], Section { path: "src/a.py".into(), line: 2, action: update });
        assert_eq!(sections[1].action, Action::Add("one\n\nthree\n".into()));
        assert_eq!(sections[2], Section { path: "/abs/old.txt".into(), line: 18, action: Action::Delete });
    }

    #[test]
    fn the_frame_may_be_missing_fenced_or_in_another_line_end() {
        let sections = parse(PATCH).unwrap();
        let bare = PATCH.replace("*** Begin Patch\n", "\n").replace("*** End Patch\n", "");
        assert_eq!(parse(&bare).unwrap(), sections);
        assert_eq!(parse(&PATCH.replace('\n', "\r\n")).unwrap(), sections);
        assert_eq!(parse(PATCH.trim_end()).unwrap(), sections);
        assert_eq!(parse(&format!("```diff\n{PATCH}```\n")).unwrap().len(), 3);
        assert_eq!(parse("*** Add File: a\n+x\r\n+y\n").unwrap()[0].action, Action::Add("x\r\ny\n".into()));
        assert_eq!(parse("*** Add File: a\n").unwrap()[0].action, Action::Add(String::new()));
        assert_eq!(
            parse("*** Add File: a\n+x\n\\ No newline at end of file\n").unwrap()[0].action,
            Action::Add("x".into())
        );
    }

    #[test]
    fn line_numbers_of_unified_diffs_are_no_context() {
        assert_eq!(
            (context_of(" -1,2 +1,3 @@ def a():"), context_of(" -1 +1 "), context_of("")),
            (None, None, None)
        );
        assert_eq!(context_of(" def a(): @@"), Some("def a():".to_owned()));
        assert_eq!(context_of("- a list +1 item"), Some("- a list +1 item".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (patch, line, reason) in [
            ("", 1, "has no `*** Update File: `"),
            ("*** Begin Patch\nhello\n*** End Patch", 2, "begins with"),
            ("*** Update File: a\n*** End Patch", 1, "nothing is to be changed"),
            ("*** Update File: a\n@@\n-x\nfoo", 4, "begins with a space"),
            ("*** Update File: a\n@@\n same\n", 2, "no line that begins with"),
            ("*** Update File: ../a\n@@\n-x", 1, "`..` is not allowed"),
            ("*** Update File: a\n*** Move to: b/../../c\n@@\n-x", 2, "`..` is not allowed"),
            ("*** Add File: \n+x", 1, "the path is missing"),
            ("*** Add File: a\nx", 2, "begins with `+`"),
            ("*** Delete File: a\n-x", 2, "nothing may stand below"),
            ("*** Rename File: a", 1, "there is no `*** Rename File: a`"),
            ("*** Update File: a\n@@\n-x\n*** Move to: b", 4, "directly below"),
            ("*** End of File", 1, "stands below a hunk"),
        ] {
            let found = error(patch);
            assert!(found.0 == line && found.1.contains(reason), "{patch:?} {found:?}");
        }
        assert!(parse("*** Update File: a..b/c\n@@\n-x").is_ok());
    }
}
