//! Reading a folder: to copy it, by the same rules as an archive, and to compare two.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::tree::{Flaw, MOST_ENTRIES, Tree, shown};

/// What a version control keeps beside the files is no part of a plugin.
const SKIPPED: &str = ".git";

/// What lies in a folder.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    Folder,
    File { is_executable: bool, size: u64 },
    Link(String),
}

/// Puts everything in the folder `from` into `tree`.
pub(super) fn copy(from: &Path, tree: &mut Tree) -> Result<(), Flaw> {
    // In this order a folder comes before what lies in it.
    for (name, item) in walk(from)? {
        match item {
            Item::Folder => tree.folder(&name)?,
            Item::Link(target) => tree.link(&name, &target)?,
            Item::File { is_executable, size } => {
                let path = from.join(&name);
                let mut file = open(&path).map_err(|error| Flaw::Read(path, error))?;
                tree.file(&name, is_executable, size, &mut file)?;
            }
        }
    }
    Ok(())
}

/// Returns whether two folders hold the same. What cannot be read is not the same.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    let (Ok(left), Ok(right)) = (walk(one), walk(other)) else { return false };
    let is_same = |name: &String| same_bytes(&one.join(name), &other.join(name)).unwrap_or(false);
    left == right
        && left.iter().filter(|(_, item)| matches!(item, Item::File { .. })).all(|(name, _)| is_same(name))
}

/// Lists everything in a folder, without following a link.
fn walk(folder: &Path) -> Result<BTreeMap<String, Item>, Flaw> {
    let mut found = BTreeMap::new();
    let mut unread = vec![String::new()];
    while let Some(parent) = unread.pop() {
        let at = folder.join(&parent);
        let failed = |error| Flaw::Read(at.clone(), error);
        for entry in fs::read_dir(&at).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = text(entry.file_name())?;
            if parent.is_empty() && name == SKIPPED {
                continue;
            }
            let name = if parent.is_empty() { name } else { format!("{parent}/{name}") };
            let meta = entry.metadata().map_err(failed)?;
            let item = if meta.is_dir() {
                unread.push(name.clone());
                Item::Folder
            } else if meta.is_file() {
                Item::File { is_executable: meta.mode() & 0o111 != 0, size: meta.len() }
            } else if meta.is_symlink() {
                Item::Link(text(fs::read_link(entry.path()).map_err(failed)?.into_os_string())?)
            } else {
                return Err(Flaw::Entry(shown(&name), "is a device, a pipe or a socket"));
            };
            found.insert(name, item);
            if found.len() > MOST_ENTRIES {
                return Err(Flaw::Many);
            }
        }
    }
    Ok(found)
}

fn text(name: std::ffi::OsString) -> Result<String, Flaw> {
    name.into_string()
        .map_err(|name| Flaw::Entry(shown(&name.to_string_lossy()), "has a name that is not valid UTF-8"))
}

/// Opens a file that was a plain one when it was listed, and must be one still.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it was exchanged while it was being read"));
    }
    Ok(file)
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(open(one)?), BufReader::new(open(other)?));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let count = left.len().min(right.len());
        if left[..count] != right[..count] || (count == 0 && left.len() != right.len()) {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
        one.consume(count);
        other.consume(count);
    }
}
