//! Files in memory, for tests: with a folder of their own, and faults that can be set.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::store::{Expected, Held, Store};

/// Files by their absolute path. The session stands in `/w`.
#[derive(Default)]
pub(super) struct MemoryStore {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    links: RefCell<HashMap<String, String>>,
    /// How many changes of a file are let through, and how many are refused after that.
    faults: RefCell<HashMap<String, (u32, u32)>>,
    garbled: RefCell<Option<String>>,
    changes: Cell<u32>,
}

impl MemoryStore {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let store = Self::default();
        let files = files.iter().map(|(path, text)| (store.resolve(path), text.as_bytes().to_vec()));
        store.files.replace(files.collect());
        store
    }

    pub(super) fn digest(bytes: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn all(&self) -> Vec<(String, String)> {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        self.files.borrow().iter().map(|(path, bytes)| (path.clone(), text(bytes))).collect()
    }

    /// Makes a link.
    pub(super) fn link(&self, path: &str, to: &str) {
        let (path, to) = (self.resolve(path), self.resolve(to));
        self.links.borrow_mut().insert(path, to);
    }

    /// Refuses the next `times` changes of a file.
    pub(super) fn refuse(&self, path: &str, times: u32) {
        self.faults.borrow_mut().insert(self.resolve(path), (0, times));
    }

    /// Refuses all changes of a file after the first `good`.
    pub(super) fn refuse_after(&self, path: &str, good: u32) {
        self.faults.borrow_mut().insert(self.resolve(path), (good, u32::MAX));
    }

    /// Lets something else change a file whenever it is written.
    pub(super) fn garble(&self, path: &str) {
        self.garbled.replace(Some(self.resolve(path)));
    }

    /// How many changes there were.
    pub(super) fn changes(&self) -> u32 {
        self.changes.get()
    }

    fn resolve(&self, path: &str) -> String {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/w/{path}") };
        let path = super::paths::plain(&path);
        self.links.borrow().get(&path).cloned().unwrap_or(path)
    }

    fn change(&self, path: &str, expected: &Expected<u64>) -> Result<String, String> {
        let path = self.resolve(path);
        if let Some((good, bad)) = self.faults.borrow_mut().get_mut(&path) {
            if *good > 0 {
                *good -= 1;
            } else if *bad > 0 {
                *bad -= 1;
                return Err(format!("`{path}` cannot be changed: no room"));
            }
        }
        let files = self.files.borrow();
        let now = files.get(&path).map(|bytes| Self::digest(bytes));
        match (expected, now) {
            (Expected::Absent, Some(_)) => return Err(format!("`{path}` is there already")),
            (Expected::Is(wanted), now) if now != Some(*wanted) => {
                return Err(format!("`{path}` was changed in the meantime"));
            }
            _ => {}
        }
        self.changes.set(self.changes.get() + 1);
        Ok(path)
    }
}

impl Store for MemoryStore {
    type Digest = u64;

    fn load(&self, path: &str) -> Result<Option<Held<u64>>, String> {
        let path = self.resolve(path);
        if path.ends_with("/folder") {
            return Err(format!("`{path}` is a folder"));
        }
        let files = self.files.borrow();
        let held =
            |bytes: &Vec<u8>| Held { path: path.clone(), bytes: bytes.clone(), digest: Self::digest(bytes) };
        Ok(files.get(&path).map(held))
    }

    fn write(&self, path: &str, bytes: &[u8], expected: Expected<u64>) -> Result<Vec<String>, String> {
        let path = self.change(path, &expected)?;
        let garbled = self.garbled.borrow().as_ref() == Some(&path);
        let bytes = if garbled { b"garbled".to_vec() } else { bytes.to_vec() };
        self.files.borrow_mut().insert(path, bytes);
        Ok(Vec::new())
    }

    fn remove(&self, path: &str, expected: Expected<u64>) -> Result<(), String> {
        let path = self.change(path, &expected)?;
        self.files.borrow_mut().remove(&path).map(drop).ok_or_else(|| format!("`{path}` is not there"))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), String> {
        let to = self.change(to, &Expected::Absent)?;
        let from = self.change(from, &Expected::Anything)?;
        let bytes = self.files.borrow_mut().remove(&from).ok_or_else(|| format!("`{from}` is not there"))?;
        self.files.borrow_mut().insert(to, bytes);
        Ok(())
    }
}
