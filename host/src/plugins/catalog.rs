//! All folders below `plugins/`, good and bad.
//!
//! Discovery never fails as a whole: each folder is read by itself, and what is wrong with one is kept with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::LoadError;
use super::granted;
use super::load::Discovered;
use super::manifest::{Manifest, ManifestError};
use super::record::Record;
use super::trust::flaw_on_the_way;
use crate::home::Home;
use crate::registry::{NameError, fold};

/// Whether the user wants a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It may be loaded.
    Enabled,
    /// Nobody has said so.
    NotEnabled,
    /// It must not be.
    Disabled,
}

/// What is wrong with a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It cannot be used.
    Broken(String),
    /// It could be used, but something else has its place.
    Rejected(String),
}

impl Problem {
    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Broken(reason) | Self::Rejected(reason) => reason,
        }
    }
}

/// One folder.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The folder, as it was found.
    pub path: PathBuf,
    /// The plugin's name: the manifest's, or else the folder's.
    pub name: String,
    /// The manifest, if it could be read.
    pub found: Option<Discovered>,
    /// What is wrong, if anything is.
    pub problem: Option<Problem>,
    /// Whether the user wants it.
    pub choice: Choice,
    /// What was found out when it was enabled.
    pub record: Option<Record>,
    /// What its author should know.
    pub warnings: Vec<String>,
    /// What would keep it from being enabled, if that was looked at.
    pub remark: Option<String>,
}

impl Candidate {
    /// Looks at the plugin's library as well. For lists: a command opens only the library that it needs. What is wrong with
    /// that of an enabled plugin is a problem; with any other it is a remark, as nobody uses it.
    pub fn look_at_library(&mut self) {
        let Some(found) = self.found.as_ref().filter(|_| self.problem.is_none()) else { return };
        let enabled = self.choice == Choice::Enabled;
        let looked = match &self.record {
            Some(record) if enabled => {
                found.verify(Some(&record.pin)).and_then(|_| granted::check(found, record))
            }
            None if enabled => {
                found.glance().and_then(|()| Err(LoadError::never_pinned(&found.manifest.name)))
            }
            _ => found.glance(),
        };
        let Err(error) = looked else { return };
        let reason = format!("{error}; {}", error.hint);
        if enabled {
            self.problem = Some(Problem::Broken(reason));
        } else {
            self.remark = Some(reason);
        }
    }

    /// Returns the one word for where it stands.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match (&self.problem, self.choice) {
            (Some(Problem::Broken(_)), _) => "error",
            (Some(Problem::Rejected(_)), _) => "rejected",
            (None, Choice::Disabled) => "disabled",
            (None, Choice::NotEnabled) => "not enabled",
            (None, Choice::Enabled) => "enabled",
        }
    }
}

/// All candidates, in the order of their folders' names.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Names that are enabled, whatever their folders hold.
    pub enabled: Vec<String>,
    /// Names that are enabled and that no folder has.
    pub missing: Vec<String>,
    /// Why there are no candidates, if `plugins/` itself cannot be read.
    pub unread: Option<String>,
}

impl Catalog {
    /// Reads every folder below the home's `plugins/`; `enabled` and `disabled` are the user's lists.
    #[must_use]
    pub fn scan(home: &Home, enabled: &[String], disabled: &[String]) -> Self {
        let listed = fs::read_dir(home.plugins())
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
        let (mut folders, unread): (Vec<PathBuf>, _) = match listed {
            Ok(folders) => (folders, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), None),
            Err(error) => {
                let reason = format!("failed to list `{}`: {error}", home.plugins().display());
                (Vec::new(), Some(reason))
            }
        };
        folders.retain(|path| !is_hidden(path) && (path.is_dir() || path.is_symlink()));
        folders.sort();
        let mut candidates: Vec<Candidate> = folders.into_iter().map(|path| read(home, path)).collect();
        for candidate in &mut candidates {
            let listed = |list: &[String]| list.contains(&candidate.name);
            candidate.choice = match (listed(disabled), listed(enabled)) {
                (true, _) => Choice::Disabled,
                (false, true) => Choice::Enabled,
                (false, false) => Choice::NotEnabled,
            };
        }
        reject_duplicates(&mut candidates);
        let missing =
            enabled.iter().filter(|name| !candidates.iter().any(|candidate| candidate.name == **name));
        let missing = missing.cloned().collect();
        let enabled = enabled.iter().filter(|name| !disabled.contains(name)).cloned().collect();
        Self { candidates, enabled, missing, unread }
    }

    /// Looks at every library; see [`Candidate::look_at_library`].
    pub fn look_at_libraries(&mut self) {
        self.candidates.iter_mut().for_each(Candidate::look_at_library);
    }

    /// Returns what is wrong with the plugin that would provide the backend `name`, if there is one.
    #[must_use]
    pub fn why_not(&self, name: &str) -> Option<String> {
        let provides = |candidate: &&Candidate| match &candidate.found {
            Some(found) => found.manifest.provides.iter().any(|provided| provided == name),
            None => candidate.name == name,
        };
        let candidate =
            self.candidates.iter().filter(provides).find(|candidate| candidate.problem.is_some())?;
        let reason = candidate.problem.as_ref()?.reason();
        Some(format!("plugin `{}` cannot be used ({}): {reason}", candidate.name, candidate.path.display()))
    }

    /// Returns the candidate called `name`: a usable one before one that is not.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Candidate> {
        let named = || self.candidates.iter().filter(|candidate| candidate.name == name);
        named().find(|candidate| candidate.problem.is_none()).or_else(|| named().next())
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn read(home: &Home, path: PathBuf) -> Candidate {
    let folder_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut candidate = Candidate {
        name: folder_name.clone(),
        found: None,
        problem: None,
        choice: Choice::NotEnabled,
        record: None,
        warnings: Vec::new(),
        remark: None,
        path,
    };
    let folder = match candidate.path.canonicalize() {
        Ok(folder) => folder,
        Err(error) => {
            candidate.problem = Some(Problem::Broken(format!("failed to open the folder: {error}")));
            return candidate;
        }
    };
    match Manifest::read(&folder) {
        Ok((manifest, warnings)) => {
            candidate.name.clone_from(&manifest.name);
            candidate.warnings = warnings;
            if manifest.name != folder_name {
                candidate
                    .warnings
                    .push(format!("the folder is called `{folder_name}`, the plugin `{}`", manifest.name));
            }
            candidate.record = Record::load(home, &manifest.name).filter(|record| record.folder == folder);
            candidate.found = Some(Discovered { folder, manifest });
            candidate.problem = flaw_of_link(&candidate.path);
        }
        Err(error) => {
            let is_name = matches!(&error, ManifestError::Name { error: NameError::Reserved { .. }, .. });
            let problem = if is_name { Problem::Rejected } else { Problem::Broken };
            candidate.problem = Some(problem(error.to_string()));
        }
    }
    candidate
}

/// Returns why a link to a plugin's folder cannot be trusted: who may write beside it may lay another. The way to what it leads to is
/// looked at when that is loaded.
fn flaw_of_link(path: &Path) -> Option<Problem> {
    if !path.is_symlink() {
        return None;
    }
    let flaw = flaw_on_the_way(&path.parent()?.canonicalize().ok()?)?;
    Some(Problem::Broken(format!("{}; {}", flaw.reason, flaw.hint)))
}

/// Of two that want one name the first in order is used, and the other says so. Those that the user has enabled come before
/// all others, so that a folder that was merely dropped in takes nothing away from them, and those without a library after all others.
fn reject_duplicates(candidates: &mut [Candidate]) {
    let mut taken: Vec<(String, &'static str, PathBuf)> = Vec::new();
    let mut order: Vec<&mut Candidate> = candidates.iter_mut().collect();
    order.sort_by_cached_key(|candidate| {
        let is_empty = candidate.found.as_ref().is_none_or(|found| !found.has_library());
        (candidate.choice != Choice::Enabled || candidate.record.is_none(), is_empty)
    });
    for candidate in order {
        // What is forbidden needs no names.
        let usable = candidate.problem.is_none() && candidate.choice != Choice::Disabled;
        let Some(found) = candidate.found.as_ref().filter(|_| usable) else { continue };
        let names = std::iter::once((fold(&found.manifest.name), "plugin"));
        let names = names.chain(found.manifest.provides.iter().map(|name| (fold(name), "backend")));
        let names: Vec<(String, &'static str)> = names.collect();
        let clash = names.iter().find_map(|(name, kind)| {
            taken
                .iter()
                .find(|(other, other_kind, _)| other == name && other_kind == kind)
                .map(|other| (kind, name, &other.2))
        });
        if let Some((kind, name, path)) = clash {
            let reason =
                format!("the {kind} name `{name}` is taken by `{}`, which comes first", path.display());
            candidate.problem = Some(Problem::Rejected(reason));
            continue;
        }
        taken.extend(names.into_iter().map(|(name, kind)| (name, kind, candidate.path.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(home: &Home, folder: &str, name: &str, more: &str) {
        let folder = home.plugins().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("name: {name}\nversion: 1.0.0\ndescription: d\nkind: backend\n{more}");
        fs::write(folder.join("plugin.yaml"), text).unwrap();
    }

    #[test]
    fn one_bad_folder_hides_no_other_and_the_first_of_two_wins() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        assert!(Catalog::scan(&home, &[], &[]).candidates.is_empty());
        plugin(&home, "a", "a", "provides: [shared]\n");
        plugin(&home, "b", "b", "provides: [shared]\n");
        plugin(&home, "c", "docker", "");
        plugin(&home, "d", "other", "");
        plugin(&home, "e", "off", "");
        fs::create_dir(home.plugins().join("f")).unwrap();
        fs::write(home.plugins().join("a-file"), "").unwrap();
        fs::create_dir(home.plugins().join(".hidden")).unwrap();
        std::os::unix::fs::symlink("nowhere", home.plugins().join("g")).unwrap();
        let lists = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let catalog = Catalog::scan(&home, &lists(&["a", "off", "gone"]), &lists(&["off"]));
        let seen: Vec<(&str, &str)> = catalog
            .candidates
            .iter()
            .map(|candidate| (candidate.name.as_str(), candidate.status()))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", "enabled"),
                ("b", "rejected"),
                ("c", "rejected"),
                ("other", "not enabled"),
                ("off", "disabled"),
                ("f", "error"),
                ("g", "error")
            ]
        );
        assert_eq!(catalog.missing, ["gone"]);
        assert_eq!(catalog.candidates[3].warnings, ["the folder is called `d`, the plugin `other`"]);
        let reason = catalog.candidates[1].problem.as_ref().unwrap().reason();
        assert!(reason.contains("backend name `shared`") && reason.contains("plugins/a"), "{reason}");
        // One that could not be used takes no name from one that could.
        fs::write(home.plugins().join("b/libb.so"), "").unwrap();
        let catalog = Catalog::scan(&home, &[], &[]);
        let status =
            |name: &str| catalog.candidates.iter().find(|found| found.name == name).unwrap().status();
        assert_eq!((status("a"), status("b")), ("rejected", "not enabled"));
    }
}
