//! Works out what a command changed of its session.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::environ::{StripList, Variables, function_lasts, lasts, option_lasts};
use super::record::{BashRecorded, Recorded};
use super::state::{Change, Function, SessionState};

/// More than this is no function that anybody needs in each call.
const LONGEST_FUNCTION: usize = 1024 * 1024;

/// What a command was started with.
pub(super) struct Given<'a> {
    pub(super) state: &'a SessionState,
    pub(super) cwd: &'a Path,
    pub(super) variables: &'a Variables,
    pub(super) strip: &'a StripList,
    /// Whether the directory was the caller's, for this call only.
    pub(super) own_cwd: bool,
    /// Whether the directory is not the one in which the session stood.
    pub(super) moved: bool,
    /// The variables that were the caller's, for this call only.
    pub(super) own_env: &'a [String],
    /// Variables of the session's that could not be passed.
    pub(super) lost: BTreeSet<OsString>,
}

impl Given<'_> {
    /// Returns what is different now.
    pub(super) fn change(self, recorded: &Recorded) -> Change {
        let mut change = Change::default();
        if !self.own_cwd && (recorded.cwd != *self.cwd || self.moved) {
            change.cwd = Some(recorded.cwd.clone());
        }
        for (name, value) in &recorded.exported {
            if lasts(name, self.strip) && self.variables.get(name) != Some(value) {
                change.set.insert(name.clone(), value.clone());
            }
        }
        for name in self.variables.keys() {
            // What is no identifier is not the shell's to list, and a variable of this call only is not the session's.
            let listed = is_identifier(name) && !self.own_env.iter().any(|named| name == OsStr::new(named));
            if listed && lasts(name, self.strip) && !recorded.exported.contains_key(name) {
                change.unset.insert(name.clone());
            }
        }
        if let Some(bash) = &recorded.bash {
            self.of_bash(bash, &mut change);
        }
        change.forget = self.lost;
        change
    }

    fn of_bash(&self, bash: &BashRecorded, change: &mut Change) {
        let (before, after) = &bash.options;
        for option in before.symmetric_difference(after).filter(|name| option_lasts(name)) {
            change.options.insert(option.clone(), after.contains(option));
        }
        for (name, value) in &bash.aliases {
            if self.state.aliases.get(name) != Some(value) {
                change.aliases.insert(name.clone(), Some(value.clone()));
            }
        }
        let gone = self.state.aliases.keys().filter(|name| !bash.aliases.contains_key(*name));
        change.aliases.extend(gone.map(|name| (name.clone(), None)));
        for (name, function) in &bash.functions {
            let known = self.state.functions.get(name) == Some(function);
            if !known && function_lasts(name) && function.text.len() <= LONGEST_FUNCTION {
                change.functions.insert(name.clone(), Some(function.clone()));
            }
        }
        for name in self.state.functions.keys().filter(|name| !bash.functions.contains_key(*name)) {
            change.functions.insert(name.clone(), None);
            // Otherwise the place's own environment would bring it back.
            let variable = exported_as(name);
            if self.variables.contains_key(&variable) {
                change.unset.insert(variable);
            }
        }
    }
}

/// Returns the variable in which bash exports the function `name`.
fn exported_as(name: &OsStr) -> OsString {
    let mut variable = OsString::from("BASH_FUNC_");
    variable.push(name);
    variable.push("%%");
    variable
}

/// Returns whether a shell lists a variable of this name.
pub(super) fn is_identifier(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Works out what the login files made of a fresh shell. What the place's own environment says already counts more: they would
/// undo what Hostel was started with. Of `PATH` they may add folders.
pub(super) fn of_login(variables: &Variables, strip: &StripList, recorded: Option<&Recorded>) -> Change {
    let mut change = Change { started: true, ..Change::default() };
    let Some(recorded) = recorded else { return change };
    for (name, value) in &recorded.exported {
        match variables.get(name) {
            Some(own) if name == "PATH" => change.path = added(own, value),
            None if name == "PATH" => change.path = added(OsStr::new(""), value),
            None if lasts(name, strip) && name != "OLDPWD" => {
                change.set.insert(name.clone(), value.clone());
            }
            Some(_) | None => {}
        }
    }
    if let Some(bash) = &recorded.bash {
        let (before, after) = &bash.options;
        for option in before.symmetric_difference(after).filter(|name| option_lasts(name)) {
            change.options.insert(option.clone(), after.contains(option));
        }
        change.aliases =
            bash.aliases.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        let fits = |(name, function): &(&OsString, &Function)| {
            function_lasts(name) && function.text.len() <= LONGEST_FUNCTION
        };
        let functions = bash.functions.iter().filter(fits);
        change.functions = functions.map(|(name, function)| (name.clone(), Some(function.clone()))).collect();
    }
    change
}

/// Returns the folders of `now` that are not in `before`.
fn added(before: &OsStr, now: &OsStr) -> Vec<OsString> {
    let known: BTreeSet<&[u8]> = before.as_bytes().split(|byte| *byte == b':').collect();
    let mut seen = BTreeSet::new();
    let folders = now.as_bytes().split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders
        .filter(|folder| !known.contains(folder) && seen.insert(*folder))
        .map(|folder| OsStr::from_bytes(folder).to_owned())
        .collect()
}
