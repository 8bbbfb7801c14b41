//! Edits files: one text for another, or a patch of several files.
//!
//! A model quotes from memory, and not always well. So there are rules for what is found all the same (`strategies/`),
//! and stricter ones for what is then edited (`piecewise.rs`): an edit that fails costs another call, one in the wrong
//! place costs the file. What is written differs from the file in what was asked for and in nothing else.
//!
//! | file | holds |
//! | --- | --- |
//! | `tool.rs` | the tool |
//! | `edit.rs` | mode `replace`, on the text of a file |
//! | `piecewise.rs`, `merge.rs`, `reindent.rs` | the change in a place that is not quite what was quoted |
//! | `escapes.rs` | backslashes that were not meant |
//! | `refusal.rs`, `near.rs`, `failures.rs` | why an edit is not made, and what helps |
//! | `v4a.rs`, `section.rs` | mode `patch`: its format |
//! | `hunks.rs` | what a patch does to one text |
//! | `plan.rs`, `desk.rs`, `paths.rs` | what it does to all files, worked out before anything is written |
//! | `steps.rs`, `store.rs` | doing that, or nothing |
//! | `diff.rs` | showing what was done |

mod desk;
mod diff;
mod edit;
mod escapes;
mod failures;
mod hunks;
mod lints;
mod looked;
#[cfg(test)]
mod memory_store;
mod merge;
mod near;
mod paths;
mod piecewise;
mod plan;
mod refusal;
mod reindent;
mod section;
mod steps;
mod store;
mod strategies;
mod tool;
mod v4a;

use super::files;
pub(super) use failures::Failures;
pub(super) use tool::Patch;
