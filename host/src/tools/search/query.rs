//! A search that makes sense: the arguments with their defaults, checked before anything is started.

use super::dialects::{Patterns, has_line_break};
use super::globs::{Globs, Wanted};
use super::input::{Input, OutputMode, Target};
use crate::tools::tool::Failure;

/// How many results a page has if nothing is said.
const LIMIT: u64 = 50;

/// The most results of a page.
const MOST: u64 = 1000;

/// The most lines of context on each side.
const MOST_CONTEXT: u64 = 50;

/// The longest pattern or path, in bytes: a variable in the environment of a program cannot be much longer than 128 KiB, and a
/// pattern grows by being rewritten.
const LONGEST: usize = 16 * 1024;

/// What to search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    /// For what.
    pub(super) what: What,
    /// In which folder or file, as the caller wrote it.
    pub(super) path: String,
    /// In files of which names.
    pub(super) globs: Globs,
    /// How many results.
    pub(super) limit: u64,
    /// After how many others.
    pub(super) offset: u64,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// Lines that match.
    Content { patterns: Patterns, mode: OutputMode, context: u64 },
    /// Files by name; they are only counted if `count` is set.
    Files { wanted: Wanted, count: bool },
}

impl Query {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be searched for.
    pub(super) fn new(input: Input) -> Result<Self, Failure> {
        let path = input.path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
        let glob = input.file_glob.unwrap_or_default();
        for (name, value) in [("pattern", &input.pattern), ("path", &path), ("file_glob", &glob)] {
            if value.contains('\0') {
                return Err(Failure::new(format!("`{name}` holds a NUL, which no program can be given")));
            }
            if value.len() > LONGEST {
                return Err(Failure::new(format!("`{name}` is longer than {LONGEST} bytes"))
                    .with_hint("search for a part of it"));
            }
        }
        let mode = input.output_mode.unwrap_or_default();
        let what = match input.target.unwrap_or_default() {
            Target::Content => What::Content {
                patterns: content(&input.pattern)?,
                mode,
                context: input.context.unwrap_or(0).min(MOST_CONTEXT),
            },
            Target::Files => {
                let wanted = Wanted::new(&input.pattern).map_err(|why| glob_failure("pattern", &why))?;
                What::Files { wanted, count: mode == OutputMode::Count }
            }
        };
        Ok(Self {
            what,
            path,
            globs: Globs::new(&glob).map_err(|why| glob_failure("file_glob", &why))?,
            limit: input.limit.unwrap_or(LIMIT).min(MOST),
            offset: input.offset.unwrap_or(0),
        })
    }
}

fn content(pattern: &str) -> Result<Patterns, Failure> {
    if pattern.is_empty() {
        return Err(Failure::new("`pattern` is empty, and would match every line")
            .with_hint("say what to look for, or set `target` to `files` to look for files"));
    }
    if has_line_break(pattern) {
        return Err(Failure::new("`pattern` holds a line break, and lines are searched one at a time")
            .with_hint("search for one of the lines, with `context` to see its neighbours"));
    }
    Ok(Patterns::new(pattern))
}

fn glob_failure(name: &str, why: &str) -> Failure {
    Failure::new(format!("`{name}` is no pattern for names: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(change: impl FnOnce(&mut Input)) -> Result<Query, String> {
        let mut input = Input { pattern: "needle".to_owned(), ..Input::default() };
        change(&mut input);
        Query::new(input).map_err(|failure| failure.message)
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let plain = query(|_| {}).unwrap();
        assert_eq!((plain.path.as_str(), plain.limit, plain.offset), (".", 50, 0));
        let empty = query(|input| (input.path, input.file_glob) = (Some(String::new()), Some(String::new())));
        assert_eq!(empty.unwrap(), plain);
        assert_eq!(query(|input| input.limit = Some(5000)).unwrap().limit, 1000);
    }

    #[test]
    fn what_cannot_be_searched_for_is_said() {
        for (pattern, reason) in [
            ("", "is empty"),
            ("a\nb", "line break"),
            (r"a\nb", "line break"),
            ("a\0b", "a NUL"),
            (&"x".repeat(LONGEST + 1), "longer than"),
        ] {
            let error = query(|input| pattern.clone_into(&mut input.pattern)).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(
            query(|input| input.path = Some("a\0".to_owned())).unwrap_err().contains("`path` holds a NUL")
        );
        assert!(query(|input| input.file_glob = Some("[".to_owned())).unwrap_err().contains("`file_glob`"));
        // A line break that is excluded, or a backslash before an `n`, is none.
        assert!(query(|input| r"[^\n]*x\\n".clone_into(&mut input.pattern)).is_ok());
        assert!(query(|input| (input.pattern, input.target) = (String::new(), Some(Target::Files))).is_ok());
    }
}
