//! The configuration's file: read strictly, replaced whole, one writer at a time.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostel_plugin_api::shell::{lock_within, open_lock};
use serde_yaml::Value;

use super::edit::{self, EditError};
use super::key::Key;
use crate::home::{Home, make_private};

/// More than this is no configuration.
const LONGEST: u64 = 1024 * 1024;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("failed to read `{0}`: {1}")]
    Read(PathBuf, io::Error),
    /// Something else is there.
    #[error("`{0}` is not a file")]
    NotFile(PathBuf),
    /// It is a link to nothing.
    #[error("`{0}` is a link to a file that is not there")]
    Dangling(PathBuf),
    /// It is far too large.
    #[error("`{0}` is larger than 1 MiB, too large for a configuration file")]
    Large(PathBuf),
    /// It is not text.
    #[error("`{path}`, line {line}: the file is not valid UTF-8")]
    NotText {
        /// The file.
        path: PathBuf,
        /// Where it stops being text.
        line: usize,
    },
    /// It is not YAML.
    #[error("`{path}`{place}: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, as `, line N`, if the reader knows.
        place: String,
        /// What the reader said.
        reason: String,
    },
    /// It is YAML, but not keys and values.
    #[error("`{0}`, line 1: the file must hold keys and values, not {1}")]
    NotMapping(PathBuf, &'static str),
    /// It cannot be written.
    #[error("failed to write `{0}`: {1}; nothing was changed")]
    Write(PathBuf, io::Error),
    /// The edit was refused.
    #[error("`{0}` was not changed: {1}")]
    Edit(PathBuf, EditError),
}

impl FileError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::NotMapping(..) | Self::NotText { .. } => Some(
                "fix the file with `hostel config edit`; nothing is written to it while it cannot be read"
                    .into(),
            ),
            Self::Edit(path, EditError::Guard(_)) => {
                Some(format!("change it by hand: `hostel config edit` opens `{}`", path.display()))
            }
            Self::Write(_, error) if error.kind() == io::ErrorKind::StorageFull => {
                Some("make room on that disk".into())
            }
            Self::NotFile(_) => Some("move away what is there: a file of keys and values is expected".into()),
            Self::Write(_, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("check the permissions of the file and its folder".into())
            }
            Self::Dangling(_) => Some("make the file that it leads to, or remove the link".into()),
            Self::Edit(_, EditError::NotSection(key) | EditError::Occupied(key, _)) => {
                Some(format!("`hostel config unset {key}` takes away what stands there"))
            }
            Self::Read(..) | Self::Write(..) => Some("check that the file and its folder can be used".into()),
            Self::Large(_) | Self::Edit(..) => None,
        }
    }
}

/// The file as it was read.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    text: String,
    /// The keys and values; null where there are none.
    pub tree: Value,
}

impl ConfigFile {
    /// Reads the file at `path`. One that is not there, or holds nothing, is empty; one that cannot be understood is not.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or is not keys and values.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = path.to_owned();
        let bytes = match fs::metadata(&path) {
            // Somebody keeps a configuration elsewhere, and would run on silent defaults.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                return Err(FileError::Dangling(path));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(FileError::Read(path, error)),
            Ok(meta) if !meta.is_file() => return Err(FileError::NotFile(path)),
            Ok(meta) if meta.len() > LONGEST => return Err(FileError::Large(path)),
            Ok(_) => fs::read(&path).map_err(|error| FileError::Read(path.clone(), error))?,
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            FileError::NotText { path: path.clone(), line: 1 + good.matches('\n').count() }
        })?;
        Self::of_text(&path, text)
    }

    /// Takes `text` for the file at `path`.
    ///
    /// # Errors
    ///
    /// Fails if it is not keys and values.
    pub fn of_text(path: &Path, text: String) -> Result<Self, FileError> {
        let tree = parse(path, text.trim_start_matches('\u{feff}'))?;
        Ok(Self { text, tree })
    }

    /// Returns the text with `value` at `key`.
    ///
    /// # Errors
    ///
    /// Fails if that would destroy something else, or the text cannot be edited safely.
    pub fn with(&self, key: &Key, value: &Value) -> Result<String, EditError> {
        let texts = |value: &Value| serde_yaml::from_value::<Vec<String>>(value.clone()).ok();
        let lists = super::get(&self.tree, key).and_then(texts).zip(texts(value));
        if let Some((before, after)) = lists
            && let Ok(text) = change_items(self.text.clone(), key, &before, &after)
            && Self::tree_of(&text).is_ok_and(|tree| super::get(&tree, key) == Some(value))
        {
            return Ok(text);
        }
        edit::set(&self.text, &self.tree, key, value)
    }

    /// Returns the text without `key`.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with), and if the key is not there.
    pub fn without(&self, key: &Key) -> Result<String, EditError> {
        edit::unset(&self.text, &self.tree, key)
    }

    /// Puts `value` at `key`, and returns whether anything changed.
    ///
    /// # Errors
    ///
    /// Fails with nothing changed if the file is unreadable, the edit is unsafe, or the file cannot be replaced.
    pub fn set(home: &Home, key: &Key, value: &Value) -> Result<bool, FileError> {
        Self::change(home, |file| file.with(key, value))
    }

    /// Takes `key` away.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set), and if the key is not there.
    pub fn unset(home: &Home, key: &Key) -> Result<bool, FileError> {
        Self::change(home, |file| file.without(key))
    }

    /// Changes lists of texts in one step. One in which nothing is left is taken away. Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set), and if what stands at a key is no list of texts.
    pub fn change_lists(
        home: &Home,
        keys: &[Key],
        change: impl FnOnce(&mut [Vec<String>]),
    ) -> Result<bool, FileError> {
        Self::change(home, |file| {
            let read = |key: &Key| match super::get(&file.tree, key).filter(|value| !value.is_null()) {
                None => Ok(Vec::new()),
                Some(value) => serde_yaml::from_value(value.clone())
                    .map_err(|_| EditError::Guard(format!("`{key}` is not a list of texts"))),
            };
            let before = keys.iter().map(read).collect::<Result<Vec<Vec<String>>, _>>()?;
            let mut after = before.clone();
            change(&mut after);
            let mut text = file.text.clone();
            for ((key, before), after) in keys.iter().zip(before).zip(after) {
                text = change_items(text, key, &before, &after)?;
            }
            Ok(text)
        })
    }

    fn tree_of(text: &str) -> Result<Value, EditError> {
        serde_yaml::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| EditError::Guard(error.to_string()))
    }

    fn change(home: &Home, edit: impl FnOnce(&Self) -> Result<String, EditError>) -> Result<bool, FileError> {
        let path = home.config();
        let failed = |error| FileError::Write(path.clone(), error);
        make_private(&home.locks()).map_err(failed)?;
        let lock = open_lock(&home.locks().join("config")).map_err(failed)?;
        lock_within(&lock, PATIENCE).map_err(failed)?;
        let file = Self::read(&path)?;
        let text = edit(&file).map_err(|error| FileError::Edit(path.clone(), error))?;
        if text == file.text {
            return Ok(false);
        }
        replace(&path, text.as_bytes()).map_err(failed)?;
        Ok(true)
    }
}

/// Brings a list from `before` to `after`, item by item, so that those which stay keep their comments.
fn change_items(
    mut text: String,
    key: &Key,
    before: &[String],
    after: &[String],
) -> Result<String, EditError> {
    // New ones first: a list that has become empty is taken away, with its place in the file and the comment beside it.
    for item in after.iter().filter(|item| !before.contains(item)) {
        text = edit::push(&text, &ConfigFile::tree_of(&text)?, key, item)?;
    }
    for (index, _) in before.iter().enumerate().filter(|(_, item)| !after.contains(item)).rev() {
        text = edit::remove_item(&text, &ConfigFile::tree_of(&text)?, key, index)?;
    }
    Ok(text)
}

/// How long another writer is waited for. It holds the lock for the time of a write.
const PATIENCE: Duration = Duration::from_secs(10);

fn parse(path: &Path, text: &str) -> Result<Value, FileError> {
    let tree: Value = serde_yaml::from_str(text).map_err(|error| {
        let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
        let line = error.location().map(|at| at.line()).or_else(|| second_document(text));
        let place = line.map_or_else(String::new, |line| format!(", line {line}"));
        FileError::Syntax { path: path.to_owned(), place, reason }
    })?;
    let kind = match tree {
        Value::Mapping(_) | Value::Null => return Ok(tree),
        Value::Sequence(_) => "a list",
        _ => "a single value",
    };
    Err(FileError::NotMapping(path.to_owned(), kind))
}

/// Returns the line on which a second document begins.
fn second_document(text: &str) -> Option<usize> {
    let starts =
        text.lines().enumerate().filter(|(_, line)| line.trim_end() == "---" || line.starts_with("--- "));
    let before = text.lines().take_while(|line| !line.starts_with("---"));
    let leading = before.filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count() == 0;
    starts.skip(usize::from(leading)).map(|(index, _)| index + 1).next()
}

/// Replaces a file's contents in one step, keeping its mode, its owner, and the link that may lead to it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = target.parent().unwrap_or(Path::new("/"));
    let meta = fs::metadata(&target).ok();
    // Replacing needs no right to the file itself, but a file without write bits is meant to stay as it is.
    if meta.as_ref().is_some_and(|meta| meta.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut file = tempfile::Builder::new().prefix(".config-").tempfile_in(dir)?;
    file.write_all(bytes)?;
    if let Some(meta) = meta {
        file.as_file().set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
        let own = file.as_file().metadata()?;
        if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
            std::os::unix::fs::fchown(file.as_file(), Some(meta.uid()), Some(meta.gid()))?;
        }
    }
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        (dir, home)
    }

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn a_broken_file_is_an_error_with_its_line_and_is_never_written() {
        let (_dir, home) = home();
        let cases: [(&[u8], &str); 6] = [
            (b"terminal: {backend: local}\nbroken: [unclosed\n", "line"),
            (b"a:\n\tb: 1\n", "line 2"),
            (b"- a\n- b\n", "a list"),
            (b"a: 1\n---\nb: 2\n", "more than one document"),
            (b"a: 1\nb: \xff\n", "line 2: the file is not valid UTF-8"),
            (b"a: 1\na: 2\n", "duplicate"),
        ];
        for (bytes, expected) in cases {
            fs::write(home.config(), bytes).unwrap();
            let error = ConfigFile::set(&home, &key("terminal.backend"), &Value::String("docker".into()))
                .unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.hint().is_some());
            assert_eq!(fs::read(home.config()).unwrap(), bytes);
        }
        fs::remove_file(home.config()).unwrap();
        fs::create_dir(home.config()).unwrap();
        assert!(matches!(ConfigFile::read(&home.config()), Err(FileError::NotFile(_))));
    }

    #[test]
    fn writing_keeps_mode_and_link_and_many_writers_lose_nothing() {
        let (dir, home) = home();
        let real = dir.path().join("real.yaml");
        fs::write(&real, "# mine\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, home.config()).unwrap();
        std::thread::scope(|scope| {
            for number in 0..12 {
                let home = &home;
                scope.spawn(move || {
                    ConfigFile::set(home, &key(&format!("k{number}")), &Value::Bool(true)).unwrap()
                });
            }
        });
        assert!(home.config().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        let file = ConfigFile::read(&home.config()).unwrap();
        assert_eq!(file.tree.as_mapping().unwrap().len(), 12);
        assert!(file.text.starts_with("# mine\n"));
    }

    #[test]
    fn a_read_only_file_stays() {
        let (_dir, home) = home();
        fs::write(home.config(), "a: 1\n").unwrap();
        fs::set_permissions(home.config(), fs::Permissions::from_mode(0o444)).unwrap();
        let error = ConfigFile::unset(&home, &key("a")).unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
        assert_eq!(fs::read(home.config()).unwrap(), b"a: 1\n");
    }

    #[test]
    fn a_list_of_which_nothing_stays_keeps_its_place_and_what_stands_around_it() {
        let key = key("terminal.shell_init_files");
        let changed = |text: &str, to: &[&str]| {
            let file = ConfigFile::of_text(Path::new("config.yaml"), text.to_owned()).unwrap();
            file.with(&key, &serde_yaml::to_value(to).unwrap()).unwrap()
        };
        let text = "# top\nterminal:\n  shell_init_files: [a, b] # cc\n\nplugins:\n  enabled: [x]\n";
        assert_eq!(changed(text, &["c", "d"]), text.replace("a, b", "c, d"));
        assert_eq!(changed(text, &["c"]), text.replace("a, b", "c"));
        let text =
            "terminal:\n  # mine\n  shell_init_files:\n    - a # first\n    - b\n  timeout: 5 # long\n";
        assert_eq!(changed(text, &["c", "d"]), text.replace("a # first", "c").replace("- b", "- d"));
        assert_eq!(
            changed(text, &["b", "c"]),
            text.replace("    - a # first\n", "").replace("- b\n", "- b\n    - c\n")
        );
    }

    #[test]
    fn a_list_that_becomes_empty_leaves_no_trace() {
        let (_dir, home) = home();
        fs::write(home.config(), "a: 1\n").unwrap();
        let lists = [key("plugins.enabled")];
        assert!(ConfigFile::change_lists(&home, &lists, |lists| lists[0].push("acmebox".into())).unwrap());
        assert!(ConfigFile::change_lists(&home, &lists, |lists| lists[0].push("b".into())).unwrap());
        assert!(ConfigFile::change_lists(&home, &lists, |lists| lists[0].clear()).unwrap());
        assert_eq!(fs::read(home.config()).unwrap(), b"a: 1\n");
        assert!(!ConfigFile::change_lists(&home, &lists, |lists| lists[0].clear()).unwrap());
    }
}
