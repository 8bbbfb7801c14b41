//! What is thought of files after an edit of them.
//!
//! An edit may leave a file that its reader cannot read, and then it is best to hear of it at once. It may be meant so, or be the first of
//! several. So it is told, and never a reason to refuse.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Files, Lint, linted};
use super::steps::Step;

/// What is thought of the files of one call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Lints {
    /// Of the one that was edited.
    One(Lint),
    /// Of each that was made or changed by a patch, by its path there.
    Each(BTreeMap<String, Lint>),
}

/// A file that was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) new: Vec<u8>,
    pub(super) old: Vec<u8>,
}

/// Returns the files that were written by steps that were done.
pub(super) fn written<D>(steps: Vec<Step<D>>) -> Vec<Written> {
    let one = |step| match step {
        Step::Create { path, bytes } => Some(Written { path, new: bytes, old: Vec::new() }),
        Step::Write { path, bytes, old, .. } => Some(Written { path, new: bytes, old }),
        Step::Remove { .. } | Step::Rename { .. } => None,
    };
    steps.into_iter().filter_map(one).collect()
}

/// Judges what was written by one call, which may have been of several files (`is_patch`). None if nothing was written.
pub(super) fn judged(files: &Files<'_>, written: Vec<Written>, is_patch: bool) -> Option<Lints> {
    let lint = |file: &Written| linted(files, &file.path, &file.new, &file.old);
    if !is_patch {
        return written.first().map(lint).map(Lints::One);
    }
    let each: BTreeMap<String, Lint> =
        written.into_iter().map(|file| (file.path.clone(), lint(&file))).collect();
    (!each.is_empty()).then_some(Lints::Each(each))
}
