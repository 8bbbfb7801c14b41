//! What the shell is told before it sees the command.
//!
//! The script below is the same for every command, and one line, so that the shell's messages count the command's own lines. It
//! reads the session's prelude and then the command from descriptor 3, closes it, and evaluates the command as one word, so that
//! here-documents, unbalanced quotes and trailing backslashes mean what they would in `sh -c`. At its exit the shell writes
//! down where it stands, what it exports, and, where it is bash, its options, aliases and functions. That is an `EXIT` trap of
//! ours, which a command may replace by its own. What one has changed that then comes to its end is written down before its trap is run; of one that
//! calls `exit` instead, replaces the shell (`exec`) or is killed, the changes to the session are lost, and nothing else.
//!
//! The record goes to a file that is opened only then, so that the command finds no descriptor to write to. Nothing in it
//! decides about success: the exit code comes from the kernel.
//!
//! The exit code is noted by an expansion, in bash by that of a redirection's word: that is done before anything is opened, so that it counts where
//! the command has left no descriptors (`ulimit -n 3`), and is neither traced nor seen by a `DEBUG` trap of its. What fails there is nothing to the command's
//! `set -e` or its `ERR` trap, hence `|| :`.
//!
//! Whatever the trap calls goes by `\builtin`: neither an alias nor a function of the session's then stands in its place. A
//! function named `builtin` alone would, and so is never brought into a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::transport::Shell;

/// Ends a record that was written to its end.
pub(super) const END_MARK: &[u8] = b"end";

/// Begins the options that were on before the command, in a record of a shell that was started.
pub(super) const BEFORE: u8 = 2;

/// Begins the `EXIT` trap that a command has left.
pub(super) const TRAP: u8 = 3;

/// The trap begins with a line of its own: under `set -v`, bash prints each line of it that it reads, and so only this one, if the command
/// calls `exit`. At the command's end `-v` is turned off before.
const FIRST: &str = r"{ \unset -f builtin; \builtin trap - DEBUG; __hostel=$SHELLOPTS/$BASHOPTS; \builtin set +vxu; __hostel_record=";

/// A copy of the shell that a signal ends before it has become a program comes to the trap too, and must not write.
const ONLY_OURS: &str = r#"\builtin test "$BASHPID" = "$$" || \builtin exit; "#;

/// What follows, up to the file. What bash writes down is `pwd`, exports, options, aliases, names of
/// functions, and, if there are any, their list and each of them: every one ended by NUL. The file is opened only then, and nothing is cut off
/// of it: some file systems wait for the disk when such a file is closed.
const SECOND: &str = r#"\builtin trap "" XFSZ; \builtin pwd; \builtin printf "\0"; \builtin export -p; \builtin printf "\0%s\0" "$__hostel"; \builtin alias -p; \builtin printf "\0"; \builtin compgen -A function && \builtin shopt -u expand_aliases && \builtin eval "#;

/// Writes down functions, which most sessions have none of. It is parsed once no alias is in force. The list goes to the record and is
/// read back from there, which spares a process.
const FUNCTIONS: &str = r#"\builtin printf "\0"; \builtin declare -F; \builtin printf "\0"; \builtin mapfile -t -d "" __hostel_list <"$__hostel_record"; \builtin set -f; IFS=$'\n'; for __hostel in ${__hostel_list[6]}; do \builtin declare -f -- "${__hostel##* }"; \builtin printf "\0"; done"#;

/// Reads the session's prelude from descriptor 3 and obeys it.
const PRELUDE: &str =
    "IFS= builtin read -r -d '' BASH_EXECUTION_STRING <&3; builtin eval -- \"$BASH_EXECUTION_STRING\"; ";

/// Reads the command and evaluates it, and nothing besides. It stands in the variable in which bash has the text of `-c`, so that there is
/// none that would have to be taken away first: that would be part of what a syntax error shows.
const COMMAND: &str = "IFS= builtin read -r -d '' BASH_EXECUTION_STRING <&3; exec 3<&-; builtin export -n BASH_EXECUTION_STRING; builtin eval -- \"$BASH_EXECUTION_STRING\"";

/// Writes down the options that are on before the command.
const NOTE: (&str, &str) =
    (r#"{ builtin printf "\2%s\0" "$SHELLOPTS/$BASHOPTS"; } 2>/dev/null >>"#, " || builtin :; ");

/// What comes once the command has come to its end, and so before any trap, up to the file: tracing is over, and the trap goes to the record and is read back,
/// which spares a process.
const AFTER: &str = r"; { \unset -f builtin; \builtin trap - DEBUG; \builtin set +vx; __hostel_record=";

/// The rest of it, up to what is done if the trap is not ours: then all is written down now, by a subshell, so that the trap finds the shell as the command has left it. Where
/// that cannot be known, since nothing can be written, it is not tried. A limit on files, which would end us, is the command's.
const OWN_TRAP: &str = r#"; \builtin trap "" XFSZ; { \builtin printf "\3"; \builtin trap -p EXIT; \builtin printf "\0"; } >>"$__hostel_record"; { IFS= \builtin read -r -d "" __hostel_trap; IFS= \builtin read -r -d "" __hostel_trap; } <"$__hostel_record"; \builtin trap - XFSZ; } >"/dev/null${-:(__hostel_code=$?):0}" 2>&1 || \builtin :; case ${__hostel_trap-} in ""|*__hostel_record=*) ;; *) ( \builtin eval -- "#;

/// The end, and whichever trap there is.
const END: &str = r#" ) || \builtin :;; esac; \builtin exit "${__hostel_code-$?}""#;

/// Returns the word of shell text that writes the record, if `condition` holds; `record` is shell text for the file's quoted path.
fn writer(record: &str, condition: &str) -> String {
    let quoted = |text: &str| quote(OsStr::new(text)).to_string_lossy().into_owned();
    // A line of this script would count as one of the command's.
    let lines = |text: &str| text.split('\n').map(quoted).collect::<Vec<_>>().join("$'\\n'");
    let end = "; \\builtin printf end; } 2>/dev/null >>\"$__hostel_record\" || \\builtin :";
    let second =
        ["; } >/dev/null 2>&1 || \\builtin :\n{ ", condition, SECOND, &quoted(FUNCTIONS), end].concat();
    let (first, second) = (lines(FIRST), lines(&second));
    format!("{first}{record}{second}")
}

/// Returns the script of a bash that reads what stands on descriptor 3.
fn bash(record: &OsStr) -> Vec<u8> {
    // The path may be any bytes, which no text of ours can hold. Within a trap it is quoted twice.
    let (trap, now) = (writer("\u{1}", ONLY_OURS), writer("\u{1}", ""));
    let script = format!(
        "builtin shopt -s expand_aliases; {PRELUDE}{}\0{}builtin trap {trap} EXIT; {COMMAND}{AFTER}\0{OWN_TRAP}{now}{END}",
        NOTE.0, NOTE.1
    );
    let quoted_twice = quote(record);
    let mut bytes = Vec::new();
    for byte in script.into_bytes() {
        match byte {
            0 => bytes.extend_from_slice(record.as_bytes()),
            1 => bytes.extend_from_slice(quoted_twice.as_bytes()),
            other => bytes.push(other),
        }
    }
    bytes
}

/// The trap of a copy: it leaves word for the builtin, which writes the record.
const LEAVE_WORD: &str = r"{ \unset -f builtin; \builtin trap - DEBUG; __hostel=$SHELLOPTS/$BASHOPTS; } >/dev/null 2>&1 || \builtin :";

/// What comes once the command of a copy has come to its end: word is left before any trap, since a trap of its own leaves none.
const AFTER_COPY: &str = r#"; { \unset -f builtin; \builtin trap - DEBUG; \builtin set +vx; __hostel=$SHELLOPTS/$BASHOPTS; } >"/dev/null${-:(__hostel_code=$?):0}" 2>&1 || \builtin :; \builtin exit "${__hostel_code-$?}""#;

/// Returns the arguments of a bash that makes copies of itself: descriptor 3 is what it is told of the session, 4 the builtin, 5 and 6 the
/// ends of a pipe, 7 the socket. With `cgroups`, 8 is the cgroup in which it makes one for each copy, and their names begin so. In a copy, descriptor 3 is as for a shell that was started.
pub(super) fn resident_argv(shell: &Shell, cgroups: Option<&str>) -> Vec<OsString> {
    let cgroups = cgroups.map(|prefix| format!(" 8 {prefix}")).unwrap_or_default();
    let serve = format!(
        "builtin test \"${{BASH_VERSINFO[0]}}\" = 5 && builtin enable -f /proc/self/fd/4 hostel_serve || builtin exit 125; exec 3<&- 4<&-; builtin hostel_serve 5 6 7{cgroups} || builtin exit 125; "
    );
    let trap = format!("builtin trap {} EXIT; ", quote(OsStr::new(LEAVE_WORD)).to_string_lossy());
    let script =
        format!("builtin shopt -s expand_aliases; {PRELUDE}{serve}{PRELUDE}{trap}{COMMAND}{AFTER_COPY}");
    words(shell, script.into())
}

/// Returns the script of a POSIX shell that does so. It has no prelude, and its functions, aliases and options end with it. A command that
/// has come to its end is written down before its own trap, since there is no way to know of one.
fn posix(record: &OsStr) -> Vec<u8> {
    let dump = [
        // Past functions of these names.
        b"{ trap '' XFSZ; } 2>/dev/null || :; { command pwd; command printf '\\0'; command export -p; command printf '\\0end'; } 2>/dev/null >>"
            .as_slice(),
        record.as_bytes(),
        b" || :",
    ]
    .concat();
    let once = [b"case ${__hostel_done-} in ?*) ;; *) ", dump.as_slice(), b";; esac"].concat();
    [
        b"unset __hostel_done; trap ".as_slice(),
        quote(OsStr::from_bytes(&once)).as_bytes(),
        b" EXIT; __hostel=$(command -p cat <&3; echo .); exec 3<&-; ",
        b"eval \"unset __hostel; ${__hostel%.}\"",
        b"; case $((__hostel_code=$?))$- in *[xv]*) { set +vx; } 2>/dev/null || :;; esac; ",
        &dump,
        b"; __hostel_done=1; exit \"$__hostel_code\"",
    ]
    .concat()
}

/// Returns the shell's arguments, so that it runs what stands on descriptor 3 and records its state in `record`.
pub(super) fn argv(shell: &Shell, record: &Path) -> Vec<OsString> {
    let record = quote(record.as_os_str());
    words(shell, OsString::from_vec(if shell.is_bash { bash(&record) } else { posix(&record) }))
}

fn words(shell: &Shell, script: OsString) -> Vec<OsString> {
    let mut argv = vec![shell.path.clone().into_os_string()];
    if shell.is_bash {
        argv.extend(["--noprofile".into(), "--norc".into()]);
    }
    argv.extend(["-c".into(), script]);
    argv.push(shell.path.file_name().unwrap_or(OsStr::new("sh")).to_owned());
    argv
}

/// Quotes a word so that a POSIX shell reads back exactly these bytes.
pub(super) fn quote(word: &OsStr) -> OsString {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_survives_the_shell() {
        let word = "it's \"$HOME\" `x` \\ \n*";
        let script = format!("printf %s {}", quote(OsStr::new(word)).to_string_lossy());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
    }
}
