//! Names of signals.

/// The names of the classic signals, by number, after `man 7 signal` (x86 and ARM).
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Returns the name of a signal, or its number where it has none.
#[must_use]
pub fn signal_name(number: i32) -> String {
    let name = usize::try_from(number - 1).ok().and_then(|index| NAMES.get(index));
    name.map_or_else(|| format!("signal {number}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_names() {
        for (number, name) in [
            (1, "SIGHUP"),
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (15, "SIGTERM"),
            (31, "SIGSYS"),
            (34, "signal 34"),
            (0, "signal 0"),
        ] {
            assert_eq!(signal_name(number), name);
        }
    }
}
