//! The folder in which everything of one user's lives: `~/.hostel`, or what `HOSTEL_HOME` names.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Names the folder in place of `~/.hostel`.
pub const HOME_VARIABLE: &str = "HOSTEL_HOME";

/// Why there is no home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither `HOSTEL_HOME` nor a home directory of the user.
    #[error("there is no home directory to keep Hostel's files in")]
    None,
    /// The path is something else.
    #[error("`{0}` is not a folder, but Hostel's home should be there")]
    NotFolder(PathBuf),
    /// Paths cross to plugins as text.
    #[error("the path of Hostel's home, `{0}`, is not valid UTF-8")]
    NotText(PathBuf),
    /// A relative path without a directory to start from.
    #[error("failed to find the current directory: {0}")]
    Current(io::Error),
}

/// The paths of one home. Nothing is made before something is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// Finds the home from the environment of this process.
    ///
    /// # Errors
    ///
    /// Fails if neither `HOSTEL_HOME` nor the user's home directory is known, or the path is not a folder's.
    pub fn find() -> Result<Self, HomeError> {
        let named = std::env::var_os(HOME_VARIABLE).filter(|value| !value.is_empty());
        let path = match named {
            Some(path) => std::path::absolute(path).map_err(HomeError::Current)?,
            None => {
                dirs::home_dir().filter(|home| home.is_absolute()).ok_or(HomeError::None)?.join(".hostel")
            }
        };
        Self::at(path)
    }

    /// Takes the home at `path`, which need not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if something else is there.
    pub fn at(path: PathBuf) -> Result<Self, HomeError> {
        if path.to_str().is_none() {
            return Err(HomeError::NotText(path));
        }
        if path.exists() && !path.is_dir() {
            return Err(HomeError::NotFolder(path));
        }
        Ok(Self(path))
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The user's configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.0.join("config.yaml")
    }

    /// The plugins, a folder each.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// What a plugin may write to.
    #[must_use]
    pub fn plugin_data(&self, plugin: &str) -> PathBuf {
        self.0.join("data").join(plugin)
    }

    /// What was found out of each plugin when it was enabled.
    #[must_use]
    pub fn plugin_records(&self) -> PathBuf {
        self.0.join("state").join("plugins")
    }

    /// What is kept for one task on one backend.
    #[must_use]
    pub fn task(&self, backend: &str, task: &str) -> PathBuf {
        self.tasks_of(backend).join(encode(task))
    }

    /// What is kept for tasks, a folder for each backend.
    #[must_use]
    pub fn tasks(&self) -> PathBuf {
        self.0.join("state").join("tasks")
    }

    /// What is kept for all tasks on one backend.
    #[must_use]
    pub fn tasks_of(&self, backend: &str) -> PathBuf {
        self.tasks().join(backend)
    }

    /// Whole outputs of which only a part was shown.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.0.join("cache").join("outputs")
    }

    /// Locks.
    #[must_use]
    pub fn locks(&self) -> PathBuf {
        self.0.join("state").join("locks")
    }
}

/// Makes a folder and those above it, for this user only.
///
/// # Errors
///
/// Fails as the operating system says.
pub fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Reads a file of ours, unless something else has taken its place: a pipe would hold up whoever opens it, and a device may
/// never end.
///
/// # Errors
///
/// Fails as the operating system says, and if it is no regular file or has more than `most` bytes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file of ours to read it, unless something else has taken its place: it does not wait.
///
/// # Errors
///
/// Fails as the operating system says, and if it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The longest file name that an encoded text becomes.
const LONGEST: usize = 150;

/// Turns any text into a file name, so that two texts never share one.
fn encode(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            name.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > LONGEST {
        // A dot cannot come out of the loop above, so that no short text gets such a name.
        name = format!("{}.{}", &name[..LONGEST - 65], crate::digest::sha256_hex(text.as_bytes()));
    }
    if name.is_empty() { "%".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_become_names_without_collisions() {
        let long = "x".repeat(300);
        let other = format!("{}y", "x".repeat(299));
        let texts = ["default", "a/b", "a%2fb", "..", "", "s'; touch p; '", "ä", &long, &other];
        let names: std::collections::BTreeSet<String> = texts.iter().map(|text| encode(text)).collect();
        assert_eq!(names.len(), texts.len());
        assert!(
            names.iter().all(|name| name.len() <= LONGEST && !name.contains('/') && name != ".."),
            "{names:?}"
        );
    }

    #[test]
    fn a_file_in_the_homes_place_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(Home::at(file.path().to_owned()), Err(HomeError::NotFolder(_))));
    }
}
