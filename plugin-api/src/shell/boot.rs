//! What the shell is told before it sees the command.
//!
//! The script below is the same for every command, and one line, so that the shell's messages count the command's own lines. It reads the command from descriptor 3, closes it, and evaluates it as
//! one word, so that here-documents, unbalanced quotes and trailing backslashes mean what they would in `sh -c`. At its
//! exit the shell writes down where it stands and what it exports. That is an `EXIT` trap of ours, which a command may
//! replace by its own; its changes to the session are then lost, and nothing else. The same holds for a command that
//! replaces the shell (`exec`) or is killed.
//!
//! The record goes to a file that is opened only then, so that the command finds no descriptor to write to. Nothing in it
//! decides about success: the exit code comes from the kernel.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::transport::Shell;

/// Ends a record that was written to its end.
pub(super) const END_MARK: &[u8] = b"\0end";

/// Returns the shell's arguments, so that it runs what stands on descriptor 3 and records its state in `record`.
pub(super) fn argv(shell: &Shell, record: &Path) -> Vec<OsString> {
    let record = quote(record.as_os_str());
    let mut argv = vec![shell.path.clone().into_os_string()];
    let script = if shell.is_bash {
        argv.extend(["--noprofile".into(), "--norc".into()]);
        let dump = [
            b"{ builtin trap - DEBUG; builtin trap '' XFSZ; builtin set +x; } >/dev/null 2>&1; { builtin pwd; builtin printf '\\0'; builtin export -p; builtin printf '\\0end'; } 2>/dev/null >|",
            record.as_bytes(),
            b" || builtin :",
        ]
        .concat();
        let trap = quote(OsStr::from_bytes(&dump));
        [
            b"builtin trap ",
            trap.as_bytes(),
            b" EXIT; IFS= builtin read -r -d '' __hostel <&3; exec 3<&-; ",
            b"builtin eval \"builtin unset -v __hostel; $__hostel\"",
        ]
        .concat()
    } else {
        let dump = [
            b"{ trap '' XFSZ; } 2>/dev/null; { pwd; printf '\\0'; export -p; printf '\\0end'; } 2>/dev/null >|",
            record.as_bytes(),
            b" || :",
        ]
        .concat();
        let trap = quote(OsStr::from_bytes(&dump));
        [
            b"trap ",
            trap.as_bytes(),
            b" EXIT; __hostel=$(command -p cat <&3; echo .); exec 3<&-; ",
            b"eval \"unset __hostel; ${__hostel%.}\"",
        ]
        .concat()
    };
    argv.extend(["-c".into(), OsString::from_vec(script)]);
    argv.push(shell.path.file_name().unwrap_or(OsStr::new("sh")).to_owned());
    argv
}

/// Quotes a word so that a POSIX shell reads back exactly these bytes.
fn quote(word: &OsStr) -> OsString {
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
