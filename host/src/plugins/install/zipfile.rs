//! Reading a `.zip`, strictly.
//!
//! A zip archive says everything twice, in a directory at its end and before each entry, and readers that believe different
//! halves see different archives. So only plain ones are read: one directory that ends where the end record begins, as many
//! entries as it says, each described the same both times, none lying across another. Archives that are split, encrypted, or
//! of more than 4 GiB are no plugins.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use flate2::CrcReader;
use flate2::read::DeflateDecoder;

use super::tree::{Flaw, LONGEST_LINK, MOST_ENTRIES, Tree, shown};

/// Length of the record at the very end, without the comment.
const END: usize = 22;
const END_MARK: &[u8] = b"PK\x05\x06";

/// Length of an entry of the directory, without the name and what follows it.
const LISTED: usize = 46;
const LISTED_MARK: &[u8] = b"PK\x01\x02";

/// Length of the header before an entry's bytes, without the name and what follows it.
const LOCAL: usize = 30;
const LOCAL_MARK: &[u8] = b"PK\x03\x04";

/// The longest directory: so many entries with names of 1 KiB and some extras.
const LONGEST_DIRECTORY: u64 = 16 << 20;

/// Bits of an entry's flags that say that it is encrypted, in one way or another.
const ENCRYPTED: u64 = 0x2041;

/// The number of the system on which a mode is a Unix mode.
const UNIX: u64 = 3;

/// The two ways in which entries are packed.
const STORED: u64 = 0;
const DEFLATED: u64 = 8;

/// The part of a Unix mode that says what sort of file it is, and the sorts.
const SORT: u64 = 0o170_000;
const FILE: u64 = 0o100_000;
const FOLDER: u64 = 0o040_000;
const LINK: u64 = 0o120_000;

/// An entry, as the directory describes it.
#[derive(Debug)]
struct Entry {
    name: String,
    /// The Unix mode; 0 where it was made elsewhere.
    mode: u64,
    method: u64,
    crc: u64,
    packed: u64,
    size: u64,
    /// Where its header begins.
    header: u64,
    /// Where its bytes begin.
    start: u64,
}

/// Puts all entries into `tree`.
pub(super) fn unpack(file: &File, length: u64, tree: &mut Tree) -> Result<(), Flaw> {
    let (directory, at, count) = directory(file, length)?;
    let mut entries = list(&directory, count)?;
    for entry in &mut entries {
        locate(file, at, entry)?;
    }
    let mut ranges: Vec<(u64, u64)> =
        entries.iter().map(|entry| (entry.header, entry.start + entry.packed)).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(damaged("entries lie across one another"));
    }
    entries.iter().try_for_each(|entry| extract(file, entry, tree))
}

/// Finds the directory. Returns its bytes, where they begin, and how many entries there are.
fn directory(file: &File, length: u64) -> Result<(Vec<u8>, u64, u64), Flaw> {
    let window = length.min(END as u64 + u64::from(u16::MAX));
    let tail = read_at(file, length - window, window)?;
    let whole = |at: &usize| {
        let rest = &tail[*at..];
        rest.starts_with(END_MARK) && number::<2>(rest, 20) == Some((rest.len() - END) as u64)
    };
    let last = tail.len().checked_sub(END).ok_or_else(|| damaged("it is too short"))?;
    let at = (0..=last).rev().find(whole).ok_or_else(|| damaged("it has no end, or something follows it"))?;
    let field = |offset: usize| number::<2>(&tail[at..], offset);
    let (count, here) = (field(10), field(8));
    if (field(4), field(6)) != (Some(0), Some(0)) || count != here {
        return Err(damaged("it is split into parts"));
    }
    let count = count.unwrap_or_default();
    if count > MOST_ENTRIES as u64 {
        return Err(Flaw::Many);
    }
    let (size, start) = (number::<4>(&tail[at..], 12), number::<4>(&tail[at..], 16));
    let (size, start) = (size.unwrap_or_default(), start.unwrap_or_default());
    if size > LONGEST_DIRECTORY || start + size != length - window + at as u64 {
        return Err(damaged("its directory is not where it should be"));
    }
    Ok((read_at(file, start, size)?, start, count))
}

/// Reads the directory.
fn list(directory: &[u8], count: u64) -> Result<Vec<Entry>, Flaw> {
    let mut entries = Vec::new();
    let mut rest = directory;
    for _ in 0..count {
        let (entry, length) = listed(rest).ok_or_else(|| damaged("its directory is cut short"))??;
        rest = &rest[length..];
        entries.push(entry);
    }
    if !rest.is_empty() {
        return Err(damaged("its directory has more entries than it says"));
    }
    Ok(entries)
}

/// Reads one entry of the directory. Returns it and its length there; none if the bytes do not suffice.
fn listed(bytes: &[u8]) -> Option<Result<(Entry, usize), Flaw>> {
    let two = |at| number::<2>(bytes, at);
    let four = |at| number::<4>(bytes, at);
    let names = usize::try_from(two(28)?).ok()?;
    let more = usize::try_from(two(30)? + two(32)?).ok()?;
    let length = LISTED + names + more;
    let name = bytes.get(LISTED..LISTED + names)?;
    if !bytes.starts_with(LISTED_MARK) || bytes.len() < length {
        return None;
    }
    let shown = || shown(&String::from_utf8_lossy(name));
    let bad = |why| Some(Err(Flaw::Entry(shown(), why)));
    if two(8)? & ENCRYPTED != 0 {
        return bad("is encrypted");
    }
    let Ok(text) = std::str::from_utf8(name) else { return bad("has a name that is not valid UTF-8") };
    let entry = Entry {
        name: text.to_owned(),
        mode: if two(4)? >> 8 == UNIX { four(38)? >> 16 } else { 0 },
        method: two(10)?,
        crc: four(16)?,
        packed: four(20)?,
        size: four(24)?,
        header: four(42)?,
        start: 0,
    };
    if [entry.packed, entry.size, entry.header].contains(&u64::from(u32::MAX)) {
        return bad("is longer than 4 GiB, or says so");
    }
    if !matches!(entry.method, STORED | DEFLATED) {
        return bad("is packed in a way other than `deflate`");
    }
    if entry.method == STORED && entry.packed != entry.size {
        return bad("is not as long as it should be");
    }
    Some(Ok((entry, length)))
}

/// Finds an entry's bytes, which must end before the directory at `end`, and compares what stands there with what the directory
/// says.
fn locate(file: &File, end: u64, entry: &mut Entry) -> Result<(), Flaw> {
    let bad = |entry: &Entry, why| Err(Flaw::Entry(shown(&entry.name), why));
    let header = read_at(file, entry.header, LOCAL as u64)?;
    let two = |at| number::<2>(&header, at).unwrap_or_default();
    let name = read_at(file, entry.header + LOCAL as u64, two(26))?;
    let is_same = header.starts_with(LOCAL_MARK)
        && name == entry.name.as_bytes()
        && two(8) == entry.method
        && two(6) & ENCRYPTED == 0;
    if !is_same {
        return bad(entry, "is not what the directory says");
    }
    entry.start = entry.header + LOCAL as u64 + two(26) + two(28);
    if entry.start + entry.packed > end {
        return bad(entry, "does not end before the directory");
    }
    Ok(())
}

fn extract(file: &File, entry: &Entry, tree: &mut Tree) -> Result<(), Flaw> {
    let name = &entry.name;
    let bad = |why| Err(Flaw::Entry(shown(name), why));
    let section = Section { file, at: entry.start, end: entry.start + entry.packed };
    let contents: Box<dyn Read + '_> =
        if entry.method == STORED { Box::new(section) } else { Box::new(DeflateDecoder::new(section)) };
    let mut contents = CrcReader::new(contents);
    let sort = entry.mode & SORT;
    if name.ends_with('/') || sort == FOLDER {
        if entry.size != 0 {
            return bad("has contents, which nothing of its kind has");
        }
        return tree.folder(name);
    }
    match sort {
        0 | FILE => tree.file(name, entry.mode & 0o111 != 0, entry.size, &mut contents)?,
        LINK => {
            if entry.size > LONGEST_LINK {
                return bad("is a link that leads too far");
            }
            let mut target = Vec::new();
            let read = contents.by_ref().take(LONGEST_LINK).read_to_end(&mut target);
            read.map_err(|error| Flaw::Damaged(format!("`{}`: {error}", shown(name))))?;
            let Ok(target) = String::from_utf8(target) else {
                return bad("is a link to a name that is not valid UTF-8");
            };
            tree.link(name, &target)?;
        }
        _ => return bad("is a device, a pipe or a socket"),
    }
    if u64::from(contents.crc().sum()) != entry.crc {
        return bad("is damaged: its checksum does not match");
    }
    Ok(())
}

/// A part of the file.
struct Section<'file> {
    file: &'file File,
    at: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(into.len());
        let count = self.file.read_at(&mut into[..left], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn read_at(file: &File, at: u64, length: u64) -> Result<Vec<u8>, Flaw> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| damaged("it is too long"))?];
    file.read_exact_at(&mut bytes, at).map_err(|_| damaged("it is cut short"))?;
    Ok(bytes)
}

/// Reads a number of `N` bytes, the lowest first.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + N)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
}

fn damaged(why: &str) -> Flaw {
    Flaw::Damaged(why.to_owned())
}
