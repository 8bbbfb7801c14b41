//! Applies the sections of a patch in memory, one after the other.
//!
//! Two sections for one file, a file that is moved and then changed, or one that is removed and made anew, do what
//! they say in that order. A file is loaded once, when it is first spoken of, and known by every name that it has had
//! since.

use super::files::Text;
use super::hunks::{Unfit, apply};
use super::paths::plain;
use super::plan::Problem;
use super::refusal::Subject;
use super::section::{Action, Hunk, Section};
use super::store::Store;
use crate::tools::Failure;

/// How a file was.
pub(super) struct Origin<D> {
    pub(super) path: String,
    /// The same in full, a last link not followed.
    called: String,
    pub(super) bytes: Vec<u8>,
    pub(super) digest: D,
}

/// A file that the patch has to do with.
pub(super) struct File<D> {
    /// How it was; none if it was not there.
    pub(super) origin: Option<Origin<D>>,
    /// What it is called now, as the patch says it, or was called last.
    pub(super) path: String,
    /// All that it is called, in a form for comparing. None if it is gone.
    names: Vec<String>,
    /// All that it was called.
    former: Vec<String>,
    /// Where its contents are, which is elsewhere if it was called by a link, and which of all files it is, if it has several names.
    contents: Vec<String>,
    /// What else the patch calls it: other links, or other names.
    others: Vec<String>,
    /// What it holds now; none if it is gone.
    pub(super) now: Option<Vec<u8>>,
}

impl<D> File<D> {
    /// One that is not there yet.
    fn new(path: &str, contents: Vec<u8>) -> Self {
        Self {
            origin: None,
            path: path.to_owned(),
            names: vec![plain(path)],
            former: Vec::new(),
            contents: Vec::new(),
            others: Vec::new(),
            now: Some(contents),
        }
    }

    /// Whether it has another name for the same contents, which is not in the patch's hand.
    fn is_shared(&self) -> bool {
        self.contents.iter().any(|place| !self.names.contains(place) && !self.former.contains(place))
    }
}

/// What is at a path by now.
enum There {
    File(usize),
    /// A file that was there before.
    Former(usize),
    Nothing,
}

/// The files that a patch has to do with, as they are after the sections so far.
pub(super) struct Desk<'a, S: Store> {
    store: &'a S,
    patch: &'a str,
    pub(super) files: Vec<File<S::Digest>>,
    /// What the caller should look at.
    pub(super) warnings: Vec<String>,
}

impl<'a, S: Store> Desk<'a, S> {
    /// Begins with no files. The sections come from `patch`.
    pub(super) fn new(store: &'a S, patch: &'a str) -> Self {
        Self { store, patch, files: Vec::new(), warnings: Vec::new() }
    }

    /// Applies a section.
    pub(super) fn apply(&mut self, section: &Section) -> Result<(), Problem> {
        let path = &section.path;
        let there = self.there(section, path)?;
        match (&section.action, there) {
            (Action::Add(contents), There::Nothing) => {
                self.files.push(File::new(path, contents.clone().into_bytes()));
            }
            (Action::Add(contents), There::Former(file)) => self.add_again(section, file, contents)?,
            (Action::Add(_), There::File(_)) => {
                let hint = "use `*** Update File: ` to change it, or `write_file` to replace all of it";
                return Err(Problem::new(
                    section,
                    &format!("`{path}` cannot be added: it is there already"),
                    hint,
                ));
            }
            (Action::Delete, There::File(file)) => {
                self.alone(section, file)?;
                let file = &mut self.files[file];
                file.former.append(&mut file.names);
                file.now = None;
            }
            (Action::Update { to, hunks }, There::File(file)) => {
                self.change(section, file, hunks)?;
                if let Some(to) = to {
                    self.alone(section, file)?;
                    self.rename(section, file, to)?;
                }
            }
            (action, There::Former(_) | There::Nothing) => {
                let what = if *action == Action::Delete { "deleted" } else { "updated" };
                let hint = "check the path with `search_files`, or use `*** Add File: ` to make it";
                return Err(Problem::new(
                    section,
                    &format!("`{path}` cannot be {what}: it is not there"),
                    hint,
                ));
            }
        }
        Ok(())
    }

    /// Finds what is at a path after the sections so far.
    fn there(&mut self, section: &Section, path: &str) -> Result<There, Problem> {
        let known = |files: &[File<S::Digest>], name: &String| {
            let named = |file: &File<S::Digest>| file.names.contains(name) || file.others.contains(name);
            let file = files.iter().position(named).map(There::File);
            file.or_else(|| files.iter().rposition(|file| file.former.contains(name)).map(There::Former))
        };
        let name = plain(path);
        if let Some(there) = known(&self.files, &name) {
            return Ok(there);
        }
        let failed = |error: String| Problem {
            path: section.path.clone(),
            failure: Failure::new(format!("{error} (line {} of `patch`)", section.line)),
            near: None,
        };
        let Some(held) = self.store.load(path).map_err(failed)? else { return Ok(There::Nothing) };
        let called = plain(&held.called);
        if let Some(there) = known(&self.files, &called) {
            return Ok(there);
        }
        let contents: Vec<String> = std::iter::once(plain(&held.path)).chain(held.which).collect();
        if let Some(same) =
            self.files.iter().position(|file| file.contents.iter().any(|place| contents.contains(place)))
        {
            let file = &mut self.files[same];
            file.others.extend([name, called]);
            // Where it has gone, nothing is known of what the other name leads to.
            if file.now.is_some() && file.former.is_empty() {
                return Ok(There::File(same));
            }
            return Err(self.entangled(section, same));
        }
        let now = Some(held.bytes.clone());
        let (path, called_so) = (path.to_owned(), called.clone());
        let origin =
            Some(Origin { path: path.clone(), called: called_so, bytes: held.bytes, digest: held.digest });
        let (names, former, others) = (vec![name, called], Vec::new(), Vec::new());
        self.files.push(File { origin, path, names, former, contents, others, now });
        Ok(There::File(self.files.len() - 1))
    }

    /// Fails if a file is also called something else in the patch: that would be left without it, or with what was to go.
    fn alone(&self, section: &Section, file: usize) -> Result<(), Problem> {
        if self.files[file].others.is_empty() { Ok(()) } else { Err(self.entangled(section, file)) }
    }

    fn entangled(&self, section: &Section, file: usize) -> Problem {
        let File { origin, path: now, .. } = &self.files[file];
        let first = origin.as_ref().map_or(now, |origin| &origin.path);
        let message = if plain(first) == plain(&section.path) {
            format!(
                "`{first}` is one of several names of a file: what is made anew under it would be the others' too"
            )
        } else {
            let other = &section.path;
            format!(
                "`{other}` and `{first}` are names of one file: deleting or moving one changes what the other means"
            )
        };
        Problem::new(section, &message, "do that in a patch of its own")
    }

    /// Makes a file where one was before in this patch.
    fn add_again(&mut self, section: &Section, former: usize, contents: &str) -> Result<(), Problem> {
        let path = &section.path;
        let now = contents.as_bytes().to_vec();
        let file = &mut self.files[former];
        // What is removed and made anew is written over, so that it stays what it is but for its contents.
        let is_origin =
            |origin: &Origin<_>| [plain(&origin.path), origin.called.clone()].contains(&plain(path));
        if file.now.is_none() && file.origin.as_ref().is_none_or(is_origin) {
            if file.is_shared() {
                return Err(self.entangled(section, former));
            }
            let first = file.origin.as_ref().map_or(path, |origin| &origin.path).clone();
            if plain(&file.path) == plain(&first) {
                file.names.append(&mut file.former);
            } else {
                file.names.extend([plain(path), plain(&first)]);
                file.path = first;
            }
            file.now = Some(now);
        } else {
            self.files.push(File::new(path, now));
        }
        Ok(())
    }

    fn change(&mut self, section: &Section, file: usize, hunks: &[Hunk]) -> Result<(), Problem> {
        if hunks.is_empty() {
            return Ok(());
        }
        let path = &section.path;
        let bytes = self.files[file].now.as_deref().unwrap_or_default();
        let Some(text) = Text::decode_beside(bytes, &[self.patch]) else {
            let hint = "change it with a program by `terminal`";
            return Err(Problem::new(section, &format!("`{path}` cannot be updated: it is binary"), hint));
        };
        let patched = apply(&text, hunks).map_err(|Unfit { line, refusal }| Problem {
            path: path.clone(),
            failure: refusal.failure(Subject::Hunk(line), path),
            near: refusal.near().map(str::to_owned),
        })?;
        self.files[file].now = Some(patched.text.bytes());
        self.warnings.extend(patched.warnings.into_iter().map(|warning| format!("`{path}`: {warning}")));
        Ok(())
    }

    fn rename(&mut self, section: &Section, file: usize, to: &str) -> Result<(), Problem> {
        if self.files[file].names.contains(&plain(to)) {
            return Ok(());
        }
        if let There::File(_) = self.there(section, to)? {
            let message = format!("`{}` cannot be moved to `{to}`: there is a file already", section.path);
            return Err(Problem::new(section, &message, "choose another name, or delete that file first"));
        }
        let file = &mut self.files[file];
        file.former.append(&mut file.names);
        file.names.push(plain(to));
        to.clone_into(&mut file.path);
        Ok(())
    }
}
