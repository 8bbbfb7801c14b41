//! Which program a simple command really runs.
//!
//! `sudo -u me env A=1 nohup make` runs `nohup`, and `make` behind that. Programs that only run another one, with other
//! rights, variables or times, are passed over, with those of their options that are known. Of one that is called in a way that
//! is not known here, nothing behind it is looked at.

use crate::policy::commands::{SimpleCommand, is_assignment};
use crate::policy::token::Word;

/// A program and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Called {
    /// Its name, without the folder.
    pub(super) name: String,
    /// Its arguments, as far as they are known before they are expanded.
    pub(super) arguments: Vec<String>,
    /// Whether something in front of it ends it after a while.
    pub(super) is_timed: bool,
}

/// Programs that run the one that is named behind them: options that take a value, and words that stand in front of its name.
const RUNNERS: [(&str, &[&str], usize); 13] = [
    ("builtin", &[], 0),
    ("command", &[], 0),
    ("doas", &["-C", "-u"], 0),
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("exec", &["-a"], 0),
    ("ionice", &["-c", "--class", "-n", "--classdata"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("nocache", &[], 0),
    ("stdbuf", &["-i", "--input", "-o", "--output", "-e", "--error"], 0),
    (
        "sudo",
        &[
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u", "--chdir", "--group", "--host",
            "--prompt", "--user",
        ],
        0,
    ),
    ("time", &["-f", "--format", "-o", "--output"], 0),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    ("unbuffer", &[], 0),
];

/// Returns what a simple command of `source` runs. None where its name is not known before it runs.
pub(super) fn called(command: &SimpleCommand, source: &str) -> Option<Called> {
    // By itself a bracket is no pattern but a name.
    let known =
        |word: &Word| word.literal(source).or_else(|| (word.text(source) == "[").then(|| "[".to_owned()));
    let assignments = command.words.iter().take_while(|word| is_assignment(word.text(source))).count();
    let words = command.words.get(assignments..).unwrap_or_default();
    known(words.first()?)?;
    let words = words.iter().map(|word| known(word).unwrap_or_else(|| word.text(source).to_owned()));
    behind_runners(words.collect())
}

/// Returns what words run whose first is a name.
pub(super) fn behind_runners(mut words: Vec<String>) -> Option<Called> {
    let mut is_timed = false;
    loop {
        let path = words.first()?;
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let arguments = words.split_off(1);
        let Some(next) = behind(&name, &arguments) else { return Some(Called { name, arguments, is_timed }) };
        is_timed |= name == "timeout";
        words = arguments.get(next..).unwrap_or_default().to_vec();
    }
}

/// Returns where the name of the program stands that the runner `name` runs. None if it is none, or runs nothing.
fn behind(name: &str, arguments: &[String]) -> Option<usize> {
    let (_, valued, in_front) = RUNNERS.iter().find(|(runner, ..)| *runner == name)?;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        // `command -v x` looks `x` up.
        if name == "command" && matches!(argument.as_str(), "-v" | "-V") {
            return None;
        }
        if argument == "--" {
            at += 1;
            break;
        }
        let takes_value = valued.contains(&argument.as_str());
        let is_option = argument.starts_with('-') && (argument.len() > 1 || name == "env");
        let is_set = matches!(name, "env" | "sudo" | "doas") && is_assignment(argument);
        if !(is_option || is_set) {
            break;
        }
        at += if takes_value { 2 } else { 1 };
    }
    at += in_front;
    (at < arguments.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::commands::commands;

    fn of(source: &str) -> Option<(String, String, bool)> {
        let found = commands(source).unwrap();
        let called = called(found.simple.first()?, source)?;
        Some((called.name, called.arguments.join(" "), called.is_timed))
    }

    #[test]
    fn runners_are_passed_over() {
        for (source, name, arguments, is_timed) in [
            ("make all", "make", "all", false),
            ("A=1 /usr/bin/nohup x", "nohup", "x", false),
            ("sudo -u me env -i A=1 nohup \"x y\"", "nohup", "x y", false),
            ("timeout -s KILL 5m npm start", "npm", "start", true),
            ("exec -a me setsid x", "setsid", "x", false),
            ("command -v nohup", "command", "-v nohup", false),
            ("command nohup x", "nohup", "x", false),
            ("nice -n 5 vite $PORT", "vite", "$PORT", false),
            ("env", "env", "", false),
            ("'no'hup x", "nohup", "x", false),
            ("env -- x", "x", "", false),
        ] {
            assert_eq!(of(source), Some((name.into(), arguments.into(), is_timed)), "{source}");
        }
        assert_eq!(of("$X nohup"), None);
        assert_eq!(of("A=1"), None);
    }
}
