//! Which variables a script sees.
//!
//! A script is written by a model and may print its environment, which on a developer's machine is full of keys that no list of ours
//! knows. So only those are left to it whose names say that programs need them, and of these none whose name says that it holds a secret. What it
//! needs besides, it can ask for by `terminal`. The launchers do it, in the place where the script runs.

/// A name that has one of these in it is never seen, whatever it begins with.
const HIDDEN: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "CREDENTIAL",
    "PASSWD",
    "AUTH",
    "DSN",
    "WEBHOOK",
    "CREDS",
    "BEARER",
    "APIKEY",
];

/// A name that begins with one of these is seen.
const PREFIXES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SHELL",
    "LOGNAME",
    "XDG_",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA",
    "NODE_PATH",
];

/// These are seen too. By `HOSTEL_CALL` whoever must end the script finds what it has started.
const EXACT: &[&str] =
    &["HERMES_HOME", "HERMES_PROFILE", "HERMES_CONFIG", "HERMES_ENV", "HOSTEL_HOME", "HOSTEL_CALL"];

/// Returns the rule as launchers read it: a line for each of the three lists.
pub(super) fn rule() -> String {
    [HIDDEN, PREFIXES, EXACT].map(|names| format!("{}\n", names.join(" "))).concat()
}
