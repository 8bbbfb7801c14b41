//! What a session remembers between commands.
//!
//! Only changes are kept: variables that commands set or unset, the directory once a command has left the first one, and the
//! options, aliases and functions that differ from those of a fresh shell. A later command so sees the host's present environment
//! with the session's changes on it. Each command's own changes are laid upon whatever the state is when it ends, so that commands
//! that run at once lose nothing of each other's; where two change the same thing, the last to end wins.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A function of the session's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// What the shell prints of it, which defines it again.
    pub(super) text: Vec<u8>,
    /// Whether programs that are shells get it too.
    pub(super) exported: bool,
}

/// The changes that a session has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionState {
    /// Whether the login files have been read.
    pub(super) started: bool,
    /// Where it stands, once a command has moved it.
    pub(super) cwd: Option<PathBuf>,
    /// Variables that commands have set.
    pub(super) set: BTreeMap<OsString, OsString>,
    /// Variables of the place's own that commands have unset.
    pub(super) unset: BTreeSet<OsString>,
    /// Folders that the login files add to the place's own `PATH`.
    pub(super) path: Vec<OsString>,
    /// Functions by name.
    pub(super) functions: BTreeMap<OsString, Function>,
    /// Aliases by name.
    pub(super) aliases: BTreeMap<OsString, OsString>,
    /// Options that are not as in a fresh shell: `set:NAME` and `shopt:NAME`, and whether they are on.
    pub(super) options: BTreeMap<String, bool>,
}

/// What one command changed. Of functions and aliases, None takes them away.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) started: bool,
    pub(super) cwd: Option<PathBuf>,
    pub(super) set: BTreeMap<OsString, OsString>,
    pub(super) unset: BTreeSet<OsString>,
    /// Variables of which nothing is to be remembered any more.
    pub(super) forget: BTreeSet<OsString>,
    pub(super) path: Vec<OsString>,
    pub(super) functions: BTreeMap<OsString, Option<Function>>,
    pub(super) aliases: BTreeMap<OsString, Option<OsString>>,
    pub(super) options: BTreeMap<String, bool>,
}

impl Change {
    pub(super) fn is_empty(&self) -> bool {
        let Self { started, cwd, set, unset, forget, path, functions, aliases, options } = self;
        !started
            && cwd.is_none()
            && [
                set.len(),
                unset.len(),
                forget.len(),
                path.len(),
                functions.len(),
                aliases.len(),
                options.len(),
            ] == [0; 7]
    }
}

/// The first field of a file, and that of files before there were functions, aliases and options.
const HEADERS: [&[u8]; 2] = [b"hostel-session 2", b"hostel-session 1"];
const FOOTER: &[u8] = b"end";

impl SessionState {
    pub(super) fn apply(&mut self, change: Change) {
        self.started |= change.started;
        if change.cwd.is_some() {
            self.cwd = change.cwd;
        }
        for name in &change.forget {
            self.set.remove(name);
        }
        for name in change.unset {
            self.set.remove(&name);
            self.unset.insert(name);
        }
        for (name, value) in change.set {
            self.unset.remove(&name);
            self.set.insert(name, value);
        }
        if !change.path.is_empty() {
            self.path = change.path;
        }
        replace(&mut self.functions, change.functions);
        replace(&mut self.aliases, change.aliases);
        self.options.extend(change.options);
    }

    /// Writes the state as fields that end in NUL, which nothing of it can hold.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = HEADERS[0].to_vec();
        let mut field = |parts: &[&[u8]]| {
            bytes.push(0);
            for part in parts {
                bytes.extend_from_slice(part);
            }
        };
        if self.started {
            field(&[b"started"]);
        }
        if let Some(cwd) = &self.cwd {
            field(&[b"cwd ", cwd.as_os_str().as_bytes()]);
        }
        for (name, value) in &self.set {
            field(&[b"set ", name.as_bytes(), b"=", value.as_bytes()]);
        }
        for name in &self.unset {
            field(&[b"unset ", name.as_bytes()]);
        }
        for folder in &self.path {
            field(&[b"path ", folder.as_bytes()]);
        }
        for (name, value) in &self.aliases {
            field(&[b"alias ", name.as_bytes(), b"=", value.as_bytes()]);
        }
        for (name, Function { text, exported }) in &self.functions {
            field(&[if *exported { b"exported " } else { b"function " }, name.as_bytes(), b"=", text]);
        }
        for (name, on) in &self.options {
            field(&[b"option ", name.as_bytes(), if *on { b"=on" } else { b"=off" }]);
        }
        field(&[FOOTER]);
        bytes.push(0);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. None where it is damaged.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0).collect::<Vec<_>>();
        if !HEADERS.contains(fields.first()?) || fields.pop() != Some(FOOTER) {
            return None;
        }
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let mut state = Self::default();
        for field in &fields[1..] {
            let space = field.iter().position(|byte| *byte == b' ').unwrap_or(field.len());
            let (kind, rest) = (&field[..space], field.get(space + 1..).unwrap_or_default());
            let pair = || {
                let split = rest.iter().position(|byte| *byte == b'=')?;
                Some((text(&rest[..split]), &rest[split + 1..]))
            };
            match kind {
                b"started" => state.started = true,
                b"cwd" => state.cwd = Some(text(rest).into()),
                b"unset" => drop(state.unset.insert(text(rest))),
                b"path" => state.path.push(text(rest)),
                b"set" => {
                    let (name, value) = pair()?;
                    state.set.insert(name, text(value));
                }
                b"alias" => {
                    let (name, value) = pair()?;
                    state.aliases.insert(name, text(value));
                }
                b"function" | b"exported" => {
                    let (name, value) = pair()?;
                    let function = Function { text: value.to_vec(), exported: kind == b"exported" };
                    state.functions.insert(name, function);
                }
                b"option" => {
                    let (name, value) = pair()?;
                    state.options.insert(name.into_string().ok()?, value == b"on");
                }
                _ => return None,
            }
        }
        Some(state)
    }
}

fn replace<T>(present: &mut BTreeMap<OsString, T>, changes: BTreeMap<OsString, Option<T>>) {
    for (name, change) in changes {
        match change {
            Some(new) => drop(present.insert(name, new)),
            None => drop(present.remove(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_form_survives_the_round_trip_and_damage_is_noticed() {
        let mut state = SessionState { started: true, cwd: Some("/srv/a\nb".into()), ..Default::default() };
        state.set.insert("A".into(), OsString::from_vec(b"x=y\n\xff".to_vec()));
        state.unset.insert("B".into());
        state.path.push("/opt/a b".into());
        state.aliases.insert("ll".into(), "ls -l".into());
        state
            .functions
            .insert("f".into(), Function { text: b"f () \n{ \n    :\n}\n".to_vec(), exported: true });
        state.options.insert("shopt:extglob".into(), true);
        let bytes = state.to_bytes();
        assert_eq!(SessionState::from_bytes(&bytes), Some(state));
        for cut in 0..bytes.len() {
            assert_eq!(SessionState::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_file_of_an_earlier_version_is_read() {
        let state = SessionState::from_bytes(b"hostel-session 1\0cwd /srv\0set A=1\0end\0").unwrap();
        assert_eq!((state.cwd, state.set.len(), state.started), (Some("/srv".into()), 1, false));
    }
}
