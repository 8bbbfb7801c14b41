//! The login environment: what the user's own files make of a shell, read once for each session.
//!
//! Reading them takes milliseconds where they are small and seconds where they set up a tool for each language, so no command but the
//! first pays for them: what they leave behind becomes the session's first state. A file that fails, or never ends, must not keep anybody
//! from working: the session then has a plain shell, and its first command says so.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::boot::quote;
use super::transport::Shell;
use crate::{CreateEnvironment, ExecIo, Flow};

/// How long the files may take in all.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Stands in the id of a reading of the files between that with which all calls of the session begin and that of the call which reads them.
pub(super) const MARK: &str = "login";

/// Which files a session reads when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Login {
    /// Those of a login shell, and then `~/.bashrc` where the shell is bash.
    #[default]
    Usual,
    /// Exactly these. `~/` is the home directory in which the shell runs.
    Files(Vec<String>),
    /// None.
    Nothing,
}

impl Login {
    /// Returns what the host has asked for: `extra.shell_init_files`, a list, and `extra.auto_source_bashrc`, true or false. An
    /// environment that is made only to be cleaned up reads nothing.
    #[must_use]
    pub fn of(request: &CreateEnvironment) -> Self {
        if request.extra.get("purpose").is_some_and(|purpose| purpose == "cleanup") {
            return Self::Nothing;
        }
        let files = request.extra.get("shell_init_files").and_then(Value::as_array);
        let files: Vec<String> =
            files.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        if !files.is_empty() {
            return Self::Files(files);
        }
        match request.extra.get("auto_source_bashrc") {
            Some(Value::Bool(false)) => Self::Nothing,
            _ => Self::Usual,
        }
    }

    /// Returns the command that reads the files, if there are any to read.
    pub(super) fn command(&self, shell: &Shell) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Usual if shell.is_bash => Some(usual(&BASH)),
            Self::Usual => Some(usual(&POSIX)),
            Self::Files(files) => Some(files.iter().map(|file| named(file, shell.is_bash)).collect()),
        }
    }
}

/// The caller's side of the call that reads the files: nobody wants its output, but for what we have it say. It is cancelled as the
/// call for which they are read.
pub(super) struct Heard<'a> {
    printed: Mutex<Vec<u8>>,
    io: &'a dyn ExecIo,
}

/// More than anybody reads of what login files print, in bytes.
const MOST_HEARD: usize = 64 * 1024;

impl<'a> Heard<'a> {
    pub(super) fn of(io: &'a dyn ExecIo) -> Self {
        Self { printed: Mutex::default(), io }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ExecIo for Heard<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut heard = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        heard.extend_from_slice(bytes);
        let over = heard.len().saturating_sub(MOST_HEARD);
        heard.drain(..over);
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd()
    }
}

/// Returns the files that a shell has said not to understand, of what it has printed while it read them.
pub(super) fn not_understood(printed: &[u8]) -> Vec<String> {
    let printed = String::from_utf8_lossy(printed);
    let told = printed.lines().filter_map(|line| Some(line.split_once(BROKEN)?.1.to_owned()));
    told.collect()
}

/// What a login bash reads, in its order, and then what an interactive one reads: of each group the first that there is.
const BASH: [&[&str]; 3] = [
    &["/etc/profile"],
    &["\"$HOME/.bash_profile\"", "\"$HOME/.bash_login\"", "\"$HOME/.profile\""],
    &["\"$HOME/.bashrc\""],
];

/// What another login shell reads.
const POSIX: [&[&str]; 2] = [&["/etc/profile"], &["\"$HOME/.profile\""]];

/// Stands before the name of a file that the shell does not understand.
const BROKEN: &str = "\u{1}hostel:login\u{2}";

/// The exit code where a file is missing: that is the caller's mistake, and shows.
pub(super) const MISSING: i32 = 66;

fn usual(groups: &[&[&str]]) -> String {
    let is_bash = groups.len() == BASH.len();
    let group = |files: &&[&str]| {
        let branches = files.iter().map(|file| format!("if [ -r {file} ]; then {}", read(file, is_bash)));
        format!("{}; fi\n", branches.collect::<Vec<_>>().join("\nel"))
    };
    groups.iter().map(group).chain([":".to_owned()]).collect()
}

fn named(file: &str, is_bash: bool) -> String {
    let path = match file.strip_prefix("~/") {
        Some(rest) => format!("\"$HOME\"/{}", quote(PathBuf::from(rest).as_os_str()).to_string_lossy()),
        None => quote(PathBuf::from(file).as_os_str()).to_string_lossy().into_owned(),
    };
    format!("if [ -r {path} ]; then {}; else exit {MISSING}; fi\n:\n", read(&path, is_bash))
}

/// Reads one file. A bash goes on after one that it does not understand, as if that had ended there: it is asked once more, since the last
/// command of a file may fail in the same way. Other shells end.
fn read(path: &str, is_bash: bool) -> String {
    if !is_bash {
        return format!(". {path}");
    }
    format!(
        ". {path} || [ $? -ne 2 ] || \"$BASH\" -n {path} 2>/dev/null || printf '\\001hostel:login\\002%s\\n' {path}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_host_says_which_files_are_read() {
        let login = |key: &str, value: Value| {
            let mut request = CreateEnvironment::default();
            request.extra.insert(key.into(), value);
            Login::of(&request)
        };
        assert_eq!(Login::of(&CreateEnvironment::default()), Login::Usual);
        assert_eq!(login("shell_init_files", json!(["~/a", 1])), Login::Files(vec!["~/a".into()]));
        assert_eq!(login("auto_source_bashrc", json!(false)), Login::Nothing);
        assert_eq!(login("purpose", json!("cleanup")), Login::Nothing);
    }

    #[test]
    fn a_file_of_any_name_is_data() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("it's $(touch pwned)");
        std::fs::write(&odd, "echo read").unwrap();
        let script = named(&odd.to_string_lossy(), false);
        let run =
            |script: &str| std::process::Command::new("sh").args(["-c", script]).current_dir(&dir).output();
        assert_eq!(run(&script).unwrap().stdout, b"read\n");
        assert_eq!(run(&named("/no/such", true)).unwrap().status.code(), Some(66));
        assert!(!dir.path().join("pwned").exists());
        let bash =
            |script: &str| std::process::Command::new("bash").args(["-c", script]).output().unwrap().stdout;
        std::fs::write(&odd, "echo one\nif [ ( ; done").unwrap();
        assert_eq!(not_understood(&bash(&named(&odd.to_string_lossy(), true))), [odd.to_string_lossy()]);
        std::fs::write(&odd, "echo one\nreturn 2").unwrap();
        assert_eq!(bash(&named(&odd.to_string_lossy(), true)), b"one\n");
    }
}
