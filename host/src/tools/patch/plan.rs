//! Works out what a patch of several files comes to, before anything is written.
//!
//! Every section is applied in memory, one after the other, to the files as they were loaded (`desk.rs`). So a patch
//! of which any part does not fit changes nothing. What is then done is the difference between how the files were and
//! how they are to be.

use super::desk::{Desk, File, Origin};
use super::diff::{Side, unified};
use super::paths::plain;
use super::section::Section;
use super::steps::Step;
use super::store::Store;
use crate::tools::Failure;

/// What a patch comes to.
pub(super) struct Plan<D> {
    /// What is to be done, in order.
    pub(super) steps: Vec<Step<D>>,
    /// What changes, as a unified diff.
    pub(super) diff: String,
    pub(super) modified: Vec<String>,
    pub(super) created: Vec<String>,
    pub(super) deleted: Vec<String>,
    /// What the caller should look at.
    pub(super) warnings: Vec<String>,
}

/// Why a patch is not applied.
#[derive(Debug)]
pub(super) struct Problem {
    /// The file.
    pub(super) path: String,
    pub(super) failure: Failure,
    /// The lines that may have been meant.
    pub(super) near: Option<String>,
}

impl Problem {
    pub(super) fn new(section: &Section, message: &str, hint: &str) -> Self {
        let message = format!("{message} (line {} of `patch`)", section.line);
        Self { path: section.path.clone(), failure: Failure::new(message).with_hint(hint), near: None }
    }
}

/// Works out what `sections`, which were read from `patch`, come to.
///
/// # Errors
///
/// Any of them does not fit.
pub(super) fn plan<S: Store>(
    store: &S,
    sections: &[Section],
    patch: &str,
) -> Result<Plan<S::Digest>, Problem> {
    let mut desk = Desk::new(store, patch);
    for section in sections {
        desk.apply(section)?;
    }
    finish(desk, &sections[0])
}

/// Works out the difference between before and after.
fn finish<S: Store>(desk: Desk<S>, first: &Section) -> Result<Plan<S::Digest>, Problem> {
    let mut plan = Plan {
        steps: Vec::new(),
        diff: String::new(),
        modified: Vec::new(),
        created: Vec::new(),
        deleted: Vec::new(),
        warnings: desk.warnings,
    };
    let (mut removals, mut renames, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for File { origin, path, now, .. } in desk.files {
        let before = origin.as_ref().map(|origin| Side { path: &origin.path, bytes: &origin.bytes });
        plan.diff +=
            &unified(before.as_ref(), now.as_deref().map(|bytes| Side { path: &path, bytes }).as_ref());
        match (origin, now) {
            (None, None) => {}
            (None, Some(bytes)) => {
                plan.created.push(path.clone());
                writes.push(Step::Create { path, bytes });
            }
            (Some(Origin { path, digest, .. }), None) => {
                plan.deleted.push(path.clone());
                removals.push(Step::Remove { path, digest });
            }
            (Some(Origin { path: from, bytes: old, digest, .. }), Some(bytes)) => {
                let moved = plain(&from) != plain(&path);
                if moved {
                    plan.created.push(path.clone());
                    plan.deleted.push(from.clone());
                    renames.push((from, path.clone(), digest.clone()));
                } else if bytes != old {
                    plan.modified.push(path.clone());
                }
                if bytes != old {
                    writes.push(Step::Write { path, bytes, old, digest });
                }
            }
        }
    }
    // What is removed last needs not be put aside, so that comes at the end, unless a name must be free.
    let frees = |step: &Step<S::Digest>| matches!(step, Step::Remove { path, .. } if renames.iter().any(|(_, to, _)| plain(to) == plain(path)));
    let (freeing, removals): (Vec<_>, Vec<_>) = removals.into_iter().partition(frees);
    plan.steps.extend(freeing);
    let Some(renames) = in_order(renames) else {
        return Err(Problem::new(
            first,
            "the files of the patch change names in a circle",
            "use two patches",
        ));
    };
    plan.steps.extend(renames.into_iter().map(|(from, to, digest)| Step::Rename { from, to, digest }));
    plan.steps.extend(writes);
    plan.steps.extend(removals);
    if plan.steps.is_empty() {
        return Err(Problem::new(first, "the patch would leave everything as it is", "read the files again"));
    }
    Ok(plan)
}

/// A file's name, the one that it is to have, and its state.
type Renamed<D> = (String, String, D);

/// Orders renames so that each name is free when it is taken. None if that cannot be.
fn in_order<D>(mut renames: Vec<Renamed<D>>) -> Option<Vec<Renamed<D>>> {
    let mut ordered = Vec::new();
    while !renames.is_empty() {
        let is_free = |(_, to, _): &Renamed<D>| !renames.iter().any(|(from, ..)| plain(from) == plain(to));
        let next = renames.iter().position(is_free)?;
        ordered.push(renames.remove(next));
    }
    Some(ordered)
}

#[cfg(test)]
mod tests {
    use super::super::memory_store::MemoryStore;
    use super::super::steps::carry_out;
    use super::super::v4a::parse;
    use super::*;

    fn store() -> MemoryStore {
        MemoryStore::with(&[("a", "one\ntwo\n"), ("b", "x\r\ny"), ("c", "c\n")])
    }

    fn planned(store: &MemoryStore, patch: &str) -> Result<Plan<u64>, Problem> {
        plan(store, &parse(patch).unwrap(), patch)
    }

    /// Applies a patch, and returns all files after it.
    fn applied(patch: &str) -> Vec<(String, String)> {
        let store = store();
        let plan = planned(&store, patch).unwrap_or_else(|problem| panic!("{problem:?}"));
        carry_out(&store, &plan.steps).unwrap();
        store
            .all()
            .into_iter()
            .map(|(path, text)| (path.trim_start_matches("/w/").to_owned(), text))
            .collect()
    }

    fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    /// Requires that a patch is refused with nothing changed.
    fn refused(patch: &str, reason: &str) {
        let store = store();
        let Err(problem) = planned(&store, patch) else { panic!("{patch} fits") };
        assert!(problem.failure.message.contains(reason), "{problem:?}");
        assert_eq!(store.changes(), 0);
    }

    const A: &str = "*** Update File: a\n@@\n-one\n+ONE\n";

    #[test]
    fn files_are_changed_made_moved_and_removed_together() {
        let patch = format!(
            "{A}*** Add File: d/e\n+new\n*** Delete File: c\n*** Update File: b\n*** Move to: f\n@@\n-y\n+z\n"
        );
        assert_eq!(applied(&patch), files(&[("a", "ONE\ntwo\n"), ("d/e", "new\n"), ("f", "x\r\nz")]));
        let plan = planned(&store(), &patch).unwrap();
        assert_eq!(
            (plan.modified, plan.created, plan.deleted),
            (
                vec!["a".to_owned()],
                vec!["d/e".to_owned(), "f".to_owned()],
                vec!["c".to_owned(), "b".to_owned()],
            )
        );
        assert!(
            plan.diff.contains("--- a/a\n+++ b/a\n") && plan.diff.contains("rename from b\nrename to f\n")
        );
        assert!(plan.diff.contains("--- a/c\n+++ /dev/null\n"), "{}", plan.diff);
    }

    #[test]
    fn sections_follow_one_another() {
        let two = format!("{A}*** Update File: ./a\n@@\n-ONE\n+1\n*** Update File: /w/a\n@@\n-two\n+2\n");
        assert_eq!(applied(&two)[0], ("a".to_owned(), "1\n2\n".to_owned()));
        assert_eq!(planned(&store(), &two).unwrap().steps.len(), 1);
        let anew = "*** Delete File: a\n*** Add File: a\n+new\n";
        assert_eq!(applied(anew)[0].1, "new\n");
        assert!(matches!(planned(&store(), anew).unwrap().steps[..], [Step::Write { .. }]));
        let moved =
            "*** Update File: a\n*** Move to: d\n*** Update File: d\n@@\n-one\n+1\n*** Add File: a\n+other\n";
        assert_eq!(
            applied(moved),
            files(&[("a", "other\n"), ("b", "x\r\ny"), ("c", "c\n"), ("d", "1\ntwo\n")])
        );
        let made = "*** Add File: n\n+n\n*** Update File: n\n*** Move to: m\n@@\n-n\n+m\n";
        assert_eq!(applied(made)[3], ("m".to_owned(), "m\n".to_owned()));
        let over = "*** Delete File: c\n*** Update File: a\n*** Move to: c\n";
        assert_eq!(applied(over), files(&[("b", "x\r\ny"), ("c", "one\ntwo\n")]));
    }

    #[test]
    fn a_patch_of_which_a_part_does_not_fit_changes_nothing() {
        for (patch, reason) in [
            ("*** Update File: b\n@@\n-q\n+r\n", "is not in `b`"),
            ("*** Update File: no\n@@\n-q\n", "`no` cannot be updated: it is not there (line 5"),
            ("*** Delete File: no\n", "cannot be deleted"),
            ("*** Add File: b\n+x\n", "cannot be added: it is there already"),
            ("*** Add File: folder\n+x\n", "is a folder"),
            ("*** Update File: b\n*** Move to: c\n", "cannot be moved to `c`"),
            ("*** Delete File: a\n*** Update File: a\n@@\n-two\n", "cannot be updated: it is not there"),
            ("*** Update File: b\n*** Move to: d\n*** Delete File: b\n", "cannot be deleted"),
        ] {
            refused(&format!("{A}{patch}"), reason);
        }
        refused("*** Update File: a\n@@\n-one\n+one\n", "as it is");
        refused("*** Add File: n\n*** Delete File: n\n", "leave everything as it is");
        let circle = "*** Update File: a\n*** Move to: t\n*** Update File: b\n*** Move to: a\n*** Update File: t\n*** Move to: b\n";
        refused(circle, "circle");
    }

    #[test]
    fn names_are_free_before_they_are_taken() {
        let chain = "*** Update File: a\n*** Move to: d\n*** Update File: b\n*** Move to: a\n";
        assert_eq!(applied(chain), files(&[("a", "x\r\ny"), ("c", "c\n"), ("d", "one\ntwo\n")]));
    }

    #[test]
    fn a_link_and_what_it_leads_to_are_one_file() {
        let store = store();
        store.link("link", "a");
        let patch = format!("{A}*** Update File: link\n@@\n-two\n+TWO\n");
        let plan = planned(&store, &patch).unwrap();
        carry_out(&store, &plan.steps).unwrap();
        assert_eq!(store.all()[0].1, "ONE\nTWO\n");
    }

    #[test]
    fn one_of_several_names_is_not_taken_away_beside_a_change_of_the_other() {
        let store = MemoryStore::with(&[("a", "one\n"), ("hard1", "h\n"), ("hard2", "h\n")]);
        store.link("link", "a");
        let (change, changed) = ("@@\n-one\n+ONE\n", "*** Update File: ");
        for patch in [
            format!("{changed}a\n{change}*** Delete File: link\n"),
            format!("{changed}link\n{change}*** Delete File: a\n"),
            format!("{changed}a\n{change}{changed}link\n*** Move to: other\n"),
            format!("*** Delete File: link\n{changed}a\n{change}"),
            "*** Delete File: link\n*** Add File: link\n+new\n".to_owned(),
            format!("{changed}a\n*** Move to: b\n{change}*** Delete File: link\n"),
            "*** Update File: hard1\n@@\n-h\n+H\n*** Delete File: hard2\n".to_owned(),
        ] {
            let problem = planned(&store, &patch).map(drop).unwrap_err();
            assert!(problem.failure.line().contains("name"), "{patch}: {problem:?}");
        }
        // Each alone can go, and by another spelling it is the same.
        let alone = planned(&store, "*** Delete File: link\n").unwrap();
        assert_eq!(alone.steps.len(), 1);
        let again = planned(&store, "*** Delete File: a\n*** Add File: /w/a\n+two\n").unwrap();
        carry_out(&store, &again.steps).unwrap();
        assert_eq!(store.all()[0], ("/w/a".to_owned(), "two\n".to_owned()));
        let both = "*** Update File: hard1\n@@\n-h\n+1\n*** Update File: hard2\n@@\n-1\n+2\n";
        assert_eq!(planned(&store, both).unwrap().steps.len(), 1);
    }
}
