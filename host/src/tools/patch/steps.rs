//! Does what a plan comes to, or nothing.
//!
//! No file system changes several files at once. So if a step fails, those before it are taken back, the last first,
//! and where that fails too it is said what stands.

use super::store::{Expected, Store};

/// What is done to one file.
pub(super) enum Step<D> {
    /// It is removed.
    Remove {
        path: String,
        /// What it holds.
        bytes: Vec<u8>,
        digest: D,
    },
    /// It gets another name.
    Rename { from: String, to: String },
    /// It is made.
    Create { path: String, bytes: Vec<u8> },
    /// It gets other contents.
    Write {
        path: String,
        bytes: Vec<u8>,
        /// What it holds before.
        old: Vec<u8>,
        digest: D,
    },
}

/// Does all steps, and looks whether the files then hold what they should. Returns the folders that were made.
///
/// # Errors
///
/// A step fails; what was done before it is taken back. Or a file reads back otherwise, which is left.
pub(super) fn carry_out<S: Store>(store: &S, steps: &[Step<S::Digest>]) -> Result<Vec<String>, String> {
    let mut dirs = Vec::new();
    for (done, step) in steps.iter().enumerate() {
        match step.carry_out(store) {
            Ok(made) => dirs.extend(made),
            Err(error) => return Err(error + &taken_back(store, &steps[..done], &dirs)),
        }
    }
    let wrong: Vec<String> = steps.iter().filter_map(|step| step.verify(store).err()).collect();
    if wrong.is_empty() { Ok(dirs) } else { Err(wrong.join("; ")) }
}

/// Takes back what was done, and says what came of that.
fn taken_back<S: Store>(store: &S, done: &[Step<S::Digest>], dirs: &[String]) -> String {
    if done.is_empty() {
        return String::new();
    }
    let failed = |step: &Step<S::Digest>| step.take_back(store).err();
    let mut stands: Vec<String> = done.iter().rev().filter_map(failed).collect();
    if !dirs.is_empty() {
        stands.push(format!("the folders that were made are still there: `{}`", dirs.join("`, `")));
    }
    if stands.is_empty() {
        return "; what was changed before it was put back".to_owned();
    }
    format!("; what was changed before it was put back, except: {}", stands.join("; "))
}

impl<D: Clone> Step<D> {
    fn carry_out<S: Store<Digest = D>>(&self, store: &S) -> Result<Vec<String>, String> {
        match self {
            Self::Remove { path, digest, .. } => {
                store.remove(path, Expected::Is(digest.clone())).map(|()| Vec::new())
            }
            Self::Rename { from, to } => store.rename(from, to).map(|()| Vec::new()),
            Self::Create { path, bytes } => store.write(path, bytes, Expected::Absent),
            Self::Write { path, bytes, digest, .. } => store.write(path, bytes, Expected::Is(digest.clone())),
        }
    }

    fn take_back<S: Store<Digest = D>>(&self, store: &S) -> Result<(), String> {
        match self {
            Self::Remove { path, bytes, .. } => store.write(path, bytes, Expected::Absent).map(drop),
            Self::Rename { from, to } => store.rename(to, from),
            Self::Create { path, .. } => store.remove(path, Expected::Anything),
            Self::Write { path, old, .. } => store.write(path, old, Expected::Anything).map(drop),
        }
    }

    fn verify<S: Store<Digest = D>>(&self, store: &S) -> Result<(), String> {
        let (Self::Create { path, bytes } | Self::Write { path, bytes, .. }) = self else { return Ok(()) };
        match store.load(path) {
            Ok(Some(held)) if held.bytes == *bytes => Ok(()),
            Ok(Some(_)) => Err(format!(
                "`{path}` was written, but does not hold what was written: something else changes it"
            )),
            Ok(None) => Err(format!("`{path}` was written, but is not there: something else removes it")),
            Err(error) => Err(format!("`{path}` was written, but cannot be read back: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_store::MemoryStore;
    use super::*;

    fn write(path: &str, old: &str, new: &str) -> Step<u64> {
        let (old, bytes) = (old.as_bytes().to_vec(), new.as_bytes().to_vec());
        Step::Write { path: path.into(), bytes, digest: MemoryStore::digest(&old), old }
    }

    fn steps() -> Vec<Step<u64>> {
        vec![
            Step::Rename { from: "/b".into(), to: "/c".into() },
            write("/a", "one", "two"),
            Step::Create { path: "/new".into(), bytes: b"n".to_vec() },
            Step::Remove { path: "/d".into(), bytes: b"dd".to_vec(), digest: MemoryStore::digest(b"dd") },
        ]
    }

    #[test]
    fn all_steps_are_done() {
        let store = MemoryStore::with(&[("/a", "one"), ("/b", "bb"), ("/d", "dd")]);
        carry_out(&store, &steps()).unwrap();
        assert_eq!(
            store.all(),
            [("/a", "two"), ("/c", "bb"), ("/new", "n")].map(|(p, t)| (p.into(), t.into()))
        );
    }

    #[test]
    fn after_a_failure_all_is_as_it_was() {
        for failing in ["/b", "/a", "/new", "/d"] {
            let store = MemoryStore::with(&[("/a", "one"), ("/b", "bb"), ("/d", "dd")]);
            store.refuse(failing, 1);
            let before = store.all();
            let error = carry_out(&store, &steps()).unwrap_err();
            assert!(error.contains(failing), "{error}");
            assert_eq!(error.contains("was put back"), failing != "/b", "{error}");
            assert_eq!(store.all(), before, "{failing}");
        }
    }

    #[test]
    fn what_cannot_be_put_back_is_said() {
        let store = MemoryStore::with(&[("/a", "one"), ("/b", "bb"), ("/d", "changed")]);
        store.refuse_after("/a", 1);
        let error = carry_out(&store, &steps()).unwrap_err();
        assert!(error.contains("`/d`") && error.contains("except: `/a`"), "{error}");
        assert_eq!(store.all()[0], ("/a".to_owned(), "two".to_owned()));
    }

    #[test]
    fn what_reads_back_otherwise_is_no_success() {
        let store = MemoryStore::with(&[("/a", "one")]);
        store.garble("/a");
        assert!(carry_out(&store, &[write("/a", "one", "two")]).unwrap_err().contains("does not hold"));
    }
}
