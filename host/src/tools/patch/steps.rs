//! Does what a plan comes to, or nothing.
//!
//! No file system changes several files at once. So all that can be known to fail is looked for before anything is changed
//! (`looked.rs`). If a step fails all the same, those before it are taken back, the last first, and where that fails too it is said
//! what stands. Taking back never writes over what somebody else has made of a file in between.

use super::looked::look;
use super::store::{Expected, Fault, Store};
use crate::random;

/// What is done to one file.
pub(super) enum Step<D> {
    /// It is removed.
    Remove {
        path: String,
        /// Its state before.
        digest: D,
    },
    /// It gets another name.
    Rename {
        from: String,
        to: String,
        /// Its state, before and after.
        digest: D,
    },
    /// It is made.
    Create { path: String, bytes: Vec<u8> },
    /// It gets other contents.
    Write {
        path: String,
        bytes: Vec<u8>,
        /// What it holds before.
        old: Vec<u8>,
        /// Its state before.
        digest: D,
    },
}

/// A step that was done, and what is needed to take it back.
struct Done<'a, D> {
    step: &'a Step<D>,
    /// The folders that were made for it, the highest first.
    made: Vec<String>,
    /// What a file that is to be removed is called until all is done.
    aside: Option<String>,
}

/// Does all steps.
///
/// # Errors
///
/// A step fails; what was done before it is taken back. `is_changed` says that somebody else has changed one of the files, and that all
/// is as it was.
pub(super) fn carry_out<S: Store>(store: &S, steps: &[Step<S::Digest>]) -> Result<(), Fault> {
    // One step is done or not done: looking would tell nothing more.
    if steps.len() > 1 {
        look(store, steps)?;
    }
    let mut done = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step.carry_out(store, number + 1 == steps.len()) {
            Ok(did) => done.push(did),
            Err(fault) => return Err(taken_back(store, &done, fault)),
        }
    }
    let stays = |done: &Done<S::Digest>| {
        let Step::Remove { path, digest } = done.step else { return None };
        let aside = done.aside.as_deref()?;
        let fault = store.remove(aside, Expected::Is(digest.clone())).err()?;
        Some(format!("`{path}` is still there as `{aside}`: {}", fault.said))
    };
    let stays: Vec<String> = done.iter().filter_map(stays).collect();
    if stays.is_empty() { Ok(()) } else { Err(Fault { said: stays.join("; "), is_changed: false }) }
}

/// Takes back what was done before `fault`, and says what came of that.
fn taken_back<S: Store>(store: &S, done: &[Done<S::Digest>], fault: Fault) -> Fault {
    if done.is_empty() {
        return fault;
    }
    let stands: Vec<String> = done.iter().rev().flat_map(|done| done.take_back(store)).collect();
    let Fault { mut said, is_changed } = fault;
    said += "; what was changed before it was put back";
    if stands.is_empty() {
        return Fault { said, is_changed };
    }
    Fault { said: format!("{said}, except: {}", stands.join("; ")), is_changed: false }
}

impl<D: Clone> Step<D> {
    /// Does the step. A file is only put aside to be removed if something may fail after that: `is_last` says that nothing can.
    fn carry_out<S: Store<Digest = D>>(&self, store: &S, is_last: bool) -> Result<Done<'_, D>, Fault> {
        let mut aside = None;
        let made = match self {
            Self::Remove { path, digest } if is_last => {
                store.remove(path, Expected::Is(digest.clone())).map(|()| Vec::new())
            }
            Self::Remove { path, digest } => {
                let name = aside.insert(beside(path)?);
                store.rename(path, name, Expected::Is(digest.clone()))
            }
            Self::Rename { from, to, digest } => store.rename(from, to, Expected::Is(digest.clone())),
            Self::Create { path, bytes } => store.write(path, bytes, Expected::Absent),
            Self::Write { path, bytes, digest, .. } => store.write(path, bytes, Expected::Is(digest.clone())),
        }?;
        Ok(Done { step: self, made, aside })
    }
}

impl<D: Clone> Done<'_, D> {
    /// Takes the step back. Returns what could not be.
    fn take_back<S: Store<Digest = D>>(&self, store: &S) -> Vec<String> {
        let back = match self.step {
            Step::Remove { path, digest } => self
                .aside
                .as_deref()
                .map_or(Ok(()), |aside| store.rename(aside, path, Expected::Is(digest.clone())).map(drop)),
            Step::Rename { from, to, digest } => {
                store.rename(to, from, Expected::Is(digest.clone())).map(drop)
            }
            Step::Create { path, bytes } => store.remove(path, Expected::Is(S::digest(bytes))),
            Step::Write { path, bytes, old, .. } => {
                store.write(path, old, Expected::Is(S::digest(bytes))).map(drop)
            }
        };
        let folders = self.made.iter().rev().map(|folder| {
            let kept =
                |fault: Fault| format!("the folder `{folder}` was made and is still there: {}", fault.said);
            store.unmake(folder).map_err(kept)
        });
        let back = back.map_err(|fault| fault.said);
        std::iter::once(back).chain(folders).filter_map(Result::err).collect()
    }
}

/// Returns a path beside `path` that nothing has.
fn beside(path: &str) -> Result<String, Fault> {
    let failed =
        |error| Fault { said: format!("failed to name a file beside `{path}`: {error}"), is_changed: false };
    let name = random::hex::<8>().map_err(failed)?;
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    Ok(format!("{folder}.hostel-{name}"))
}

#[cfg(test)]
mod tests {
    use super::super::memory_store::MemoryStore;
    use super::*;

    fn write(path: &str, old: &str, new: &str) -> Step<u64> {
        let (old, bytes) = (old.as_bytes().to_vec(), new.as_bytes().to_vec());
        Step::Write { path: path.into(), bytes, digest: MemoryStore::digest(&old), old }
    }

    fn remove(path: &str, holds: &str) -> Step<u64> {
        Step::Remove { path: path.into(), digest: MemoryStore::digest(holds.as_bytes()) }
    }

    fn steps() -> Vec<Step<u64>> {
        vec![
            remove("/e", "ee"),
            Step::Rename { from: "/b".into(), to: "/c".into(), digest: MemoryStore::digest(b"bb") },
            write("/a", "one", "two"),
            Step::Create { path: "/new".into(), bytes: b"n".to_vec() },
            remove("/d", "dd"),
        ]
    }

    fn store() -> MemoryStore {
        MemoryStore::with(&[("/a", "one"), ("/b", "bb"), ("/d", "dd"), ("/e", "ee")])
    }

    #[test]
    fn all_steps_are_done() {
        let store = store();
        carry_out(&store, &steps()).unwrap();
        assert_eq!(
            store.all(),
            [("/a", "two"), ("/c", "bb"), ("/new", "n")].map(|(p, t)| (p.into(), t.into()))
        );
    }

    #[test]
    fn after_a_failure_all_is_as_it_was() {
        for failing in ["/e", "/b", "/a", "/new", "/d"] {
            let store = store();
            store.refuse(failing, 1);
            let before = store.all();
            let fault = carry_out(&store, &steps()).unwrap_err();
            assert!(fault.said.contains(failing) && !fault.is_changed, "{fault:?}");
            assert_eq!(fault.said.contains("was put back"), failing != "/e", "{fault:?}");
            assert_eq!(store.all(), before, "{failing}");
        }
    }

    #[test]
    fn what_is_known_to_fail_is_found_before_anything_is_changed() {
        for forbidden in ["/e", "/b", "/c", "/a", "/new", "/d"] {
            let store = store();
            store.forbid(forbidden);
            let fault = carry_out(&store, &steps()).unwrap_err();
            assert!(fault.said.contains(forbidden) && store.changes() == 0, "{fault:?}");
        }
    }

    #[test]
    fn what_somebody_else_has_changed_is_left_alone_and_named() {
        let store = store();
        store.meddle("/new", "/a", "theirs");
        store.refuse("/new", 1);
        let fault = carry_out(&store, &steps()).unwrap_err();
        assert!(fault.said.contains("except: `/a` was changed"), "{fault:?}");
        let all = store.all();
        assert_eq!((all.len(), &all[0]), (4, &("/a".to_owned(), "theirs".to_owned())));
    }

    #[test]
    fn a_change_in_between_is_told_from_other_faults() {
        let store = store();
        store.meddle("/new", "/d", "theirs");
        let fault = carry_out(&store, &steps()).unwrap_err();
        assert!(fault.is_changed && fault.said.contains("`/d` was changed"), "{fault:?}");
        let holds = [("/a", "one"), ("/b", "bb"), ("/d", "theirs"), ("/e", "ee")];
        assert_eq!(store.all(), holds.map(|(path, text)| (path.into(), text.into())));
    }

    #[test]
    fn what_cannot_be_put_back_is_said() {
        let store = store();
        store.meddle("/new", "/d", "changed");
        store.refuse_after("/a", 1);
        let fault = carry_out(&store, &steps()).unwrap_err();
        assert!(fault.said.contains("`/d`") && fault.said.contains("except: `/a`"), "{fault:?}");
        assert!(!fault.is_changed);
        assert_eq!(store.all()[0], ("/a".to_owned(), "two".to_owned()));
    }

    #[test]
    fn what_is_put_aside_stays_in_its_folder() {
        for (path, folder) in [("a", ""), ("/a", "/"), ("~/d/a", "~/d/")] {
            let aside = beside(path).unwrap();
            assert!(aside.strip_prefix(folder).is_some_and(|name| name.starts_with(".hostel-")), "{aside}");
        }
    }
}
