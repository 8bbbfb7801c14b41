//! What the tools of a session remember from one call to the next.

use std::sync::Mutex;

use super::files::Reads;
use super::patch::Failures;
use super::search::Searches;
use super::terminal::Remembered;

/// What the tools of a session remember.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) patch_failures: Mutex<Failures>,
    pub(super) reads: Mutex<Reads>,
    pub(super) searches: Mutex<Searches>,
    pub(super) terminal: Mutex<Remembered>,
}
