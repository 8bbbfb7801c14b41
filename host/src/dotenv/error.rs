//! Why the file of secrets cannot be used.

use std::io;
use std::path::PathBuf;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DotenvError {
    /// It cannot be read.
    #[error("failed to read `{0}`: {1}")]
    Read(PathBuf, io::Error),
    /// It is something else, or far too large.
    #[error("`{0}` is not a regular file of at most 1 MiB")]
    NotFile(PathBuf),
    /// Others may read it.
    #[error("others may use `{path}` (mode {mode:o}), and it holds secrets")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is somebody else's.
    #[error("`{path}` belongs to another user (uid {owner})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// It is not text.
    #[error("`{0}` is not valid UTF-8")]
    NotText(PathBuf),
    /// A line cannot be understood.
    #[error("`{path}`, line {line}: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A text that no variable can be called.
    #[error("`{}` cannot be the name of a variable: letters, digits and `_`, not a digit first", .0.escape_debug())]
    Name(String),
    /// A value that no variable can have.
    #[error("the value of `{0}` holds a NUL character, which no variable can")]
    Value(String),
    /// It cannot be written.
    #[error("failed to write `{0}`: {1}; nothing was changed")]
    Write(PathBuf, io::Error),
}

impl DotenvError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!("run `chmod 600 '{}'`", path.display())),
            Self::Foreign { path, .. } => Some(format!(
                "if you trust it, make it yours: `chown {} '{}'`",
                rustix::process::geteuid().as_raw(),
                path.display()
            )),
            Self::Syntax { .. } => {
                Some("lines are `KEY=VALUE`; put values with spaces, quotes or `#` in single quotes".into())
            }
            Self::NotFile(_) => {
                Some("move away what is there: a file of `KEY=VALUE` lines is expected".into())
            }
            Self::Read(..) | Self::Write(..) => {
                Some("check the free space, and the permissions of the file and its folder".into())
            }
            Self::NotText(_) | Self::Name(_) | Self::Value(_) => None,
        }
    }
}
