//! What the tools of a session remember from one call to the next.

use std::sync::Mutex;

use super::terminal::Remembered;

/// What the tools of a session remember.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) terminal: Mutex<Remembered>,
}
