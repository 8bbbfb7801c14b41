//! Keeps the whole of an output of which only a part is shown.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::home::make_private;

/// The most that is kept of one output.
pub(super) const LARGEST: u64 = 1 << 30;

/// How long an output is kept.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A file that takes an output, for this user only.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    path: PathBuf,
    written: u64,
    /// Why it holds less than the whole.
    pub(super) cut: Option<String>,
}

impl Spill {
    /// Makes a file in `dir`, and removes those there that are older than a week.
    pub(super) fn new_in(dir: &Path) -> io::Result<Self> {
        make_private(dir)?;
        prune(dir);
        let (file, path) = tempfile::Builder::new().prefix("out-").suffix(".log").tempfile_in(dir)?.keep()?;
        Ok(Self { file, path, written: 0, cut: None })
    }

    /// Takes some bytes. A full disk ends it, and nothing else.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.cut.is_some() {
            return;
        }
        let room = usize::try_from(LARGEST - self.written).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        match self.file.write_all(part) {
            Ok(()) => self.written += part.len() as u64,
            Err(error) => {
                self.cut = Some(format!(
                    "`{}` holds only the beginning of the output: {error}",
                    self.path.display()
                ));
            }
        }
        if part.len() < bytes.len() && self.cut.is_none() {
            self.cut = Some(format!("`{}` holds only the first 1 GiB of the output", self.path.display()));
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn prune(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let old =
            modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > LIFETIME));
        if old {
            // Another process may have removed it just now.
            let _ = fs::remove_file(entry.path());
        }
    }
}
