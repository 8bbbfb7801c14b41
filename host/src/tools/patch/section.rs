//! What a patch says of each file.

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// The file.
    pub(super) path: String,
    /// The line of the patch on which it begins, counted from 1.
    pub(super) line: usize,
    /// What is done.
    pub(super) action: Action,
}

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// It is made, with these contents.
    Add(String),
    /// It is removed.
    Delete,
    /// It is changed.
    Update {
        /// What it is called afterwards, if that is another name.
        to: Option<String>,
        /// The changes.
        hunks: Vec<Hunk>,
    },
}

/// A change of neighbouring lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line of the patch on which it begins.
    pub(super) line: usize,
    /// Lines that stand before it, the nearest last.
    pub(super) contexts: Vec<String>,
    /// Its lines.
    pub(super) lines: Vec<(Kind, String)>,
    /// Whether it is at the end of the file.
    pub(super) at_end: bool,
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stays.
    Context,
    /// It goes.
    Old,
    /// It comes.
    New,
}
