//! Where files are kept that patches change.
//!
//! What a patch comes to is worked out and tested without a sandbox, so it knows files only by what stands here.

use super::files::{Before, Digest, FileError, Files};

/// A file as it was read.
pub(super) struct Held<D> {
    /// Where it is, links followed.
    pub(super) path: String,
    /// What it holds.
    pub(super) bytes: Vec<u8>,
    /// What tells that state of it from others.
    pub(super) digest: D,
}

/// What must be at a path for something to be done there.
pub(super) enum Expected<D> {
    /// Whatever it is.
    Anything,
    /// No file.
    Absent,
    /// The file in this state.
    Is(D),
}

/// A place with files. Errors say in one line what failed, on what and why.
pub(super) trait Store {
    /// What tells one state of a file from another.
    type Digest: Clone;

    /// Reads a file. None if there is none.
    fn load(&self, path: &str) -> Result<Option<Held<Self::Digest>>, String>;

    /// Writes a file. Returns the folders that were made for it.
    fn write(
        &self,
        path: &str,
        bytes: &[u8],
        expected: Expected<Self::Digest>,
    ) -> Result<Vec<String>, String>;

    /// Removes a file.
    fn remove(&self, path: &str, expected: Expected<Self::Digest>) -> Result<(), String>;

    /// Gives a file another name, which no file has.
    fn rename(&self, from: &str, to: &str) -> Result<(), String>;
}

impl Store for Files<'_> {
    type Digest = Digest;

    fn load(&self, path: &str) -> Result<Option<Held<Digest>>, String> {
        match Files::load(self, path) {
            Ok(loaded) => Ok(Some(Held { path: loaded.path, bytes: loaded.bytes, digest: loaded.digest })),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&self, path: &str, bytes: &[u8], expected: Expected<Digest>) -> Result<Vec<String>, String> {
        self.store(path, bytes, expected.into()).map(|stored| stored.dirs_created).map_err(said)
    }

    fn remove(&self, path: &str, expected: Expected<Digest>) -> Result<(), String> {
        Files::remove(self, path, expected.into()).map(drop).map_err(said)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), String> {
        Files::rename(self, from, to).map(drop).map_err(said)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn said(error: FileError) -> String {
    error.to_string()
}

impl From<Expected<Digest>> for Before {
    fn from(expected: Expected<Digest>) -> Self {
        match expected {
            Expected::Anything => Self::Anything,
            Expected::Absent => Self::Absent,
            Expected::Is(digest) => Self::Is(digest),
        }
    }
}
