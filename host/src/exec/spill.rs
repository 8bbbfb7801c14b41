//! Keeps the whole of an output of which only a part is shown.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::outputs::Outputs;
use crate::home::make_private;

/// A file that takes an output, for this user only.
#[derive(Debug)]
pub(super) struct Spill {
    file: File,
    path: PathBuf,
    written: u64,
    most: u64,
    /// Why it holds less than the whole.
    pub(super) cut: Option<String>,
}

impl Spill {
    /// Makes a file, and removes those that are too old, and of the others the oldest where they take up too much.
    pub(super) fn new_in(outputs: &Outputs) -> io::Result<Self> {
        make_private(&outputs.dir)?;
        prune(outputs);
        let (file, path) = tempfile::Builder::new()
            .prefix(&outputs.prefix())
            .suffix(".log")
            .tempfile_in(&outputs.dir)?
            .keep()?;
        Ok(Self { file, path, written: 0, most: outputs.each, cut: None })
    }

    /// Takes some bytes. A full disk ends it, and nothing else.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.cut.is_some() {
            return;
        }
        let room = usize::try_from(self.most - self.written).unwrap_or(usize::MAX);
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
            let (path, most) = (self.path.display(), self.most);
            self.cut = Some(format!(
                "`{path}` holds only the first {most} bytes of the output (`outputs.max_bytes`)"
            ));
        }
    }

    /// How many bytes the file holds.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn prune(outputs: &Outputs) {
    let Ok(entries) = fs::read_dir(&outputs.dir) else { return };
    let kept = entries.flatten().filter_map(|entry| {
        let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((meta.modified().ok()?, meta.len(), entry.path()))
    });
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = kept.collect();
    kept.sort_unstable_by(|one, other| other.cmp(one));
    let now = SystemTime::now();
    let mut total = 0_u64;
    for (modified, size, path) in kept {
        total = total.saturating_add(size);
        let old = now.duration_since(modified).is_ok_and(|age| age > outputs.age);
        if old || total > outputs.total {
            // Another process may have removed it just now.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_go_where_all_take_up_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let outputs =
            Outputs { total: 25, age: Duration::from_secs(100), ..Outputs::in_dir(dir.path().into()) };
        let now = SystemTime::now();
        for (name, age) in [("a", 40), ("b", 10), ("c", 20), ("d", 200)] {
            let file = File::create(dir.path().join(name)).unwrap();
            (&file).write_all(b"0123456789").unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        let spill = Spill::new_in(&outputs).unwrap();
        let left = |name: &str| dir.path().join(name).exists();
        assert_eq!(["a", "b", "c", "d"].map(left), [false, true, true, false]);
        assert!(spill.path().exists());
    }

    #[test]
    fn one_that_is_too_large_is_cut_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs { each: 15, ..Outputs::in_dir(dir.path().into()) };
        let mut spill = Spill::new_in(&outputs).unwrap();
        spill.write(b"0123456789");
        assert_eq!(spill.cut, None);
        spill.write(b"0123456789");
        spill.write(b"x");
        assert_eq!(fs::read(spill.path()).unwrap(), b"012345678901234");
        assert!(spill.cut.unwrap().contains("the first 15 bytes"));
    }
}
