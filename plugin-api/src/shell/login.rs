//! The login environment: what the user's own files make of a shell, read once for each session.
//!
//! Reading them takes milliseconds where they are small and seconds where they set up a tool for each language, so no command pays
//! for them: what they leave behind becomes the session's first state. A file that fails, or never ends, must not keep anybody
//! from working: the session then has a plain shell, and its first command says so.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::boot::quote;
use super::transport::Shell;
use crate::CreateEnvironment;

/// How long the files may take.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// How the id of the call that reads the files ends; it begins as those of all calls of the session.
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
            Self::Usual if shell.is_bash => Some(BASH.to_owned()),
            Self::Usual => Some(POSIX.to_owned()),
            Self::Files(files) => Some(files.iter().map(|file| read(file)).collect()),
        }
    }
}

/// What a login bash reads, in its order, and then what an interactive one reads.
const BASH: &str = r#"if [ -r /etc/profile ]; then . /etc/profile; fi
if [ -r "$HOME/.bash_profile" ]; then . "$HOME/.bash_profile"
elif [ -r "$HOME/.bash_login" ]; then . "$HOME/.bash_login"
elif [ -r "$HOME/.profile" ]; then . "$HOME/.profile"; fi
if [ -r "$HOME/.bashrc" ]; then . "$HOME/.bashrc"; fi
:"#;

const POSIX: &str = r#"if [ -r /etc/profile ]; then . /etc/profile; fi
if [ -r "$HOME/.profile" ]; then . "$HOME/.profile"; fi
:"#;

/// A file that is missing is the caller's mistake, and shows.
const MISSING: &str = "exit 66";

fn read(file: &str) -> String {
    let path = match file.strip_prefix("~/") {
        Some(rest) => format!("\"$HOME\"/{}", quote(PathBuf::from(rest).as_os_str()).to_string_lossy()),
        None => quote(PathBuf::from(file).as_os_str()).to_string_lossy().into_owned(),
    };
    format!("if [ -r {path} ]; then . {path}; else {MISSING}; fi\n:\n")
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
        let script = read(&odd.to_string_lossy());
        let run =
            |script: &str| std::process::Command::new("sh").args(["-c", script]).current_dir(&dir).output();
        assert_eq!(run(&script).unwrap().stdout, b"read\n");
        assert_eq!(run(&read("/no/such")).unwrap().status.code(), Some(66));
        assert!(!dir.path().join("pwned").exists());
    }
}
