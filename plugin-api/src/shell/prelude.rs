//! What the shell is told of the session before it reads the command: options, functions, aliases.
//!
//! A function comes back as the text that bash prints of it. The shell must parse it as code, so each one is parsed by itself:
//! one that this shell does not understand is missing, and nothing else is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::boot::quote;
use super::environ::{function_lasts, option_lasts};
use super::record::is_option;
use super::state::SessionState;

/// Returns the text that brings a fresh bash to where the session stands. Nothing where that is where it starts.
pub(super) fn text(state: &SessionState) -> Vec<u8> {
    let mut text = Vec::new();
    // Functions may need an option to be understood, and no alias may change their meaning.
    for (option, on) in state.options.iter().filter(|(name, _)| option_lasts(name)) {
        let (command, name) = match option.split_once(':') {
            Some(("set", name)) if is_option(name) => (if *on { "set -o" } else { "set +o" }, name),
            Some(("shopt", name)) if is_option(name) => (if *on { "shopt -s" } else { "shopt -u" }, name),
            _ => continue,
        };
        text.extend_from_slice(format!("\\builtin {command} {name}\n").as_bytes());
    }
    for (name, function) in state.functions.iter().filter(|(name, _)| function_lasts(name)) {
        line(&mut text, &[b"\\builtin eval ", quoted(OsStr::from_bytes(&function.text)).as_slice()]);
        if function.exported {
            line(&mut text, &[b"\\builtin export -f -- ", quoted(name).as_slice()]);
        }
    }
    for (name, value) in &state.aliases {
        let assignment = [name.as_bytes(), b"=", value.as_bytes()].concat();
        line(&mut text, &[b"\\builtin alias -- ", quoted(OsStr::from_bytes(&assignment)).as_slice()]);
    }
    if text.is_empty() {
        return text;
    }
    // What this shell does not know is passed over in silence.
    [b"{\n".as_slice(), &text, b"} 2>/dev/null\n"].concat()
}

fn line(text: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        text.extend_from_slice(part);
    }
    text.push(b'\n');
}

fn quoted(word: &OsStr) -> Vec<u8> {
    quote(word).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::state::Function;

    #[test]
    fn bash_takes_it_back_and_names_that_would_be_code_are_left_out() {
        let mut state = SessionState::default();
        state.options.insert("shopt:extglob".into(), true);
        state.options.insert("set:x; echo pwned".into(), true);
        state.options.insert("set:errexit".into(), true);
        let body = b"f () \n{ \n    case $1 in @(a|b)) echo \"it's $1\";; esac\n}\n".to_vec();
        state.functions.insert("f".into(), Function { text: body, exported: true });
        state.functions.insert("broken".into(), Function { text: b"broken () {".to_vec(), exported: false });
        state.aliases.insert("say".into(), "echo 'it is'".into());
        let script = [
            b"shopt -s expand_aliases\n".as_slice(),
            &text(&state),
            b"f a\nbash -O extglob -c 'f b'\nsay\nfalse\necho on",
        ]
        .concat();
        let output =
            std::process::Command::new("bash").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's a\nit's b\nit is\non\n", "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        assert!(text(&SessionState::default()).is_empty());
    }
}
