//! From an archive to a folder.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::fetch::Fetched;
use super::source::ArchiveKind;
use super::tree::{Flaw, Tree};
use super::{tarball, zipfile};

/// Unpacks an archive into the folder `into`, which must be empty and nobody else's. Returns the folder that the plugin is in:
/// that one, or the only one in it.
pub(super) fn unpack(fetched: &Fetched, kind: ArchiveKind, into: PathBuf) -> Result<PathBuf, Flaw> {
    // A server that has no such file often sends a page that says so.
    let (mark, word) = match kind {
        ArchiveKind::TarGz => (*b"\x1f\x8b", "gzip-compressed tar"),
        ArchiveKind::Zip => (*b"PK", "zip"),
    };
    let mut start = [0; 2];
    let begins_well = fetched.file.read_exact_at(&mut start, 0).is_ok() && start == mark;
    if !begins_well {
        return Err(Flaw::NotArchive(word));
    }
    let mut tree = Tree::new(into, Some(fetched.size));
    match kind {
        ArchiveKind::TarGz => tarball::unpack(&fetched.file, &mut tree)?,
        ArchiveKind::Zip => zipfile::unpack(&fetched.file, fetched.size, &mut tree)?,
    }
    tree.finish()
}
