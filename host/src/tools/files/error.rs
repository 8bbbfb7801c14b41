//! Why something could not be done with a file of the sandbox.

use super::answer::Fields;
use crate::tools::tool::Failure;

/// What is said by a shell or a program is cut after so many characters.
const LONGEST: usize = 300;

/// Why something could not be done with a file. It says what, on which file, and why; [`hint`](Self::hint) says what to do.
#[derive(Debug, thiserror::Error)]
pub(in crate::tools) enum FileError {
    /// No file has an empty path, or a NUL in it.
    #[error("`{}` is not the path of a file", .0.escape_debug())]
    NoPath(String),
    /// It is not there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// It is a folder, or its path ends as that of one.
    #[error("`{0}` is a folder")]
    Folder(String),
    /// Something above it in the path is no folder.
    #[error("`{path}` cannot be there: `{file}` is not a folder")]
    NotFolder {
        /// Which.
        path: String,
        /// What is in the way.
        file: String,
    },
    /// It is neither a folder nor a plain file.
    #[error("`{path}` is {what}, and not a plain file")]
    Special {
        /// Which.
        path: String,
        /// With an article.
        what: String,
    },
    /// A rule forbids it.
    #[error("`{}` is protected: {}", path, reason(path, file))]
    Protected {
        /// As the caller named it.
        path: String,
        /// What that leads to.
        file: String,
    },
    /// The home is not known.
    #[error("`{0}` cannot be found: `HOME` is not set in the environment")]
    Homeless(String),
    /// Its links lead in a circle.
    #[error("`{0}` cannot be found: its links lead in a circle")]
    Loop(String),
    /// It has more bytes than can be handled.
    #[error("`{path}` is too large: it has {size} bytes, and {most} are the limit")]
    Large {
        /// Which.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// It cannot be read.
    #[error("`{path}` cannot be read: {why}")]
    Unreadable {
        /// Which.
        path: String,
        /// What the operating system says.
        why: String,
    },
    /// It cannot be written to.
    #[error("`{path}` cannot be written to: {why}")]
    Unwritable {
        /// Which.
        path: String,
        /// What the operating system says.
        why: String,
    },
    /// It is not as it was when it was looked at.
    #[error("`{0}` was changed by something else in between, and was left alone")]
    Changed(String),
    /// There is one already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// A link would lead elsewhere from there.
    #[error("`{0}` is a link that would lead elsewhere from another folder")]
    Link(String),
    /// Not all of the contents came through.
    #[error("`{path}` was not written: {got} of {size} bytes arrived in the environment")]
    Short {
        /// Which.
        path: String,
        /// What arrived, in bytes.
        got: String,
        /// What was sent, in bytes.
        size: usize,
    },
    /// It went wrong while it was done.
    #[error("`{path}` was left as it was: {why}")]
    Failed {
        /// Which.
        path: String,
        /// What a program said.
        why: String,
    },
    /// It went wrong while a file was written in place.
    #[error("`{path}` was written in part only: {why}")]
    Damaged {
        /// Which.
        path: String,
        /// What a program said.
        why: String,
    },
    /// It was written, and reads back otherwise.
    #[error("`{0}` was written, but does not hold what was written: something else changes it")]
    Overwritten(String),
    /// The sandbox lacks something.
    #[error("`{0}` is missing in the environment")]
    Program(String),
    /// The script could not be run.
    #[error("{}", .0.message)]
    Environment(Failure),
    /// What came back makes no sense.
    #[error("`{path}` could not be reached: the environment gave no usable answer{}", behind(said))]
    Garbled {
        /// Which.
        path: String,
        /// How it begins.
        said: String,
    },
}

impl FileError {
    /// Reads what a script printed as its reason behind the word `no`. None if that makes no sense.
    pub(super) fn refused(fields: &mut Fields<'_>, most: u64, sent: usize) -> Option<Self> {
        let (word, said, file, path) = (fields.text()?, fields.text()?, fields.text()?, fields.text()?);
        let why = || reason_said(&said);
        Some(match word.as_ref() {
            "missing" => Self::Missing(path),
            "folder" => Self::Folder(path),
            "notfolder" => Self::NotFolder { path, file },
            "special" => Self::Special { path, what: said },
            "protected" => Self::Protected { path, file },
            "homeless" => Self::Homeless(path),
            "loop" => Self::Loop(path),
            "large" => Self::Large { path, size: said.parse().unwrap_or(0), most },
            "unreadable" => Self::Unreadable { path: file, why: why() },
            "unwritable" => Self::Unwritable { path: file, why: why() },
            "changed" => Self::Changed(path),
            "exists" => Self::Exists(path),
            "link" => Self::Link(path),
            "short" => Self::Short { path, got: said, size: sent },
            "failed" => Self::Failed { path: file, why: why() },
            "damaged" => Self::Damaged { path: file, why: why() },
            "garbled" => Self::Overwritten(path),
            "program" => Self::Program(said),
            _ => return None,
        })
    }

    /// Returns whether the reason is that there is no such file.
    #[must_use]
    pub(in crate::tools) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// Returns what to do, as one line.
    #[must_use]
    pub(in crate::tools) fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NoPath(_) => "give the path of a file, absolute or from where the session stands",
            Self::Missing(_) => {
                "a relative path starts where the session stands; `search_files` with `target` `files` finds files"
            }
            Self::Folder(_) => "name a file; `search_files` with `target` `files` lists those in a folder",
            Self::NotFolder { .. } => "check the path with `search_files`, or give another",
            Self::Special { .. } | Self::Link(_) => "use `terminal` for it",
            Self::Protected { .. } => {
                "leave it alone, or ask the user; `terminal` shows what is needed of it"
            }
            Self::Homeless(_) => "give an absolute path",
            Self::Loop(_) => "look at the links with `ls -l` in `terminal`",
            Self::Large { .. } => "change it by a program in `terminal`, such as `sed`",
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                "look at its rights with `ls -ld` in `terminal`; they are the owner's to change"
            }
            Self::Changed(_) | Self::Overwritten(_) => "read it again, and then make the change anew",
            Self::Exists(_) => "choose another name, or change the file that is there",
            Self::Short { .. } | Self::Garbled { .. } => "call it again; if it fails again, try `terminal`",
            Self::Failed { .. } => "remove the cause, such as a full disk, and call it again",
            Self::Damaged { .. } => "make room and write it again at once",
            Self::Program(_) => "install it there, or use `terminal`",
            Self::Environment(failure) => return failure.hint.as_deref(),
        })
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let failure = Self::new(error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

fn reason(path: &str, file: &str) -> String {
    let meant = if path == file { String::new() } else { format!("it is `{file}`, and ") };
    format!(
        "{meant}file tools neither show credentials nor change what systems, shells and Hostel run or are ruled by"
    )
}

fn behind(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Returns the reason from what a shell or a program said: what stands behind its name and that of the file.
fn reason_said(said: &str) -> String {
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why");
    let reason: String = line.rsplit(": ").next().unwrap_or(line).chars().take(LONGEST).collect();
    // As the house has it, but not where it is a name.
    let mut letters = reason.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(letters).collect(),
        _ => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(printed: &[u8]) -> FileError {
        let printed = [printed, b"note\0"].concat();
        FileError::refused(&mut Fields::new(&printed), 10, 5).unwrap()
    }

    #[test]
    fn reasons_are_read_from_what_the_scripts_print() {
        for (printed, expected) in [
            (&b"missing\0\0/w/note\0"[..], "`note` does not exist"),
            (b"special\0a named pipe\0/w/note\0", "`note` is a named pipe, and not a plain file"),
            (
                b"unwritable\0sh: 12: cannot create /w/a: b: Permission denied\0/w/a: b\0",
                "`/w/a: b` cannot be written to: permission denied",
            ),
            (
                b"failed\0cat: write error: No space left on device\n\0/w/note\0",
                "`/w/note` was left as it was: no space left on device",
            ),
            (b"failed\0\0/w/note\0", "`/w/note` was left as it was: it does not say why"),
            (b"large\x0012\0/w/note\0", "`note` is too large: it has 12 bytes, and 10 are the limit"),
            (b"short\x003\0/w/note\0", "`note` was not written: 3 of 5 bytes arrived in the environment"),
        ] {
            assert_eq!(refused(printed).to_string(), expected);
        }
        assert!(refused(b"missing\0\0\0").is_missing() && !refused(b"folder\0\0\0").is_missing());
        for printed in [&b"what\0\0\0note\0"[..], b"missing\0\0\0", b""] {
            assert!(FileError::refused(&mut Fields::new(printed), 10, 5).is_none());
        }
    }

    #[test]
    fn what_a_link_leads_to_is_said() {
        let error = refused(b"protected\0\0/home/me/.env\0");
        assert!(error.to_string().starts_with("`note` is protected: it is `/home/me/.env`, and "), "{error}");
        let error = refused(b"protected\0\0note\0");
        assert!(error.to_string().starts_with("`note` is protected: file tools "), "{error}");
    }
}
