//! Reading a `.tar.gz`.
//!
//! The headers that describe the next entry (long names, pax records) are read here and not by the `tar` crate, which takes
//! them whole into memory however long they are.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::tree::{Flaw, MOST_ENTRIES, Tree, shown};

/// An entry has up to three headers: two long names, or pax records, and its own.
const MOST_HEADERS: usize = 3 * MOST_ENTRIES;

/// More than this is not a name, nor a reasonable set of records.
const LONGEST_HEADER: u64 = 64 * 1024;

/// Zeros that may follow the end: archives were once written in blocks for tapes.
const MOST_PADDING: u64 = 1 << 20;

/// What was said of the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
struct Described {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

/// Puts all entries into `tree`.
pub(super) fn unpack(file: &File, tree: &mut Tree) -> Result<(), Flaw> {
    let mut archive = Archive::new(MultiGzDecoder::new(file));
    let mut described = Described::default();
    for (index, entry) in archive.entries().map_err(|error| damaged(&error))?.raw(true).enumerate() {
        if index >= MOST_HEADERS {
            return Err(Flaw::Many);
        }
        let mut entry = entry.map_err(|error| damaged(&error))?;
        match entry.header().entry_type() {
            EntryType::GNULongName => once(&mut described.name, long_name(&mut entry)?)?,
            EntryType::GNULongLink => once(&mut described.target, long_name(&mut entry)?)?,
            EntryType::XHeader => described.read(&header(&mut entry)?)?,
            EntryType::XGlobalHeader => {
                // Git writes a comment into one. What says something of every entry is for nobody's good.
                let mut all = Described::default();
                all.read(&header(&mut entry)?)?;
                if all != Described::default() {
                    return Err(Flaw::Damaged("one header names all entries".into()));
                }
            }
            _ => member(tree, &mut entry, std::mem::take(&mut described))?,
        }
    }
    if described != Described::default() {
        return Err(Flaw::Damaged("the last entry is missing".into()));
    }
    // Only at its very end does the checksum of the whole come.
    let mut rest = archive.into_inner().take(MOST_PADDING + 1);
    let padding = io::copy(&mut rest, &mut io::sink()).map_err(|error| damaged(&error))?;
    if padding > MOST_PADDING {
        return Err(Flaw::Damaged("it goes on after its end".into()));
    }
    Ok(())
}

fn member<R: Read>(tree: &mut Tree, entry: &mut Entry<'_, R>, described: Described) -> Result<(), Flaw> {
    let header = entry.header();
    let kind = header.entry_type();
    let name = text(described.name.unwrap_or_else(|| header.path_bytes().into_owned()))?;
    let target = described.target.or_else(|| header.link_name_bytes().map(Cow::into_owned));
    let is_executable = header.mode().map_err(|error| damaged(&error))? & 0o111 != 0;
    let size = entry.size();
    let bad = |why| Err(Flaw::Entry(shown(&name), why));
    if described.size.is_some_and(|said| said != size) {
        return bad("has two different sizes");
    }
    match kind {
        EntryType::Regular if !name.ends_with('/') => tree.file(&name, is_executable, size, entry),
        EntryType::Regular | EntryType::Directory | EntryType::Symlink if size != 0 => {
            bad("has contents, which nothing of its kind has")
        }
        EntryType::Regular | EntryType::Directory => tree.folder(&name),
        EntryType::Symlink => tree.link(&name, &text(target.unwrap_or_default())?),
        EntryType::Link => bad("is a hard link"),
        EntryType::Char | EntryType::Block => bad("is a device"),
        EntryType::Fifo => bad("is a pipe"),
        _ => bad("is of a kind that no plugin needs"),
    }
}

impl Described {
    /// Takes over what pax records say. Times, owners and the like are nobody's business here.
    fn read(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        let odd = || Flaw::Damaged("a pax header cannot be understood".into());
        for (key, value) in records(bytes).ok_or_else(odd)? {
            match key {
                b"path" => once(&mut self.name, value.to_vec())?,
                b"linkpath" => once(&mut self.target, value.to_vec())?,
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    once(&mut self.size, size.ok_or_else(odd)?)?;
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(Flaw::Damaged("it holds a file with gaps, which is not supported".into()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

type Record<'bytes> = (&'bytes [u8], &'bytes [u8]);

/// Reads records of the form `LENGTH KEY=VALUE\n`, in which the length counts everything.
fn records(bytes: &[u8]) -> Option<Vec<Record<'_>>> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        found.push((&record[..equals], &record[equals + 1..]));
        rest = &rest[length..];
    }
    Some(found)
}

/// Reads the contents of an entry that describes another.
fn header<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Flaw> {
    if entry.size() > LONGEST_HEADER {
        return Err(Flaw::Damaged("a header is far too long".into()));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    Ok(bytes)
}

fn long_name<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Flaw> {
    let mut name = header(entry)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Flaw> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Flaw::Damaged("one entry is described twice".into())),
    }
}

fn text(name: Vec<u8>) -> Result<String, Flaw> {
    String::from_utf8(name).map_err(|error| {
        Flaw::Entry(shown(&String::from_utf8_lossy(error.as_bytes())), "has a name that is not valid UTF-8")
    })
}

fn damaged(error: &io::Error) -> Flaw {
    Flaw::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_records_are_counted_and_not_split_at_line_ends() {
        let text = b"14 path=a\nb=c\n8 x=y\0z\n" as &[u8];
        let expected: [Record; 2] = [(b"path", b"a\nb=c"), (b"x", b"y\0z")];
        assert_eq!(records(text).unwrap(), expected);
        assert!(records(b"").unwrap().is_empty());
        for bad in [b"x" as &[u8], b"5 a=b\n", b"99 a=b\n", b"0 a=b\n", b"6 a=b", b"6 ab=\nz"] {
            assert!(records(bad).is_none(), "{bad:?}");
        }
    }
}
