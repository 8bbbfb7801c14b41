//! The file itself: read only if nobody else may, replaced whole, one writer at a time.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostel_plugin_api::shell::{lock_within, open_lock};
use rustix::fs::OFlags;

use super::error::DotenvError;
use super::text::{is_name, parse, quoted};
use crate::home::{Home, make_private};

/// More than this is no file of secrets.
const LONGEST: u64 = 1024 * 1024;

/// How long another writer is waited for. It holds the lock for the time of a write.
const PATIENCE: Duration = Duration::from_secs(10);

/// Read or written by anybody but the owner.
const OTHERS: u32 = 0o077;

/// The variables of a file, in its order. To print one for debugging shows no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Returns the value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the names and values, for whoever takes care of them from here on.
    #[must_use]
    pub fn into_vec(self) -> Vec<(String, String)> {
        self.0
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pairs().map(|(name, _)| name)).finish()
    }
}

/// Reads the file of a home. One that is not there is empty.
///
/// # Errors
///
/// Fails if others may read the file, or anything in it cannot be understood.
pub fn load(home: &Home) -> Result<Variables, DotenvError> {
    let path = path(home);
    let text = read(&path)?.unwrap_or_default();
    let entries = parse(&text).map_err(|(line, reason)| DotenvError::Syntax { path, line, reason })?;
    Ok(Variables(entries.into_iter().map(|entry| (entry.name, entry.value)).collect()))
}

/// Sets one variable in the file of a home, and leaves the rest of the file as it is.
///
/// # Errors
///
/// Fails with nothing changed if the file cannot be used, the name or the value cannot be a variable's, or the file cannot be
/// replaced.
pub fn set(home: &Home, name: &str, value: &str) -> Result<(), DotenvError> {
    if !is_name(name) {
        return Err(DotenvError::Name(name.chars().take(100).collect()));
    }
    if value.contains('\0') {
        return Err(DotenvError::Value(name.to_owned()));
    }
    let path = path(home);
    let failed = |error| DotenvError::Write(path.clone(), error);
    make_private(&home.locks()).map_err(failed)?;
    let lock = open_lock(&home.locks().join("env")).map_err(failed)?;
    lock_within(&lock, PATIENCE).map_err(failed)?;
    let mut text = read(&path)?.unwrap_or_default();
    let entries =
        parse(&text).map_err(|(line, reason)| DotenvError::Syntax { path: path.clone(), line, reason })?;
    match entries.into_iter().find(|entry| entry.name == name) {
        Some(entry) if entry.value == value => return Ok(()),
        Some(entry) => text.replace_range(entry.place, &quoted(value)),
        None => {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.extend([name, "=", quoted(value).as_str(), "\n"]);
        }
    }
    replace(&path, text.as_bytes()).map_err(failed)
}

fn path(home: &Home) -> PathBuf {
    home.path().join(".env")
}

/// Reads the file's text, if nobody else may. None if it is not there.
fn read(path: &Path) -> Result<Option<String>, DotenvError> {
    let failed = |error| DotenvError::Read(path.to_owned(), error);
    // A pipe in its place would hold up whoever opens it, and what is looked at must be what is read.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // Nor is there one where there is no folder for it.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(DotenvError::NotFile(path.to_owned()));
    }
    let (owner, own) = (meta.uid(), rustix::process::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(DotenvError::Foreign { path: path.to_owned(), owner });
    }
    if meta.mode() & OTHERS != 0 {
        return Err(DotenvError::Exposed { path: path.to_owned(), mode: meta.mode() & 0o7777 });
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| DotenvError::NotText(path.to_owned()))
}

/// Replaces the file in one step, keeping a link that may lead to it. The new one is for this user only.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = target.parent().unwrap_or(Path::new("/"));
    make_private(dir)?;
    // Made with a mode of 600.
    let mut file = tempfile::Builder::new().prefix(".env-").tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        (dir, home)
    }

    fn write(home: &Home, text: &str) {
        make_private(home.path()).unwrap();
        fs::write(path(home), text).unwrap();
        fs::set_permissions(path(home), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn text(home: &Home) -> String {
        fs::read_to_string(path(home)).unwrap()
    }

    #[test]
    fn each_form_is_read() {
        let (_dir, home) = home();
        assert_eq!(load(&home).unwrap(), Variables::default());
        write(
            &home,
            "\u{feff}# first\n\nA=1\n  export B = two words # said\r\nC='a # \"b\" $x\\n'\n\tD=\"x\\ny\\\"\\$\\z\"  # c\nE=\nF=a#b\n\
             G='one\ntwo'\nH=\"\"\nexport_=it's\nI=# none\nJ=a=b",
        );
        let expected = [
            ("A", "1"),
            ("C", "a # \"b\" $x\\n"),
            ("D", "x\ny\"$\\z"),
            ("E", ""),
            ("F", "a#b"),
            ("G", "one\ntwo"),
            ("H", ""),
            ("export_", "it's"),
            ("I", "# none"),
            ("J", "a=b"),
        ];
        // A blank before the `=` is something else to a shell.
        let error = load(&home).unwrap_err();
        assert!(matches!(error, DotenvError::Syntax { line: 4, .. }), "{error}");
        write(
            &home,
            &text(&home).replace("export B = two words # said\r\n", "export B= two words # said\r\n"),
        );
        let read = load(&home).unwrap();
        assert_eq!(read.get("B"), Some("two words"));
        let others: Vec<(&str, &str)> = read.pairs().filter(|(name, _)| *name != "B").collect();
        assert_eq!(others, expected);
        assert!(!format!("{read:?}").contains("two"), "{read:?}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_its_value() {
        let (_dir, home) = home();
        let cases = [
            ("A=1\nhunter2\n", 2, "no `=`"),
            ("A=1\n\n1B=hunter2\n", 3, "not the name"),
            ("A B=hunter2\n", 1, "not the name"),
            ("=hunter2\n", 1, "not the name"),
            ("A='hunter2\nB=1\n", 1, "single quote"),
            ("A='x\ny'\nB=\"hunter2\\\"\n", 3, "double quote"),
            ("A='hunter2'3\n", 1, "follows the closing quote"),
            ("A=1\nA=hunter2\n", 2, "a second time"),
            ("A=hunter2\0\n", 1, "NUL"),
        ];
        for (source, expected_line, expected) in cases {
            write(&home, source);
            let error = load(&home).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, DotenvError::Syntax { line, .. } if line == expected_line), "{message}");
            assert!(message.contains(expected) && !message.contains("hunter2"), "{message}");
            assert!(set(&home, "NEW", "1").is_err() && text(&home) == source, "{message}");
        }
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        let (_dir, home) = home();
        write(&home, "A=hunter2\n");
        for mode in [0o644, 0o640, 0o602] {
            fs::set_permissions(path(&home), fs::Permissions::from_mode(mode)).unwrap();
            for error in [load(&home).unwrap_err(), set(&home, "B", "1").unwrap_err()] {
                assert!(matches!(error, DotenvError::Exposed { .. }), "{error}");
                assert!(error.hint().unwrap().starts_with("run `chmod 600 '"));
            }
        }
        fs::remove_file(path(&home)).unwrap();
        fs::create_dir(path(&home)).unwrap();
        assert!(matches!(load(&home), Err(DotenvError::NotFile(_))));
        fs::remove_dir(path(&home)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path(&home), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        assert!(matches!(load(&home), Err(DotenvError::NotFile(_))));
    }

    #[test]
    fn setting_changes_one_value_and_leaves_the_rest() {
        let (_dir, home) = home();
        set(&home, "FIRST", "1").unwrap();
        assert_eq!(text(&home), "FIRST=1\n");
        assert_eq!(fs::metadata(path(&home)).unwrap().mode() & 0o777, 0o600);
        write(&home, "# mine\nexport A = 1\n");
        assert!(set(&home, "A", "2").is_err());
        write(&home, "# mine\nexport A= 'old\nline' # why\n\nB=2 # two\nC=");
        set(&home, "A", "new line's").unwrap();
        set(&home, "B", "3").unwrap();
        set(&home, "C", "4").unwrap();
        set(&home, "D", "").unwrap();
        assert_eq!(text(&home), "# mine\nexport A= \"new line's\" # why\n\nB=3 # two\nC=4\nD=''\n");
        set(&home, "B", "").unwrap();
        assert_eq!(load(&home).unwrap().get("B"), Some(""));
        assert!(matches!(set(&home, "A B", "1"), Err(DotenvError::Name(_))));
        assert!(matches!(set(&home, "A", "1\0"), Err(DotenvError::Value(_))));
    }

    #[test]
    fn any_value_comes_back_also_from_many_writers_and_through_a_link() {
        let (dir, home) = home();
        let real = dir.path().join("real");
        write(&home, "");
        fs::rename(path(&home), &real).unwrap();
        std::os::unix::fs::symlink(&real, path(&home)).unwrap();
        let values = [
            "",
            " ",
            "plain",
            "two words",
            "it's",
            "a\"b",
            "both ' and \"",
            "$HOME `id` \\n \\",
            "a\nb\r\n\tc",
            "#no",
            "x #y",
            "ä€😀",
            "\u{1}\u{7f}",
            "'",
            "\"",
            "\\",
            "trailing \\'",
        ];
        std::thread::scope(|scope| {
            for (number, value) in values.iter().enumerate() {
                let home = &home;
                scope.spawn(move || set(home, &format!("K{number}"), value).unwrap());
            }
        });
        let loaded = load(&home).unwrap();
        for (number, value) in values.iter().enumerate() {
            assert_eq!(loaded.get(&format!("K{number}")), Some(*value));
        }
        assert!(path(&home).is_symlink() && real.is_file());
    }
}
