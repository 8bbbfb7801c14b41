//! Looks before anything is changed whether all steps of a patch can be done.
//!
//! What fails in the middle can be taken back, but for a moment others see half of it, and what they do with that is theirs. So what
//! can be known is found out first: what is protected, what may not be written, what is in the way, and what has changed since it was read.

use super::files::Need;
use super::paths::plain;
use super::steps::Step;
use super::store::{Expected, Fault, Store};

/// Looks whether all of `steps` can be done.
///
/// # Errors
///
/// One cannot, or two mean the same place.
pub(super) fn look<S: Store>(store: &S, steps: &[Step<S::Digest>]) -> Result<(), Fault> {
    let leaves = |step: &Step<S::Digest>, path: &str| match step {
        Step::Remove { path: gone, .. } | Step::Rename { from: gone, .. } => plain(gone) == plain(path),
        Step::Create { .. } | Step::Write { .. } => false,
    };
    let freed = |path: &str| steps.iter().any(|step| leaves(step, path));
    // Where there will be a file that is not there now, and what the patch calls it.
    let mut taken: Vec<(String, &str)> = Vec::new();
    for step in steps {
        match step {
            Step::Remove { path, digest } => {
                store.check(path, Need::Entry, Expected::Is(digest.clone()))?;
            }
            Step::Rename { from, to, digest } => {
                store.check(from, Need::Entry, Expected::Is(digest.clone()))?;
                let place = store.check(to, Need::Name { freed: freed(to) }, Expected::Anything)?;
                taken.push((place, to));
            }
            Step::Create { path, .. } => {
                let place = store.check(path, Need::Make { freed: freed(path) }, Expected::Anything)?;
                taken.push((place, path));
            }
            Step::Write { path, digest, .. } => {
                store.check(before(steps, path), Need::Write, Expected::Is(digest.clone()))?;
            }
        }
    }
    apart(&taken)
}

/// Returns what the file `path` is called before anything is done.
fn before<'a, D>(steps: &'a [Step<D>], path: &'a str) -> &'a str {
    let from = steps.iter().find_map(|step| match step {
        Step::Rename { from, to, .. } if to == path => Some(from.as_str()),
        _ => None,
    });
    from.unwrap_or(path)
}

/// Refuses two files of which one is the other, or is below it.
fn apart(taken: &[(String, &str)]) -> Result<(), Fault> {
    let below =
        |place: &str, other: &str| place.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    for (number, (place, path)) in taken.iter().enumerate() {
        for (other, called) in &taken[..number] {
            let said = if place == other {
                format!("`{called}` and `{path}` are the same place, `{place}`")
            } else if below(place, other) || below(other, place) {
                format!("`{called}` and `{path}` cannot both be made: one would be a file and a folder")
            } else {
                continue;
            };
            return Err(Fault { said, is_changed: false });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::memory_store::MemoryStore;
    use super::*;

    fn create(path: &str) -> Step<u64> {
        Step::Create { path: path.into(), bytes: Vec::new() }
    }

    #[test]
    fn two_files_in_one_place_are_refused() {
        let store = MemoryStore::with(&[("a", "one"), ("t", "t")]);
        store.link("link", "n");
        for (one, other, reason) in [
            ("n", "link", "are the same place, `/w/n`"),
            ("n", "n/below", "cannot both be made"),
            ("n/b/c", "n", "cannot both be made"),
        ] {
            let fault = look(&store, &[create(one), create(other)]).unwrap_err();
            assert!(fault.said.contains(reason), "{fault:?}");
        }
        look(&store, &[create("n"), create("nn"), create("m/n")]).unwrap();
    }

    #[test]
    fn a_name_that_becomes_free_is_no_obstacle_and_others_are() {
        let store = MemoryStore::with(&[("a", "one"), ("t", "t")]);
        let digest = MemoryStore::digest(b"one");
        let moved = |to: &str| Step::Rename { from: "a".into(), to: to.into(), digest };
        look(&store, &[moved("b"), create("./a")]).unwrap();
        assert!(look(&store, &[moved("t"), create("b")]).unwrap_err().said.contains("there already"));
        let gone = || Step::Remove { path: "t".into(), digest: MemoryStore::digest(b"t") };
        look(&store, &[gone(), moved("t")]).unwrap();
        let (bytes, old) = (b"two".to_vec(), b"one".to_vec());
        let write = Step::Write { path: "b".into(), bytes, old, digest };
        look(&store, &[moved("b"), write]).unwrap();
    }
}
