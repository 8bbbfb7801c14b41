//! Builds the environment of a command, and decides which variables may never be in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::state::SessionState;
use crate::{Error, ErrorKind};

/// Variables by which the shell itself would be driven before it sees the command. They are never passed to it.
const SHELL_CONTROL: [&str; 5] = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD"];

/// Functions of a shell that would stand in for what its boot script calls. They are neither passed to it, as bash exports them,
/// nor remembered.
const SHELL_CALLS: [&str; 9] =
    ["builtin", "command", "eval", "exec", "export", "printf", "pwd", "read", "trap"];

/// Returns whether the session remembers a function of this name. One whose name the shell's own lists would not give back whole
/// is not remembered either.
pub(super) fn function_lasts(name: &OsStr) -> bool {
    let plain = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'\'' | 0);
    !SHELL_CALLS.iter().any(|own| name == *own) && name.as_bytes().iter().all(|byte| plain(*byte))
}

/// Options that would break or flood later commands, and those that are not the user's to set.
const OPTIONS_OF_ONE_CALL: [&str; 9] = [
    "set:errexit",
    "set:nounset",
    "set:noexec",
    "set:onecmd",
    "set:xtrace",
    // It would show the session's own lines before each command.
    "set:verbose",
    "set:privileged",
    "shopt:login_shell",
    "shopt:restricted_shell",
];

/// Returns whether the session remembers what a command makes of the option `name`.
pub(super) fn option_lasts(name: &str) -> bool {
    !OPTIONS_OF_ONE_CALL.contains(&name)
}

/// Variables that the shell makes anew each time.
const SHELL_OWN: [&str; 4] = ["_", "SHLVL", "PWD", "BASH_EXECUTION_STRING"];

/// How the names of our own variables in a shell begin, which `set -a` exports like all others.
const OURS: &[u8] = b"__hostel";

/// Marks every process of a call, so that those that leave its process group are still known.
pub(super) const MARK: &str = "HOSTEL_CALL";

/// The kernel's limit for one `NAME=value`, its final NUL included (`MAX_ARG_STRLEN`, 32 pages).
const LONGEST: usize = 128 * 1024;

/// Names of variables that no command may see: exact ones, and prefixes that end in `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StripList(Vec<String>);

impl StripList {
    /// Makes a list from patterns. A name that cannot be a variable's is passed over.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        let mut patterns: Vec<String> =
            patterns.into_iter().filter(|pattern| Self::is_valid(pattern)).collect();
        patterns.sort();
        patterns.dedup();
        Self(patterns)
    }

    /// Returns whether `pattern` is a variable's name, or the beginning of one followed by `*`.
    #[must_use]
    pub fn is_valid(pattern: &str) -> bool {
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        !name.is_empty() && !name.bytes().any(|byte| byte == b'=' || byte == 0 || byte == b'*')
    }

    /// Returns whether the variable `name` is on the list.
    #[must_use]
    pub fn matches(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix.as_bytes()),
            None => name == pattern.as_bytes(),
        })
    }

    /// Returns the patterns, sorted.
    #[must_use]
    pub fn patterns(&self) -> &[String] {
        &self.0
    }
}

/// The most that a command's whole environment may hold. The kernel allows arguments and environment a quarter of the stack's
/// limit together, two megabytes by default, and a third of that is left to the commands' own arguments.
const LARGEST: usize = 1_400_000;

/// The variables of one call, by name.
pub(super) type Variables = BTreeMap<OsString, OsString>;

/// Refuses names that no variable can have. Dots and dashes pass: programs other than shells use them.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if first && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')) {
        return Ok(());
    }
    let message = format!("`{}` is not the name of an environment variable", name.escape_debug());
    let error = Error::new(ErrorKind::INVALID_REQUEST, message).not_started();
    Err(error.with_hint("a name is letters, digits and `_`, and does not begin with a digit"))
}

/// Puts a call's environment together: the place's own variables, what the session has changed, what this call adds.
/// What must not be seen is taken out last. Returns one line for each variable of the caller's that was held back.
pub(super) fn compose(
    base: &[(OsString, OsString)],
    state: &SessionState,
    call: &[(String, String)],
    strip: &StripList,
) -> (Variables, Vec<String>) {
    let mut variables: Variables = base.iter().cloned().collect();
    add_folders(&mut variables, &state.path);
    for name in &state.unset {
        variables.remove(name);
    }
    variables.extend(state.set.clone());
    variables.extend(call.iter().map(|(name, value)| (name.into(), value.into())));
    let mut held_back = Vec::new();
    variables.retain(|name, value| {
        let from_caller = call.iter().any(|(named, _)| name == OsStr::new(named));
        if name.len() + value.len() + 2 > LONGEST {
            held_back.push(format!("`{}` is too long to be passed to a command", name.to_string_lossy()));
            return false;
        }
        let secret = strip.matches(name);
        let control = drives_the_shell(name);
        if from_caller && secret {
            held_back.push(format!("`{}` was not passed: it is a provider's secret", name.to_string_lossy()));
        } else if from_caller && control {
            held_back.push(format!(
                "`{}` was not passed: it would drive the session's own shell",
                name.to_string_lossy()
            ));
        }
        !secret && !control
    });
    bound(&mut variables, &mut held_back);
    (variables, held_back)
}

/// Puts the folders that the login files have added behind those of the place's own `PATH`.
fn add_folders(variables: &mut Variables, folders: &[OsString]) {
    if folders.is_empty() {
        return;
    }
    let path = variables.entry("PATH".into()).or_default();
    let mut bytes = std::mem::take(path).into_vec();
    for folder in folders {
        if !bytes.split(|byte| *byte == b':').any(|known| known == folder.as_bytes()) {
            if !bytes.is_empty() {
                bytes.push(b':');
            }
            bytes.extend_from_slice(folder.as_bytes());
        }
    }
    *path = OsString::from_vec(bytes);
}

/// Leaves out the largest variables until the rest can be passed to a program, so that one command cannot make all later ones
/// impossible.
fn bound(variables: &mut Variables, held_back: &mut Vec<String>) {
    let size = |name: &OsString, value: &OsString| name.len() + value.len() + 2 + size_of::<usize>();
    let mut total: usize = variables.iter().map(|(name, value)| size(name, value)).sum();
    while total > LARGEST {
        let largest =
            variables.iter().max_by_key(|(name, value)| size(name, value)).map(|(name, _)| name.clone());
        let Some(name) = largest else { return };
        if let Some(value) = variables.remove(&name) {
            total -= size(&name, &value);
            held_back.push(format!(
                "`{}` was left out: all variables together are too long",
                name.to_string_lossy()
            ));
        }
    }
}

fn drives_the_shell(name: &OsStr) -> bool {
    let function = name.to_str().and_then(|name| name.strip_prefix("BASH_FUNC_")?.strip_suffix("%%"));
    SHELL_CONTROL.iter().any(|own| name == *own)
        || function.is_some_and(|function| SHELL_CALLS.contains(&function))
}

/// Returns whether the session remembers what a command makes of the variable `name`.
pub(super) fn lasts(name: &OsStr, strip: &StripList) -> bool {
    let own = SHELL_OWN.iter().chain(&SHELL_CONTROL).any(|own| name == *own);
    !own && name != MARK && !name.as_bytes().starts_with(OURS) && !strip.matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(patterns: &[&str]) -> StripList {
        StripList::new(patterns.iter().map(|text| (*text).to_owned()))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_strip_list_knows_names_and_prefixes_and_passes_over_nonsense() {
        let list = strip(&["MODAL_*", "ACME_TOKEN", "", "A=B", "*"]);
        assert_eq!(list.patterns(), ["ACME_TOKEN", "MODAL_*"]);
        assert!(list.matches(OsStr::new("MODAL_TOKEN_ID")) && list.matches(OsStr::new("ACME_TOKEN")));
        assert!(!list.matches(OsStr::new("ACME_TOKEN_2")) && !list.matches(OsStr::new("XMODAL_")));
    }

    #[test]
    fn secrets_are_taken_out_last_wherever_they_came_from() {
        let state = SessionState {
            set: pairs(&[("T", "state"), ("K", "kept")]).into_iter().collect(),
            ..Default::default()
        };
        let call = [("T".to_owned(), "call".to_owned()), ("BASH_ENV".to_owned(), "evil.sh".to_owned())];
        let (variables, held_back) =
            compose(&pairs(&[("T", "base"), ("P", "/bin")]), &state, &call, &strip(&["T"]));
        assert_eq!(variables.into_iter().collect::<Vec<_>>(), pairs(&[("K", "kept"), ("P", "/bin")]));
        assert_eq!(held_back.len(), 2, "{held_back:?}");
    }

    #[test]
    fn a_variable_that_no_program_could_be_given_does_not_poison_the_session() {
        let huge = "v".repeat(LONGEST);
        let state =
            SessionState { set: pairs(&[("HUGE", &huge)]).into_iter().collect(), ..Default::default() };
        let (variables, held_back) = compose(&[], &state, &[], &StripList::default());
        assert!(variables.is_empty() && held_back.len() == 1);
    }

    #[test]
    fn variables_that_are_too_long_together_lose_the_largest() {
        let many = (0..40).map(|number| (format!("V{number}").into(), "v".repeat(100_000).into()));
        let set = many.chain([("SMALL".into(), "s".into())]).collect();
        let state = SessionState { set, ..Default::default() };
        let (variables, held_back) = compose(&[], &state, &[], &StripList::default());
        assert!(variables.contains_key(OsStr::new("SMALL")) && variables.len() > 10);
        assert_eq!(variables.len() + held_back.len(), 41);
    }

    #[test]
    fn folders_of_the_login_files_come_behind_those_of_the_place() {
        let state = SessionState { path: vec!["/opt/tool".into(), "/bin".into()], ..SessionState::default() };
        let path = |base: &[(&str, &str)]| {
            let (variables, _) = compose(&pairs(base), &state, &[], &StripList::default());
            variables[OsStr::new("PATH")].clone()
        };
        assert_eq!(path(&[("PATH", "/venv/bin:/bin")]), "/venv/bin:/bin:/opt/tool");
        assert_eq!(path(&[]), "/opt/tool:/bin");
    }

    #[test]
    fn names_that_could_be_code_are_refused() {
        for good in ["A", "_a1", "X.Y", "a-b"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "1A", "A;touch pwned", "A B", "A=B", "Ä", "A\n"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
