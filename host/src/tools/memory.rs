//! What the tools of a session remember from one call to the next.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::files::Reads;
use super::patch::Failures;
use super::search::Searches;
use super::terminal::Remembered;

/// What the tools of a session remember.
#[derive(Default)]
pub(super) struct Memory {
    /// What a person has allowed as long as the session lasts, by scope.
    pub(super) allowed: Mutex<BTreeSet<String>>,
    /// Held while a file is changed: calls at once that change one and the same would take each other's changes for a stranger's.
    pub(super) editing: Mutex<()>,
    pub(super) patch_failures: Mutex<Failures>,
    pub(super) reads: Mutex<Reads>,
    pub(super) searches: Mutex<Searches>,
    pub(super) terminal: Mutex<Remembered>,
}
