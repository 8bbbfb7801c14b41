//! Files in memory, for tests: with a folder of their own, and faults that can be set.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::files::Need;
use super::store::{Expected, Fault, Held, Store};

/// Files by their absolute path. The session stands in `/w`.
#[derive(Default)]
pub(super) struct MemoryStore {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    links: RefCell<HashMap<String, String>>,
    /// How many changes of a file are let through, and how many are refused after that.
    faults: RefCell<HashMap<String, (u32, u32)>>,
    /// What is not let through by a look before.
    forbidden: RefCell<Option<String>>,
    /// What somebody else does to a file as soon as another is written.
    meddled: RefCell<Option<[String; 3]>>,
    changes: Cell<u32>,
}

impl MemoryStore {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let store = Self::default();
        let files = files.iter().map(|(path, text)| (store.resolve(path), text.as_bytes().to_vec()));
        store.files.replace(files.collect());
        store
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

    /// Lets a look before find that nothing can be done with a file.
    pub(super) fn forbid(&self, path: &str) {
        self.forbidden.replace(Some(self.resolve(path)));
    }

    /// Lets somebody else write a file, once, when another is about to be changed.
    pub(super) fn meddle(&self, when: &str, path: &str, text: &str) {
        self.meddled.replace(Some([self.resolve(when), self.resolve(path), text.to_owned()]));
    }

    /// How many changes there were.
    pub(super) fn changes(&self) -> u32 {
        self.changes.get()
    }

    fn absolute(path: &str) -> String {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/w/{path}") };
        super::paths::plain(&path)
    }

    fn resolve(&self, path: &str) -> String {
        let path = Self::absolute(path);
        self.links.borrow().get(&path).cloned().unwrap_or(path)
    }

    fn change(&self, path: &str, expected: &Expected<u64>) -> Result<String, Fault> {
        let path = self.resolve(path);
        if self.meddled.borrow().as_ref().is_some_and(|[when, ..]| *when == path)
            && let Some([_, other, text]) = self.meddled.take()
        {
            self.files.borrow_mut().insert(other, text.into_bytes());
        }
        if let Some((good, bad)) = self.faults.borrow_mut().get_mut(&path) {
            if *good > 0 {
                *good -= 1;
            } else if *bad > 0 {
                *bad -= 1;
                return Err(fault(format!("`{path}` cannot be changed: no room"), false));
            }
        }
        self.expect(&path, expected)?;
        self.changes.set(self.changes.get() + 1);
        Ok(path)
    }

    fn expect(&self, path: &str, expected: &Expected<u64>) -> Result<(), Fault> {
        let files = self.files.borrow();
        let now = files.get(path).map(|bytes| Self::digest(bytes));
        match (expected, now) {
            (Expected::Absent, Some(_)) => Err(fault(format!("`{path}` is there already"), false)),
            (Expected::Is(wanted), now) if now != Some(*wanted) => {
                Err(fault(format!("`{path}` was changed in the meantime"), true))
            }
            _ => Ok(()),
        }
    }
}

fn fault(said: String, is_changed: bool) -> Fault {
    Fault { said, is_changed }
}

impl Store for MemoryStore {
    type Digest = u64;

    fn digest(bytes: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        hasher.finish()
    }

    fn load(&self, path: &str) -> Result<Option<Held<u64>>, String> {
        let called = Self::absolute(path);
        let path = self.resolve(path);
        if path.ends_with("/folder") {
            return Err(format!("`{path}` is a folder"));
        }
        let files = self.files.borrow();
        // Files that are called so are one.
        let which = path.contains("hard").then(|| "1:7".to_owned());
        let held = |bytes: &Vec<u8>| {
            let digest = Self::digest(bytes);
            Held { path: path.clone(), called, which, bytes: bytes.clone(), digest }
        };
        Ok(files.get(&path).map(held))
    }

    fn check(&self, path: &str, need: Need, expected: Expected<u64>) -> Result<String, Fault> {
        let path = self.resolve(path);
        if self.forbidden.borrow().as_ref() == Some(&path) {
            return Err(fault(format!("`{path}` is protected"), false));
        }
        let absent = matches!(need, Need::Make { freed: false } | Need::Name { freed: false });
        self.expect(&path, &if absent { Expected::Absent } else { expected })?;
        Ok(path)
    }

    fn write(&self, path: &str, bytes: &[u8], expected: Expected<u64>) -> Result<Vec<String>, Fault> {
        let path = self.change(path, &expected)?;
        self.files.borrow_mut().insert(path, bytes.to_vec());
        Ok(Vec::new())
    }

    fn remove(&self, path: &str, expected: Expected<u64>) -> Result<(), Fault> {
        let path = self.change(path, &expected)?;
        let removed = self.files.borrow_mut().remove(&path).map(drop);
        removed.ok_or_else(|| fault(format!("`{path}` is not there"), false))
    }

    fn rename(&self, from: &str, to: &str, expected: Expected<u64>) -> Result<Vec<String>, Fault> {
        let to = self.change(to, &Expected::Absent)?;
        let from = self.change(from, &expected)?;
        let bytes = self.files.borrow_mut().remove(&from);
        let bytes = bytes.ok_or_else(|| fault(format!("`{from}` is not there"), false))?;
        self.files.borrow_mut().insert(to, bytes);
        Ok(Vec::new())
    }

    fn unmake(&self, path: &str) -> Result<(), Fault> {
        Err(fault(format!("`{path}` was never made"), false))
    }
}
