//! The tool `patch`.

use std::sync::PoisonError;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{Side, bounded, unified};
use super::edit::replace;
use super::files::{Files, Text, anew};
use super::lints::{Lints, Written, judged, written};
use super::paths::plain;
use super::plan::{Plan, plan};
use super::refusal::Subject;
use super::steps::{Step, carry_out};
use super::store::{Fault, Store};
use super::v4a::parse;
use crate::tools::arguments::flag;
use crate::tools::{Call, Effects, Failure, Session, Tool};

/// Edits files.
pub(in crate::tools) struct Patch;

/// What kind of edit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// One text for another, in one file.
    Replace,
    /// A patch of any number of files.
    Patch,
}

/// What `patch` is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// `replace` (default): put `new_string` in the place of `old_string` in the file `path`. `patch`: apply `patch`.
    #[serde(default)]
    mode: Option<Mode>,
    /// Mode `replace`: the file. A relative path starts where the session stands, `~` is the home in the sandbox.
    #[serde(default)]
    path: Option<String>,
    /// Mode `replace`: the text to be replaced, exactly as it is in the file, with enough lines around it to be there
    /// only once. Not the line numbers that `read_file` shows.
    #[serde(default)]
    old_string: Option<String>,
    /// Mode `replace`: the text that comes in its place, as it is: no escapes, no patterns. Empty deletes.
    #[serde(default)]
    new_string: Option<String>,
    /// Mode `replace`: replace every place, not the only one. Default false.
    #[serde(default, deserialize_with = "flag")]
    replace_all: bool,
    /// Mode `patch`: a patch in the V4A format: `*** Begin Patch`, the sections, `*** End Patch`. A section is
    /// `*** Update File: PATH` (then perhaps `*** Move to: PATH`) with hunks, `*** Add File: PATH` with lines that begin
    /// with `+`, or `*** Delete File: PATH`. A hunk is a line `@@`, or `@@ LINE` where LINE is one of the file that
    /// stands before it, and then whole lines that begin with a space (stay), `-` (go) or `+` (come).
    #[serde(default)]
    patch: Option<String>,
}

/// What `patch` answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(in crate::tools) struct Output {
    /// Whether all was done.
    success: bool,
    /// What was changed, as a unified diff, at most 40,000 characters of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// The files whose contents were changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files_modified: Vec<String>,
    /// The files that were made, also by a new name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files_created: Vec<String>,
    /// The files that are no longer there, also for a new name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files_deleted: Vec<String>,
    /// Whether what was written can be read by what it is for, which is no reason to refuse it. Mode `patch`: by the path of each file.
    #[serde(skip_serializing_if = "Option::is_none")]
    lint: Option<Lints>,
    /// How `old_string` was found: `exact`, or one of `line_trimmed`, `whitespace_normalized`, `indentation_flexible`,
    /// `escape_normalized`, `trimmed_boundary`, `unicode_normalized`, `block_anchor`, `context_aware`.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'static str>,
    /// How many places were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<usize>,
    /// What should be looked at: a place that was not found exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Why nothing was changed, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The lines of the file that are most like `old_string`, with their numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    did_you_mean: Option<String>,
}

impl Tool for Patch {
    const NAME: &'static str = "patch";
    const TITLE: &'static str = "Edit files";
    const DESCRIPTION: &'static str = "Edits files in the sandbox. Mode `replace` (default) puts `new_string` in the \
        place of `old_string` in the file `path`; mode `patch` applies a patch of several files, all of it or nothing. Use \
        this to change files, not `sed` in `terminal`; use `write_file` to make a file or replace all of it. `old_string` \
        must be in the file once, unless `replace_all` is set: if it is not, nothing is changed, and the error says on \
        which lines it is, or what is most like it. Small differences in white space, indentation or quotes are forgiven \
        and reported as `warning`; JSON, YAML, TOML and Python that cannot be read afterwards as `lint`. Line ends, byte-order mark, mode and everything outside of the edit stay as they are. \
        Files up to 8 MiB, no binary ones. Returns the diff.";
    const EFFECTS: Effects =
        Effects { read_only: false, destructive: true, idempotent: false, open_world: false };
    type Input = Input;
    type Output = Output;

    fn run(session: &Session, input: Input, call: &Call) -> Output {
        let editing = session.memory.editing.lock().unwrap_or_else(PoisonError::into_inner);
        let files = Files::new(session, call);
        // Once it is being written, it is written whole: a cancellation in between would leave half of it.
        let own = Call::new();
        let writing = own.as_ref().map_or_else(|_| Files::new(session, call), |own| Files::new(session, own));
        let asked = ask(input);
        let is_patch = matches!(asked, Ok(Asked::Patch(_)));
        let done = match &asked {
            Ok(Asked::Replace(edit)) => anew(is_changed, || edit.run(&files, &writing)),
            Ok(Asked::Patch(patch)) => anew(is_changed, || run_patch(&files, &writing, patch)),
            Err(failure) => Err(Failed::of(None, failure.clone())),
        };
        drop(editing);
        let failures = || session.memory.patch_failures.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok((mut output, written)) => {
                let touched = [&output.files_modified, &output.files_created, &output.files_deleted];
                touched.into_iter().flatten().for_each(|path| failures().succeeded(&plain(path)));
                output.lint = judged(&files, written, is_patch);
                output
            }
            Err(failed) => {
                let hint = failed.path.and_then(|path| failures().failed(&plain(&path)));
                let error = match hint {
                    Some(hint) => format!("{}; {hint}", failed.failure.line()),
                    None => failed.failure.line(),
                };
                Output { error: Some(error), did_you_mean: failed.near, ..Output::default() }
            }
        }
    }

    fn failed(failure: Failure) -> Output {
        Output { error: Some(failure.line()), ..Output::default() }
    }
}

/// Why nothing was done.
#[derive(Debug)]
struct Failed {
    path: Option<String>,
    failure: Failure,
    near: Option<String>,
    /// Whether only something else has changed a file meanwhile.
    is_changed: bool,
}

/// What does not overlap with what others have written meanwhile fits that as well.
fn is_changed(failed: &Failed) -> bool {
    failed.is_changed
}

impl Failed {
    fn of(path: Option<&str>, failure: Failure) -> Self {
        Self { path: path.map(str::to_owned), failure, near: None, is_changed: false }
    }

    fn writing(path: &str, fault: Fault) -> Self {
        Self { is_changed: fault.is_changed, ..Self::of(Some(path), Failure::new(fault.said)) }
    }
}

/// What is asked for.
#[derive(Debug)]
enum Asked {
    Replace(Replace),
    Patch(String),
}

#[derive(Debug)]
struct Replace {
    path: String,
    old: String,
    new: String,
    all: bool,
}

/// Finds out what is asked for.
fn ask(input: Input) -> Result<Asked, Failure> {
    let lacks = |name: &str, mode: &str, hint: &str| {
        Failure::new(format!("`{name}` is missing, which mode `{mode}` needs")).with_hint(hint)
    };
    let only_patch = input.patch.is_some() && input.old_string.is_none() && input.new_string.is_none();
    let default = if only_patch { Mode::Patch } else { Mode::Replace };
    if input.mode.unwrap_or(default) == Mode::Patch {
        let patch = input.patch.filter(|patch| !patch.trim().is_empty());
        let hint = "give a patch that begins with `*** Begin Patch`, or use mode `replace`";
        return patch.map(Asked::Patch).ok_or_else(|| lacks("patch", "patch", hint));
    }
    let path = input.path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| lacks("path", "replace", "give the file that is to be edited"))?;
    let old =
        input.old_string.ok_or_else(|| lacks("old_string", "replace", "give the text to be replaced"))?;
    let hint = "give the text that comes in place of `old_string`; an empty one deletes it";
    let new = input.new_string.ok_or_else(|| lacks("new_string", "replace", hint))?;
    Ok(Asked::Replace(Replace { path, old, new, all: input.replace_all }))
}

impl Replace {
    /// Reads from `store`, and writes by `writing`, which is the same place.
    fn run<S: Store>(&self, store: &S, writing: &S) -> Result<(Output, Vec<Written>), Failed> {
        let path = &self.path;
        let failed = |failure| Failed::of(Some(path), failure);
        let Some(held) = store.load(path).map_err(|error| failed(Failure::new(error)))? else {
            let failure = Failure::new(format!("there is no file `{path}`"));
            return Err(failed(
                failure.with_hint("check the path with `search_files`, or make the file with `write_file`"),
            ));
        };
        let Some(text) = Text::decode_beside(&held.bytes, &[&self.old, &self.new]) else {
            let failure = Failure::new(format!("`{path}` is binary, and only text can be edited"));
            return Err(failed(failure.with_hint("change it with a program by `terminal`")));
        };
        let edited = replace(&text, &self.old, &self.new, self.all).map_err(|refusal| Failed {
            path: Some(path.clone()),
            failure: refusal.failure(Subject::OldString, path),
            near: refusal.near().map(str::to_owned),
            is_changed: false,
        })?;
        let bytes = edited.text.bytes();
        let side = |bytes| Side { path, bytes };
        let diff = bounded(unified(Some(&side(&held.bytes)), Some(&side(&bytes))));
        let steps = vec![Step::Write { path: path.clone(), bytes, old: held.bytes, digest: held.digest }];
        carry_out(writing, &steps).map_err(|fault| Failed::writing(path, fault))?;
        let output = Output {
            success: true,
            diff: Some(diff),
            files_modified: vec![path.clone()],
            strategy: Some(edited.strategy.name()),
            replacements: Some(edited.replacements),
            warning: edited.warning,
            ..Output::default()
        };
        Ok((output, written(steps)))
    }
}

fn run_patch<S: Store>(store: &S, writing: &S, patch: &str) -> Result<(Output, Vec<Written>), Failed> {
    let sections = parse(patch).map_err(|error| {
        Failed::of(
            None,
            Failure::new(format!("`patch` cannot be read: line {}: {}", error.line, error.reason)),
        )
    })?;
    let plan = plan(store, &sections, patch).map_err(|problem| Failed {
        near: problem.near,
        ..Failed::of(Some(&problem.path), problem.failure)
    })?;
    let Plan { steps, diff, modified, created, deleted, warnings } = plan;
    carry_out(writing, &steps).map_err(|fault| Failed::writing(&sections[0].path, fault))?;
    let output = Output {
        success: true,
        diff: Some(bounded(diff)),
        files_modified: modified,
        files_created: created,
        files_deleted: deleted,
        warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
        ..Output::default()
    };
    Ok((output, written(steps)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::memory_store::MemoryStore;
    use super::*;

    fn asked(value: Value) -> Result<Asked, String> {
        let input: Input = serde_json::from_value(value).map_err(|error| error.to_string())?;
        ask(input).map_err(|failure| failure.line())
    }

    fn replaced(store: &MemoryStore, old: &str, new: &str) -> Result<Output, Failed> {
        let edit = Replace { path: "m.py".into(), old: old.into(), new: new.into(), all: false };
        anew(is_changed, || edit.run(store, store)).map(|(output, _)| output)
    }

    #[test]
    fn arguments_say_which_mode_is_meant() {
        let replace =
            json!({ "path": "a", "old_string": "x", "new_string": "", "replace_all": "true", "patch": null });
        let Ok(Asked::Replace(edit)) = asked(replace) else { panic!("replace") };
        assert!(edit.all && edit.new.is_empty());
        assert!(matches!(asked(json!({ "patch": "*** Begin Patch" })), Ok(Asked::Patch(_))));
        assert!(matches!(asked(json!({ "mode": "patch", "patch": "x", "path": null })), Ok(Asked::Patch(_))));
        for (value, reason) in [
            (json!({}), "`path` is missing"),
            (json!({ "path": "a", "new_string": "" }), "`old_string` is missing"),
            (json!({ "path": "a", "old_string": "x" }), "an empty one deletes"),
            (json!({ "mode": "patch", "old_string": "x" }), "`patch` is missing"),
            (json!({ "path": "a", "old": "x" }), "unknown field `old`, expected one of `mode`"),
            (json!({ "mode": "regex" }), "unknown variant `regex`"),
        ] {
            let error = asked(value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_edit_is_written_and_shown() {
        let store = MemoryStore::with(&[("m.py", "a\nb\n")]);
        let output = serde_json::to_value(replaced(&store, "b", "c").unwrap()).unwrap();
        let diff = "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
        assert_eq!(
            output,
            json!({ "success": true, "diff": diff, "files_modified": ["m.py"], "strategy": "exact", "replacements": 1 })
        );
        assert_eq!(store.all()[0].1, "a\nc\n");
    }

    #[test]
    fn what_others_write_meanwhile_is_kept_and_edited() {
        let store = MemoryStore::with(&[("m.py", "a\nb\n")]);
        store.meddle("m.py", "m.py", "A\nb\n");
        assert!(replaced(&store, "b", "c").unwrap().success);
        assert_eq!(store.all()[0].1, "A\nc\n");
        store.meddle("m.py", "m.py", "A\nd\n");
        let failed = replaced(&store, "c", "e").unwrap_err();
        assert!(failed.failure.message.contains("is not in `m.py`"), "{failed:?}");
        assert_eq!(store.all()[0].1, "A\nd\n");
        let store = MemoryStore::with(&[("a", "1\n"), ("b", "2\n")]);
        store.meddle("b", "b", "2\n3\n");
        let patch = "*** Update File: a\n@@\n-1\n+one\n*** Update File: b\n@@\n-2\n+two\n";
        assert!(anew(is_changed, || run_patch(&store, &store, patch)).unwrap().0.success);
        assert_eq!(store.all().into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["one\n", "two\n3\n"]);
    }

    #[test]
    fn what_cannot_be_edited_is_said() {
        let store = MemoryStore::with(&[("m.py", "a\0b"), ("n.py", "retry(2)\n")]);
        assert!(replaced(&store, "a", "c").unwrap_err().failure.message.contains("is binary"));
        assert!(
            replaced(&MemoryStore::default(), "a", "c")
                .unwrap_err()
                .failure
                .message
                .contains("there is no file")
        );
        let patch = "*** Update File: n.py\n@@\n-retry(9)\n+retry(3)\n";
        let failed = run_patch(&store, &store, patch).unwrap_err();
        assert_eq!((failed.path.as_deref(), failed.near.as_deref()), (Some("n.py"), Some("1|retry(2)")));
        assert!(
            run_patch(&store, &store, "hello")
                .unwrap_err()
                .failure
                .message
                .contains("line 1: a patch begins with")
        );
        assert_eq!(store.changes(), 0);
    }
}
