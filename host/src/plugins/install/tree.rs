//! The rules for what a plugin's folder is made of, whatever it came as.
//!
//! Entries come one by one from an archive or a folder. Their names become paths, so they must be plain; files are created
//! and never opened again, so nothing can be written over; links are made last of all, so nothing can be written through
//! one; and all of it is counted.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;

/// A plugin has a handful of files; one with its documentation and data has some hundreds.
pub(super) const MOST_ENTRIES: usize = 10_000;

/// As the longest library that is ever opened.
const MOST_BYTES: u64 = 1 << 30;

/// Libraries shrink to a third or a fifth when they are packed, and text to a tenth.
const RATIO: u64 = 200;

/// A small archive may hold a long file of zeros for a good reason.
const HARMLESS: u64 = 16 << 20;

/// The longest path, in bytes.
const LONGEST_NAME: usize = 1024;

/// The longest path that a link may lead to, in bytes: the system's own limit.
pub(super) const LONGEST_LINK: u64 = 4096;

/// What is wrong with what a plugin's folder is to be made of.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// One entry is not allowed.
    #[error("the entry `{0}` {1}")]
    Entry(String, &'static str),
    /// There are too many.
    #[error("it has more than {MOST_ENTRIES} entries")]
    Many,
    /// It is too long.
    #[error("it takes more than 1 GiB when it is unpacked")]
    Large,
    /// It is made to fill the disk.
    #[error("it grows to more than {RATIO} times its size when it is unpacked")]
    Bomb,
    /// It is not what its name says.
    #[error("it is not a {0} archive, whatever its name says")]
    NotArchive(&'static str),
    /// It cannot be understood.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// Something in a folder cannot be read.
    #[error("failed to read `{0}`: {1}")]
    Read(PathBuf, io::Error),
    /// Something cannot be written.
    #[error("failed to write `{0}`: {1}")]
    Write(PathBuf, io::Error),
}

/// What has a name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A folder that something lies in.
    Implied,
    /// A folder that was named.
    Folder,
    /// A file or a link.
    Other,
}

/// A folder that is being made.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    names: BTreeMap<String, Kind>,
    /// Each link's name, and where it leads.
    links: Vec<(String, String)>,
    /// How many more bytes there may be.
    left: u64,
    /// Whether that is because the archive is small.
    is_small: bool,
}

impl Tree {
    /// Begins in the folder `root`, which must be empty and nobody else's. `packed` is the length of the archive that it comes
    /// from, if it comes from one.
    pub(super) fn new(root: PathBuf, packed: Option<u64>) -> Self {
        let bound = packed.map_or(MOST_BYTES, |packed| packed.saturating_mul(RATIO).max(HARMLESS));
        let (left, is_small) = (bound.min(MOST_BYTES), bound < MOST_BYTES);
        Self { root, names: BTreeMap::new(), links: Vec::new(), left, is_small }
    }

    /// Adds a folder.
    pub(super) fn folder(&mut self, name: &str) -> Result<(), Flaw> {
        let path = checked(name)?;
        if path.is_empty() {
            return Ok(());
        }
        self.make_parents(name, &path)?;
        match self.names.get(&path) {
            None => self.make_folder(path, Kind::Folder),
            Some(Kind::Implied) => {
                self.names.insert(path, Kind::Folder);
                Ok(())
            }
            Some(Kind::Folder | Kind::Other) => Err(twice(name)),
        }
    }

    /// Adds a file of exactly `size` bytes, which are read from `contents`. Of its mode only this is kept: whether it may be
    /// run.
    pub(super) fn file(
        &mut self,
        name: &str,
        is_executable: bool,
        size: u64,
        contents: &mut dyn Read,
    ) -> Result<(), Flaw> {
        let path = self.claim(name)?;
        let path = self.root.join(path);
        if size > self.left {
            return Err(if self.is_small { Flaw::Bomb } else { Flaw::Large });
        }
        let failed = |error| Flaw::Write(path.clone(), error);
        let mut file =
            File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let mut buffer = vec![0; 64 * 1024];
        let mut written: u64 = 0;
        loop {
            let count = match contents.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Flaw::Damaged(format!("`{}`: {error}", shown(name)))),
            };
            written += count as u64;
            if written > size {
                break;
            }
            file.write_all(&buffer[..count]).map_err(failed)?;
        }
        if written != size {
            return Err(Flaw::Entry(shown(name), "is not as long as it should be"));
        }
        let mode = if is_executable { 0o755 } else { 0o644 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        self.left -= size;
        Ok(())
    }

    /// Adds a link. Where it leads is looked at when everything is there.
    pub(super) fn link(&mut self, name: &str, target: &str) -> Result<(), Flaw> {
        if target.len() as u64 > LONGEST_LINK {
            return Err(Flaw::Entry(shown(name), "is a link that leads too far"));
        }
        let path = self.claim(name)?;
        self.links.push((path, target.to_owned()));
        Ok(())
    }

    /// Makes the links, and returns the folder: where everything lies in one folder, that one.
    pub(super) fn finish(self) -> Result<PathBuf, Flaw> {
        let top = self.top();
        let root = top.as_ref().map_or_else(|| self.root.clone(), |top| self.root.join(top));
        // Everything lies below `top`, if there is one.
        let skipped = top.map_or(0, |top| top.len() + 1);
        let bad = |path: &str, why| Flaw::Entry(shown(path), why);
        for (path, target) in &self.links {
            if !stays_inside(&path[skipped..], target) {
                return Err(bad(path, "is a link that leads out of the plugin's folder"));
            }
            let at = self.root.join(path);
            symlink(target, &at).map_err(|error| Flaw::Write(at, error))?;
        }
        let real = root.canonicalize().map_err(|error| Flaw::Write(root.clone(), error))?;
        for (path, _) in &self.links {
            // A link through another one may lead elsewhere than its text says.
            match self.root.join(path).canonicalize() {
                Ok(target) if target.starts_with(&real) => {}
                Ok(_) => return Err(bad(path, "is a link that leads out of the plugin's folder")),
                Err(_) => return Err(bad(path, "is a link that leads nowhere")),
            }
        }
        Ok(root)
    }

    /// Returns the one folder that everything lies in, if there is one.
    fn top(&self) -> Option<String> {
        let mut tops = self.names.iter().filter(|(path, _)| !path.contains('/'));
        match (tops.next(), tops.next()) {
            (Some((name, Kind::Implied | Kind::Folder)), None) => Some(name.clone()),
            _ => None,
        }
    }

    /// Takes a name for a file or a link, and makes the folders that it lies in.
    fn claim(&mut self, name: &str) -> Result<String, Flaw> {
        let path = checked(name)?;
        if path.is_empty() {
            return Err(Flaw::Entry(shown(name), "has no name"));
        }
        self.make_parents(name, &path)?;
        if self.names.contains_key(&path) {
            return Err(twice(name));
        }
        self.add(path.clone(), Kind::Other)?;
        Ok(path)
    }

    fn make_parents(&mut self, name: &str, path: &str) -> Result<(), Flaw> {
        for (end, _) in path.match_indices('/') {
            match self.names.get(&path[..end]) {
                None => self.make_folder(path[..end].to_owned(), Kind::Implied)?,
                Some(Kind::Implied | Kind::Folder) => {}
                Some(Kind::Other) => return Err(Flaw::Entry(shown(name), "lies below a file or a link")),
            }
        }
        Ok(())
    }

    fn make_folder(&mut self, path: String, kind: Kind) -> Result<(), Flaw> {
        let at = self.root.join(&path);
        self.add(path, kind)?;
        let made = fs::create_dir(&at).and_then(|()| fs::set_permissions(&at, Permissions::from_mode(0o755)));
        made.map_err(|error| Flaw::Write(at, error))
    }

    fn add(&mut self, path: String, kind: Kind) -> Result<(), Flaw> {
        if self.names.len() >= MOST_ENTRIES {
            return Err(Flaw::Many);
        }
        self.names.insert(path, kind);
        Ok(())
    }
}

/// Returns a name as it may be shown.
pub(super) fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(100).collect::<String>().escape_debug().to_string();
    if name.chars().count() > 100 {
        short.push('…');
    }
    short
}

fn twice(name: &str) -> Flaw {
    Flaw::Entry(shown(name), "is there twice")
}

/// Returns the path that a name stands for, which leads nowhere but down.
fn checked(name: &str) -> Result<String, Flaw> {
    let bad = |why| Err(Flaw::Entry(shown(name), why));
    if name.len() > LONGEST_NAME {
        return bad("has too long a name");
    }
    if name.starts_with('/') {
        return bad("has an absolute path");
    }
    if name.contains('\\') {
        return bad("has a backslash in its name");
    }
    if name.chars().any(char::is_control) {
        return bad("has a control character in its name");
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return bad("leads out of the plugin's folder"),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Returns whether the text of a link, taken literally, leads to a place below the folder that the link's path starts in.
fn stays_inside(link: &str, target: &str) -> bool {
    let is_odd = target.contains('\\') || target.chars().any(char::is_control);
    if target.is_empty() || target.starts_with('/') || is_odd {
        return false;
    }
    let mut depth = link.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}
