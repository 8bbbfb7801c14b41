//! Where files are kept that patches change.
//!
//! What a patch comes to is worked out and tested without a sandbox, so it knows files only by what stands here.

use super::files::{Before, Digest, FileError, Files, Loaded, Need};

/// A file as it was read.
pub(super) struct Held<D> {
    /// Where it is, links followed.
    pub(super) path: String,
    /// The same, but for a last link, which is not followed.
    pub(super) called: String,
    /// Which of all files it is, if it has several names.
    pub(super) which: Option<String>,
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

/// Why something was not done with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// In one line what failed, on what and why.
    pub(super) said: String,
    /// Whether the file is only not as it was expected: whoever reads it again may do better.
    pub(super) is_changed: bool,
}

/// A place with files.
pub(super) trait Store {
    /// What tells one state of a file from another.
    type Digest: Clone;

    /// Returns that of a file that holds `bytes`.
    fn digest(bytes: &[u8]) -> Self::Digest;

    /// Reads a file. None if there is none. Errors say in one line what failed, on what and why.
    fn load(&self, path: &str) -> Result<Option<Held<Self::Digest>>, String>;

    /// Looks whether something can be done with a file, as far as that is known before. Returns where it is, or will be.
    fn check(&self, path: &str, need: Need, expected: Expected<Self::Digest>) -> Result<String, Fault>;

    /// Writes a file, and looks whether it then holds that. Returns the folders that were made for it, the highest first.
    fn write(&self, path: &str, bytes: &[u8], expected: Expected<Self::Digest>)
    -> Result<Vec<String>, Fault>;

    /// Removes a file.
    fn remove(&self, path: &str, expected: Expected<Self::Digest>) -> Result<(), Fault>;

    /// Gives a file another name, which no file has. Returns the folders that were made for it, the highest first.
    fn rename(&self, from: &str, to: &str, expected: Expected<Self::Digest>) -> Result<Vec<String>, Fault>;

    /// Removes a folder with nothing in it.
    fn unmake(&self, path: &str) -> Result<(), Fault>;
}

impl Store for Files<'_> {
    type Digest = Digest;

    fn digest(bytes: &[u8]) -> Digest {
        Digest::of(bytes)
    }

    fn load(&self, path: &str) -> Result<Option<Held<Digest>>, String> {
        match Files::load(self, path) {
            Ok(Loaded { path, called, which, bytes, digest }) => {
                Ok(Some(Held { path, called, which, bytes, digest }))
            }
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn check(&self, path: &str, need: Need, expected: Expected<Digest>) -> Result<String, Fault> {
        Files::check(self, path, need, &expected.into()).map_err(Fault::from)
    }

    fn write(&self, path: &str, bytes: &[u8], expected: Expected<Digest>) -> Result<Vec<String>, Fault> {
        self.store(path, bytes, expected.into()).map(|stored| stored.dirs_created).map_err(Fault::from)
    }

    fn remove(&self, path: &str, expected: Expected<Digest>) -> Result<(), Fault> {
        Files::remove(self, path, expected.into()).map(drop).map_err(Fault::from)
    }

    fn rename(&self, from: &str, to: &str, expected: Expected<Digest>) -> Result<Vec<String>, Fault> {
        let renamed = Files::rename(self, from, to, expected.into());
        renamed.map(|stored| stored.dirs_created).map_err(Fault::from)
    }

    fn unmake(&self, path: &str) -> Result<(), Fault> {
        Files::unmake(self, path).map_err(Fault::from)
    }
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        Self { said: error.to_string(), is_changed: matches!(error, FileError::Changed(_)) }
    }
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
