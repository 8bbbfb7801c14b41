//! Whether a plugin is still what was enabled: its files byte for byte, and no permission beyond those that were granted.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{LoadError, Step};
use super::load::{Discovered, Pin};
use super::record::Record;
use super::trust;
use crate::digest::sha256_of;

/// The other files of a plugin together are no larger than this.
const LONGEST: u64 = 1 << 30;

/// Checks what the manifest names besides the library, and what it asks for, against what was enabled.
///
/// # Errors
///
/// Fails with the first thing that differs.
pub(super) fn check(found: &Discovered, record: &Record) -> Result<(), LoadError> {
    let plugin = &found.manifest.name;
    let more = found.manifest.asked().beyond(&record.permissions);
    if !more.is_empty() {
        return Err(LoadError::wants_more(plugin, &more));
    }
    let refused = |reason: String| {
        let hint = format!("if you changed it yourself, run `hostel plugins enable {plugin}` again");
        Err(LoadError::new(plugin, Step::Checksum, reason, hint))
    };
    let now = files(found)?;
    if let Some(pin) = now.iter().find(|pin| !record.files.contains(pin)) {
        return refused(format!("`{}` is not the file that was enabled", pin.library));
    }
    // A file that is named no more would be pinned no more.
    match record.files.iter().find(|pin| !now.iter().any(|other| other.library == pin.library)) {
        Some(pin) => refused(format!("its manifest no longer names `{}`", pin.library)),
        None => Ok(()),
    }
}

/// Returns what the plugin's other files are now.
///
/// # Errors
///
/// Fails if one is missing, is not in the folder, or may be written to by others.
pub(super) fn files(found: &Discovered) -> Result<Vec<Pin>, LoadError> {
    found.manifest.files.iter().map(|name| pin(found, name)).collect()
}

fn pin(found: &Discovered, name: &str) -> Result<Pin, LoadError> {
    let plugin = &found.manifest.name;
    let path = inside(found, name)?;
    // The folders on the way too: who may write to one may exchange what is in it.
    let folders = path.ancestors().take_while(|above| above.starts_with(&found.folder));
    for path in folders {
        trust::check(plugin, path)?;
    }
    let (sha256, size) = hash(&path).map_err(|error| unreadable(plugin, name, &error))?;
    Ok(Pin { library: name.to_owned(), sha256, size })
}

fn unreadable(plugin: &str, name: &str, error: &io::Error) -> LoadError {
    let reason = format!("failed to read `{name}`, which its manifest names: {error}");
    LoadError::new(plugin, Step::File, reason, "get the plugin's folder again, whole")
}

/// Returns the real path of a file of the plugin's, which may be a link within the folder.
pub(super) fn inside(found: &Discovered, name: &str) -> Result<PathBuf, LoadError> {
    let plugin = &found.manifest.name;
    let path = found.folder.join(name);
    let real = path.canonicalize().map_err(|error| unreadable(plugin, name, &error))?;
    if real.starts_with(&found.folder) {
        return Ok(real);
    }
    let reason = format!("`{}` is a link that leads out of the plugin's folder", path.display());
    Err(LoadError::new(plugin, Step::File, reason, "put the file itself there"))
}

pub(super) fn hash(path: &Path) -> io::Result<(String, u64)> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(io::Error::other("it is not a regular file of at most 1 GiB"));
    }
    sha256_of(File::open(path)?.take(LONGEST), |_| Ok(()))
}

/// Refuses libraries of the plugin's own that the loader would load with it and that nobody has pinned. `needed` is what the
/// library names.
///
/// # Errors
///
/// Fails with the first one.
pub(super) fn check_libraries(found: &Discovered, needed: &[String]) -> Result<(), LoadError> {
    let pinned = |path: &Path| found.manifest.files.iter().any(|file| found.folder.join(file) == path);
    for name in needed {
        // By a path it may be anywhere; by a name it is the system's, or lies in the folder.
        let paths: Vec<PathBuf> =
            if name.contains('/') { vec![name.into()] } else { files_called(name, &found.folder, 0) };
        if let Some(path) = paths.iter().find(|path| !pinned(path)) {
            let reason = format!("it loads `{}` as well, which its manifest does not name", path.display());
            let hint =
                "its author should put it under `files` in `plugin.yaml`, by its path in the plugin's folder";
            return Err(LoadError::new(&found.manifest.name, Step::File, reason, hint));
        }
    }
    Ok(())
}

/// How deep libraries of a plugin's own are looked for.
const DEEPEST: usize = 3;

/// Finds the files of a name in a folder, a few levels deep.
fn files_called(name: &str, folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name() == *name {
            found.push(path);
        } else if depth < DEEPEST && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_called(name, &path, depth + 1));
        }
    }
    found
}

/// Returns what differs from what was enabled, a line each, for whoever is to decide.
#[must_use]
pub fn differences(found: &Discovered, record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let mut compare = |before: Option<&Pin>, now: Result<Pin, LoadError>| match (before, now) {
        (_, Err(error)) => lines.push(error.reason),
        (None, Ok(now)) => lines.push(format!("{}: new ({} bytes)", now.library, now.size)),
        (Some(before), Ok(now)) if *before != now => {
            let name = if before.library == now.library {
                String::new()
            } else {
                format!(", was `{}`", before.library)
            };
            lines.push(format!(
                "{}{name}: {} bytes, was {}; SHA-256 {}, was {}",
                now.library, now.size, before.size, now.sha256, before.sha256
            ));
        }
        (Some(_), Ok(_)) => {}
    };
    compare(Some(&record.pin), found.verify(None).map(|verified| verified.pin().clone()));
    for name in &found.manifest.files {
        compare(record.files.iter().find(|pin| pin.library == *name), pin(found, name));
    }
    let gone = record.files.iter().filter(|pin| !found.manifest.files.contains(&pin.library));
    lines.extend(gone.map(|pin| format!("{}: no longer named", pin.library)));
    let more = found.manifest.asked().beyond(&record.permissions);
    lines.extend(more.iter().map(|more| format!("now asks to {more}")));
    let less = record.permissions.beyond(&found.manifest.asked());
    lines.extend(less.iter().map(|less| format!("no longer asks to {less}")));
    lines
}
