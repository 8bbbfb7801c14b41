//! Reads and changes files of the sandbox as a whole.
//!
//! Each of these is one script. A file is found, judged and acted upon by one and the same, so that nobody can put
//! something else in its place while it is on its way to us and back.

use std::sync::PoisonError;

use super::answer::{Asked, Fields};
use super::error::FileError;
use super::protected::{Doing, own_home};
use super::reads::Reads;
use crate::tools::call::Call;
use crate::tools::script::{Ran, Script};
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// The most bytes of a file that is read as a whole.
pub(in crate::tools) const MOST: usize = 8 * 1024 * 1024;

const LOAD: &str = concat!(include_str!("begin.sh"), include_str!("resolve.sh"), include_str!("load.sh"));
const STORE: &str = concat!(
    include_str!("begin.sh"),
    include_str!("resolve.sh"),
    include_str!("folders.sh"),
    include_str!("store.sh")
);
const ENTRY: &str = concat!(
    include_str!("begin.sh"),
    include_str!("resolve.sh"),
    include_str!("folders.sh"),
    include_str!("entry.sh")
);
const CHECK: &str = concat!(include_str!("begin.sh"), include_str!("resolve.sh"), include_str!("check.sh"));
const UNMAKE: &str = concat!(include_str!("begin.sh"), include_str!("resolve.sh"), include_str!("unmake.sh"));

/// The files of a session's sandbox, as one call may use them.
pub(in crate::tools) struct Files<'a> {
    pub(super) session: &'a Session,
    pub(super) call: &'a Call,
}

/// What tells one state of a file from another: its size and its SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Digest {
    size: usize,
    sha256: String,
}

impl Digest {
    /// Returns that of a file that holds `bytes`.
    pub(in crate::tools) fn of(bytes: &[u8]) -> Self {
        Self { size: bytes.len(), sha256: crate::digest::sha256_hex(bytes) }
    }

    /// The SHA-256, in lower-case hexadecimal.
    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }
}

/// A file that was read as a whole.
#[derive(Debug)]
pub(in crate::tools) struct Loaded {
    /// Where it is in the sandbox: absolute, and without links.
    pub(in crate::tools) path: String,
    /// The same, but for a last link, which is not followed.
    pub(in crate::tools) called: String,
    /// Which of all files it is, if it has several names.
    pub(in crate::tools) which: Option<String>,
    /// What it holds.
    pub(in crate::tools) bytes: Vec<u8>,
    /// What tells this state of it from others.
    pub(in crate::tools) digest: Digest,
}

/// What must be at a path for something to be done there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) enum Before {
    /// Whatever it is.
    Anything,
    /// No file.
    Absent,
    /// The file in this state.
    Is(Digest),
}

/// A file that was written, or given another name.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tools) struct Stored {
    /// Where it is in the sandbox: absolute, and without links.
    pub(in crate::tools) path: String,
    /// How many bytes were written.
    pub(in crate::tools) bytes: usize,
    /// The folders that were made for it, the highest first.
    pub(in crate::tools) dirs_created: Vec<String>,
    /// Whether it was not there before.
    pub(in crate::tools) created: bool,
}

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Need {
    /// It gets other contents.
    Write,
    /// It is removed, or gets another name.
    Entry,
    /// It is made. `freed`: what has its name goes before.
    Make { freed: bool },
    /// Another file gets its name. `freed`: what has it goes before.
    Name { freed: bool },
}

impl<'a> Files<'a> {
    /// Returns the files of the session's sandbox.
    #[must_use]
    pub(in crate::tools) fn new(session: &'a Session, call: &'a Call) -> Self {
        Self { session, call }
    }

    /// Reads a file of at most [`MOST`] bytes. Links are followed.
    ///
    /// # Errors
    ///
    /// Fails if it is no plain file, is too large or protected, or cannot be read.
    pub(in crate::tools) fn load(&self, path: &str) -> Result<Loaded, FileError> {
        let asked = Asked { path, most: MOST as u64, sent: 0 };
        let script = self.script(LOAD, path, Doing::Reading)?.var("HOSTEL_MOST", MOST.to_string());
        let ran = self.run(script)?;
        let mut fields = asked.answer(&ran)?;
        let (Some(path), Some(called), Some(which)) = (fields.text(), fields.text(), fields.text()) else {
            return Err(asked.garbled(&ran));
        };
        let Some(bytes) = whole(&ran, &fields) else { return Err(asked.garbled(&ran)) };
        let which = Some(which).filter(|which| !which.is_empty());
        Ok(Loaded { path, called, which, digest: Digest::of(bytes), bytes: bytes.to_vec() })
    }

    /// Writes a file as a whole. Until it is written, the old one is there, whole; folders that are missing above it are
    /// made.
    ///
    /// Mode, owner and group stay, and rights and attributes where the sandbox has GNU's programs; a new file has the mode that
    /// the umask leaves. A link stays a link, and what it leads to is written. A file with several names is written in place, so
    /// that all of them see it; so is one whose folder takes no other file, or whose owner would change.
    ///
    /// # Errors
    ///
    /// Fails, and leaves everything as it was, if it is protected, there is something else than `before` says, or it cannot be
    /// written to.
    #[allow(clippy::needless_pass_by_value, reason = "what is expected holds for one call")]
    pub(in crate::tools) fn store(
        &self,
        path: &str,
        bytes: &[u8],
        before: Before,
    ) -> Result<Stored, FileError> {
        let asked = Asked { path, most: 0, sent: bytes.len() };
        let script = self.script(STORE, path, Doing::Writing)?;
        let script = expecting(script, &before)
            .var("HOSTEL_ABSENT", if before == Before::Absent { "yes" } else { "" })
            .var("HOSTEL_SIZE", bytes.len().to_string())
            .var("HOSTEL_SUM", Digest::of(bytes).sha256)
            .stdin(bytes.to_vec());
        let ran = self.run(script)?;
        let mut fields = asked.answer(&ran)?;
        let (Some(kind), Some(file)) = (fields.text(), fields.text()) else {
            return Err(asked.garbled(&ran));
        };
        self.reads(|reads| reads.wrote(&file, &Digest::of(bytes)));
        let dirs_created = highest_first(&mut fields);
        Ok(Stored { path: file, bytes: bytes.len(), dirs_created, created: kind == "missing" })
    }

    /// Removes a file; of a link, the link. Returns where it was.
    ///
    /// # Errors
    ///
    /// Fails if it is no plain file, is protected or not as `before` says, or cannot be removed.
    #[allow(clippy::needless_pass_by_value, reason = "what is expected holds for one call")]
    pub(in crate::tools) fn remove(&self, path: &str, before: Before) -> Result<String, FileError> {
        let asked = Asked { path, most: 0, sent: 0 };
        if before == Before::Absent {
            return Err(FileError::Exists(path.to_owned()));
        }
        let script =
            expecting(self.script(ENTRY, path, Doing::Writing)?, &before).var("HOSTEL_TO", String::new());
        let ran = self.run(script)?;
        let file = asked.answer(&ran)?.text().ok_or_else(|| asked.garbled(&ran))?;
        self.reads(|reads| reads.forget(&file));
        Ok(file)
    }

    /// Gives a file another name; to a link, the link. Folders that are missing above that are made.
    ///
    /// # Errors
    ///
    /// Fails if it is no plain file or not as `before` says, there is something with the other name, either is protected, or it
    /// cannot be done.
    #[allow(clippy::needless_pass_by_value, reason = "what is expected holds for one call")]
    pub(in crate::tools) fn rename(&self, from: &str, to: &str, before: Before) -> Result<Stored, FileError> {
        check(to)?;
        let script = expecting(self.script(ENTRY, from, Doing::Writing)?, &before);
        let ran = self.run(script.var("HOSTEL_TO", to))?;
        let asked = Asked { path: from, most: 0, sent: 0 };
        let mut fields = asked.answer(&ran)?;
        let (Some(old), Some(file)) = (fields.text(), fields.text()) else {
            return Err(asked.garbled(&ran));
        };
        self.reads(|reads| {
            reads.forget(&old);
            reads.forget(&file);
        });
        Ok(Stored { path: file, bytes: 0, dirs_created: highest_first(&mut fields), created: true })
    }

    /// Looks whether something can be done with a file, as far as that is known before. Returns where it is, or will be.
    ///
    /// # Errors
    ///
    /// Fails if it cannot, or the file is not as `before` says.
    pub(in crate::tools) fn check(
        &self,
        path: &str,
        need: Need,
        before: &Before,
    ) -> Result<String, FileError> {
        let (need, freed) = match need {
            Need::Write => ("write", false),
            Need::Entry => ("entry", false),
            Need::Make { freed } => ("make", freed),
            Need::Name { freed } => ("name", freed),
        };
        let asked = Asked { path, most: 0, sent: 0 };
        let script = expecting(self.script(CHECK, path, Doing::Writing)?, before)
            .var("HOSTEL_NEED", need)
            .var("HOSTEL_FREED", if freed { "yes" } else { "" });
        let ran = self.run(script)?;
        asked.answer(&ran)?.text().ok_or_else(|| asked.garbled(&ran))
    }

    /// Removes a folder with nothing in it.
    ///
    /// # Errors
    ///
    /// Fails if it is no folder, is protected or not empty, or cannot be removed.
    pub(in crate::tools) fn unmake(&self, path: &str) -> Result<(), FileError> {
        let ran = self.run(self.script(UNMAKE, path, Doing::Writing)?)?;
        Asked { path, most: 0, sent: 0 }.answer(&ran).map(drop)
    }

    /// Returns a script that is about the file `path`.
    pub(super) fn script(&self, text: &'static str, path: &str, doing: Doing) -> Result<Script, FileError> {
        check(path)?;
        let [own, own_real] = own_home(self.session);
        Ok(Script::new(text)
            .var("HOSTEL_PATH", path)
            .var("HOSTEL_RULES", doing.rules())
            .var("HOSTEL_OWN", own)
            .var("HOSTEL_OWN_REAL", own_real)
            .var("HOSTEL_USER_HOME", dirs::home_dir().unwrap_or_default().to_string_lossy()))
    }

    /// Notes what the session knows of files.
    fn reads<T>(&self, note: impl FnOnce(&mut Reads) -> T) -> T {
        note(&mut self.session.memory.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self, script: Script) -> Result<Ran, FileError> {
        script.run(self.session, self.call).map_err(|error| FileError::Environment(Failure::from(error)))
    }
}

/// Refuses what cannot be a path.
fn check(path: &str) -> Result<(), FileError> {
    if path.is_empty() || path.contains('\0') {
        return Err(FileError::NoPath(path.to_owned()));
    }
    Ok(())
}

fn expecting(script: Script, before: &Before) -> Script {
    let (sha256, size) = match before {
        Before::Is(digest) => (digest.sha256.clone(), digest.size.to_string()),
        Before::Anything | Before::Absent => (String::new(), String::new()),
    };
    script.var("HOSTEL_IS", sha256).var("HOSTEL_IS_SIZE", size)
}

/// Returns contents, unless the script ended early.
fn whole<'r>(ran: &Ran, fields: &Fields<'r>) -> Option<&'r [u8]> {
    if ran.exit_code == 0 && !ran.cut { fields.contents() } else { None }
}

fn highest_first(fields: &mut Fields<'_>) -> Vec<String> {
    let mut folders = fields.texts();
    folders.reverse();
    folders
}
