//! Why a plugin was not installed, updated or removed.

use std::io;
use std::path::{Path, PathBuf};

use super::source::SourceError;
use super::tree::Flaw;
use crate::plugins::{EnableError, LoadError, ManifestError};
use crate::registry::NameError;

/// Why a plugin was not installed, updated or removed. Unless the message says otherwise, everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The source is none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The checksum that was given cannot be one.
    #[error("`{0}` is not a SHA-256")]
    NotSha256(String),
    /// A checksum for something that has none.
    #[error("`{0}` is not an archive, so there is no SHA-256 of it to compare")]
    NoSha256(String),
    /// A branch, tag or commit of something that has none.
    #[error("`{0}` is not a git repository, so there is no branch, tag or commit of it to choose")]
    NoReference(String),
    /// The bytes are not those that were meant.
    #[error("`{what}` has the SHA-256 {found}, and not {wanted}")]
    Sha256 {
        /// The archive.
        what: String,
        /// What it should be.
        wanted: String,
        /// What it is.
        found: String,
    },
    /// An archive could not be fetched.
    #[error("failed to download `{address}`: {reason}")]
    Download {
        /// From where.
        address: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// A file could not be read.
    #[error("failed to read `{0}`: {1}")]
    Read(PathBuf, io::Error),
    /// An archive is too large to be looked at.
    #[error("`{0}` is larger than 512 MiB, too large for a plugin")]
    Large(String),
    /// A repository could not be fetched.
    #[error("failed to fetch the git repository `{address}`: {reason}")]
    Git {
        /// Which.
        address: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// Something in the source is not as it must be.
    #[error("`{0}` cannot be installed: {1}")]
    Content(String, Flaw),
    /// It is no plugin.
    #[error("`{0}` is not a plugin that can be installed: {1}")]
    Manifest(String, ManifestError),
    /// It has no library.
    #[error("`{what}` cannot be installed: there is no `{library}` in it")]
    NoLibrary {
        /// The source.
        what: String,
        /// The file that the manifest leads to.
        library: String,
        /// Whether it is source code that has yet to be built.
        is_crate: bool,
    },
    /// The library cannot be one of this host's.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is there already.
    #[error("plugin `{name}` is already installed, in version {version}")]
    Exists {
        /// The plugin.
        name: String,
        /// The version that is there.
        version: String,
    },
    /// Its name is.
    #[error("the name `{name}` is taken by the plugin in `{folder}`")]
    Taken {
        /// The plugin.
        name: String,
        /// Who has it.
        folder: PathBuf,
    },
    /// A folder that holds the place where it would be copied to.
    #[error("`{0}` holds the folder of plugins itself")]
    Itself(PathBuf),
    /// Somebody else is at it.
    #[error("failed to get hold of the folder of plugins: {0}")]
    Lock(io::Error),
    /// Something could not be written.
    #[error("failed to write `{0}`: {1}; nothing was changed")]
    Write(PathBuf, io::Error),
    /// The new folder could not be put in place.
    #[error("failed to put the new folder in place as `{0}`: {1}; what was there is as it was")]
    Place(PathBuf, io::Error),
    /// Neither could the old one be put back.
    #[error("{reason}; the old folder could not be put back ({error}) and is now `{old}`")]
    Stranded {
        /// What went wrong first.
        reason: String,
        /// What went wrong then.
        error: io::Error,
        /// Where the old folder is.
        old: PathBuf,
    },
    /// The name cannot be that of a plugin.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No folder has it.
    #[error("there is no plugin `{0}`")]
    Unknown(String),
    /// It came by another way.
    #[error("it is not known where plugin `{0}` came from")]
    NoReceipt(String),
    /// A part of its address was not kept.
    #[error("plugin `{name}` came from `{address}`, and the part of that address after the `?` was not kept")]
    PartlyKept {
        /// The plugin.
        name: String,
        /// The rest of the address.
        address: String,
    },
    /// The source has become another plugin's.
    #[error("`{what}` now holds plugin `{found}`, and no longer `{name}`")]
    Another {
        /// The source.
        what: String,
        /// The plugin that was to be updated.
        name: String,
        /// What was found.
        found: String,
    },
    /// A folder that is not where a plugin's must be.
    #[error("`{0}` does not lie in the folder of plugins, and is left alone")]
    Outside(PathBuf),
    /// The folder cannot be taken away.
    #[error("failed to remove `{0}`: {1}; nothing was changed")]
    Remove(PathBuf, io::Error),
    /// It could not be enabled, or taken off the list of the enabled.
    #[error(transparent)]
    Enable(Box<EnableError>),
    /// What was to be done with the plugin right after failed.
    #[error("{message}")]
    After {
        /// What went wrong.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

impl From<EnableError> for InstallError {
    fn from(error: EnableError) -> Self {
        Self::Enable(Box::new(error))
    }
}

impl InstallError {
    /// Returns the same error of a folder that has another name for the user than the one it had when it was found.
    pub(super) fn moved(mut self, from: &Path, to: &Path) -> Self {
        let load = match &mut self {
            Self::Load(error) => Some(error),
            Self::Enable(error) => match &mut **error {
                EnableError::Load(error) => Some(error),
                _ => None,
            },
            _ => None,
        };
        if let Some(error) = load {
            let (from, to) = (from.display().to_string(), to.display().to_string());
            error.reason = error.reason.replace(&from, &to);
            error.hint = error.hint.replace(&from, &to);
        }
        self
    }

    /// Returns what to do about it. That of an [`Enable`](Self::Enable) is the face's to say.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Source(error) => return error.hint(),
            Self::Load(error) => return Some(error.hint.clone()),
            Self::Exists { name, .. } => {
                return Some(format!(
                    "`hostel plugins update {name}` fetches it anew from where it came from; `--force` replaces it"
                ));
            }
            Self::Taken { folder, .. } => {
                return Some(format!("remove `{}`, or give one of the two another name", folder.display()));
            }
            Self::Download { hint, .. } | Self::Git { hint, .. } => *hint,
            Self::NotSha256(_) => "64 hexadecimal digits are expected, as `sha256sum` prints them",
            Self::NoSha256(_) => "for a git repository, name a whole commit id after the `#`",
            Self::NoReference(_) => "leave it out",
            Self::Sha256 { .. } => {
                "do not use it before you know why: the file is another one, or it was changed on its way"
            }
            Self::Large(_) => "unpack it yourself, and install the folder",
            Self::Content(_, Flaw::Write(..)) | Self::Write(..) | Self::Place(..) | Self::Remove(..) => {
                "check the free space, and the permissions of the folder"
            }
            Self::Content(_, Flaw::Read(..)) | Self::Read(..) => "check its permissions",
            Self::Content(..) => {
                "nothing of it was kept; ask its author for an archive with plain files and folders only"
            }
            Self::Manifest(..) => {
                "a plugin is a folder with a `plugin.yaml` and a library; `plugin.yaml` must be at its top"
            }
            Self::NoLibrary { is_crate: true, .. } => {
                "this is source code: build it with `cargo build --release`, put the library beside `plugin.yaml`, and \
                 install that folder"
            }
            Self::NoLibrary { is_crate: false, .. } => "put the plugin's library beside `plugin.yaml`",
            Self::Itself(_) => "name the plugin's own folder",
            // One that is held has no kind of its own.
            Self::Lock(error) if error.kind() != io::ErrorKind::Other => {
                "check the permissions of Hostel's home, and that its disk can be written to"
            }
            Self::Lock(_) => "another `hostel plugins` command is running; try again when it has ended",
            Self::Stranded { .. } => "the next `hostel plugins install`, `update` or `remove` puts it back",
            Self::Unknown(_) => "`hostel plugins list` shows what is there",
            Self::NoReceipt(_) => {
                "`hostel plugins install --force SOURCE` replaces it, and remembers the source"
            }
            Self::PartlyKept { .. } => {
                "it may have held a token; run `hostel plugins install --force` with the whole address"
            }
            Self::Another { .. } => "if you want that one as well, install it by `hostel plugins install`",
            Self::Outside(_) => "remove it by hand if it is what you mean",
            Self::After { hint, .. } => return hint.clone(),
            Self::Name(_) | Self::Enable(_) => return None,
        };
        Some(hint.to_owned())
    }
}
