//! What an exit code means that an agent would take for a failure.
//!
//! `grep` returns 1 where there is no match, and an agent that takes that for an error begins to repair what is whole. It is the
//! last command of a text whose exit code the shell returns, so that one is looked at; where it cannot be told, nothing is
//! said.

use std::ops::Range;

use super::called::called;
use crate::policy::commands::{SimpleCommand, commands};
use crate::signals::signal_name;

/// The exit code of a command that was interrupted, which says enough.
const INTERRUPTED: i32 = 130;

/// The classic signals.
const SIGNALS: Range<i32> = 129..160;

/// Returns what `exit_code` of `command` means, if that is worth a word. `signal` ended the shell itself.
pub(super) fn meaning(command: &str, exit_code: i32, signal: Option<i32>) -> Option<String> {
    if exit_code == 0 || exit_code == INTERRUPTED {
        return None;
    }
    if let Some(signal) = signal {
        return Some(format!("ended by {}", about_signal(signal)));
    }
    if let Some(meaning) = last_program(command).and_then(|name| of_program(&name, exit_code)) {
        return Some(meaning.to_owned());
    }
    SIGNALS.contains(&exit_code).then(|| {
        format!(
            "{exit_code} is 128+{0}: a program was probably ended by {1}",
            exit_code - 128,
            about_signal(exit_code - 128)
        )
    })
}

fn about_signal(number: i32) -> String {
    let why = match number {
        4 => ": an illegal instruction",
        6 => ": it gave itself up, often after a failed check",
        7 | 11 => ": an access to memory that it may not make",
        8 => ": an impossible calculation",
        9 => ": by force, often because memory was short",
        13 => ": it wrote to a pipe that nobody reads any more",
        15 => ": somebody asked it to end",
        24 => ": its processor time was up",
        25 => ": a file became too large",
        _ => "",
    };
    format!("{}{why}", signal_name(number))
}

fn of_program(name: &str, exit_code: i32) -> Option<&'static str> {
    Some(match (name, exit_code) {
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg", 1) => "no match was found, which is no error",
        ("diff" | "cmp", 1) => "the files differ, which is no error",
        ("find", 1) => "some paths could not be looked at; what was found is there",
        ("test" | "[", 1) => "the condition is false, which is no error",
        ("git", 1) => "often no error: there are differences, conflicts or no matches",
        ("curl", 6) => "the host's name could not be resolved",
        ("curl", 7) => "no connection could be made to the host",
        ("curl", 22) => "the server answered with an HTTP error (400 or above)",
        ("curl", 28) => "the time was up",
        _ => return None,
    })
}

/// Returns the name of the program whose exit code is that of the text.
fn last_program(source: &str) -> Option<String> {
    let trimmed = source.trim_end_matches(|one: char| one.is_whitespace() || one == ';');
    if trimmed.ends_with("]]") {
        return Some("test".to_owned());
    }
    // Arithmetic is no command with a name.
    if trimmed.ends_with("))") {
        return None;
    }
    let found = commands(source).ok()?;
    let begins = |simple: &SimpleCommand| simple.words.first().map(|word| word.span.start);
    // What stands inside another one's words gives it its words and not its exit code.
    let is_inside = |at: usize| {
        let words = found.simple.iter().flat_map(|simple| &simple.words);
        words.into_iter().any(|word| word.span.start < at && at < word.span.end)
    };
    let outer = found.simple.iter().filter(|simple| begins(simple).is_some_and(|at| !is_inside(at)));
    let last = outer.max_by_key(|simple| begins(simple))?;
    // Behind a `!` the exit code is the opposite of the program's.
    let before = source.get(..begins(last)?)?.trim_end_matches([' ', '\t']);
    let negates = before.strip_suffix('!');
    let is_word = |before: &str| {
        before.chars().last().is_none_or(|last| last.is_whitespace() || ";&|({".contains(last))
    };
    if negates.is_some_and(is_word) {
        return None;
    }
    called(last, source).map(|called| called.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(command: &str, exit_code: i32) -> String {
        meaning(command, exit_code, None).unwrap_or_default()
    }

    #[test]
    fn the_last_command_gives_the_meaning() {
        for (command, code, part) in [
            ("grep x f", 1, "no match"),
            ("cd a && sudo rg -n 'a b' . 2>/dev/null", 1, "no match"),
            ("cat f | grep x", 1, "no match"),
            ("diff a b;", 1, "differ"),
            ("diff <(sort a) <(sort b)", 1, "differ"),
            ("find / -name x", 1, "could not be looked at"),
            ("test -f x", 1, "false"),
            ("[ -f x ]", 1, "false"),
            ("grep x f; [[ -f x ]]", 1, "false"),
            ("git diff --exit-code", 1, "differences"),
            ("curl -f http://x", 22, "HTTP error"),
            ("curl http://x", 28, "time was up"),
            ("for f in *; do grep x $f; done", 1, "no match"),
        ] {
            assert!(says(command, code).contains(part), "{command}: {}", says(command, code));
        }
        for (command, code) in [
            ("grep x f", 2),
            ("grep x f", 0),
            ("grep x f | head", 1),
            ("grep x f; false", 1),
            ("! grep x f", 1),
            ("a; ! grep x f", 1),
            ("echo grep", 1),
            ("make", 2),
            ("grep x f; ((i))", 1),
            ("'grep", 1),
            ("$X", 1),
            ("curl x", 130),
            ("x", 255),
        ] {
            assert_eq!(says(command, code), "", "{command}");
        }
    }

    #[test]
    fn signals_are_named() {
        assert!(says("make", 137).contains("SIGKILL") && says("make", 139).contains("SIGSEGV"));
        assert_eq!(meaning("x", 143, Some(15)).unwrap(), "ended by SIGTERM: somebody asked it to end");
        assert_eq!(meaning("x", 130, Some(2)), None);
    }
}
