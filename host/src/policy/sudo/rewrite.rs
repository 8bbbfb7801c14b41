//! Lets `sudo` read its password from the command's standard input.
//!
//! `sudo` asks the terminal, and there is none. With `-S` it reads a line from its standard input instead, so whoever runs
//! the command puts one line with the password in front of what the command reads, for each `sudo` that was rewritten.
//! The password is so in no argument and no variable. A `sudo` that reads from a pipe or a file, or runs in the background,
//! would take the first line of something else for the password: it is left alone, and so is one that says what it wants.

use crate::policy::commands::{SimpleCommand, commands, is_assignment};
use crate::policy::token::Word;

/// What is put behind the name: ask even if somebody was asked a moment ago, read the password from standard input, and print no
/// prompt. Without the first, a second `sudo` would not read its line, and whatever reads next would get the password.
const OPTIONS: &str = " -k -S -p ''";

/// A command whose `sudo`s read their password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The command.
    pub command: String,
    /// How many lines with the password go in front of its standard input.
    pub passwords: usize,
    /// How many `sudo`s were left alone because their standard input is another: they cannot be given a password.
    pub out_of_reach: usize,
}

/// Rewrites a shell command so that each `sudo` in it that may need a password reads it. None if there is none, if the
/// command defines what `sudo` means, or if it is not understood: it is then to be run as it is.
#[must_use]
pub fn rewrite(command: &str) -> Option<Rewritten> {
    if !command.contains("sudo") {
        return None;
    }
    let found = commands(command).ok()?;
    if found.functions.iter().any(|name| command.get(name.clone()) == Some("sudo")) {
        return None;
    }
    let mut ends = Vec::new();
    let mut out_of_reach = 0;
    for simple in &found.simple {
        match asking(simple, command) {
            Some(_) if simple.reads_elsewhere => out_of_reach += 1,
            Some(name) => ends.push(name.span.end),
            None => {}
        }
    }
    if ends.is_empty() {
        return None;
    }
    ends.sort_unstable();
    let mut rewritten = String::with_capacity(command.len() + ends.len() * OPTIONS.len());
    let mut copied = 0;
    for end in &ends {
        rewritten.push_str(command.get(copied..*end)?);
        rewritten.push_str(OPTIONS);
        copied = *end;
    }
    rewritten.push_str(command.get(copied..)?);
    Some(Rewritten { command: rewritten, passwords: ends.len(), out_of_reach })
}

/// Returns the word that is `sudo`, if this command is one that may ask for a password.
fn asking<'a>(simple: &'a SimpleCommand, source: &str) -> Option<&'a Word> {
    let is_assigned = |word: &&Word| is_assignment(word.text(source));
    let assignments = simple.words.iter().take_while(is_assigned).count();
    let mut words = &simple.words[assignments..];
    if is_named(words.first()?, "env", source) {
        words = after_env(&words[1..], source);
    }
    let (name, arguments) = words.split_first()?;
    (is_named(name, "sudo", source) && may_ask(arguments, source)).then_some(name)
}

/// Returns whether a word is this name, or an absolute path to it, without quotes.
fn is_named(word: &Word, name: &str, source: &str) -> bool {
    let text = word.text(source);
    let is_path = || text.starts_with('/') && text.rsplit('/').next() == Some(name);
    !word.form.quoted && !word.form.expanded && !word.form.globbed && (text == name || is_path())
}

/// Returns what `env` runs. Nothing if it has options that are not known here.
fn after_env<'a>(words: &'a [Word], source: &str) -> &'a [Word] {
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        rest = match first.text(source) {
            "-u" | "--unset" | "-C" | "--chdir" => after.get(1..).unwrap_or_default(),
            "-" | "--" | "-i" | "-v" | "--ignore-environment" | "--debug" => after,
            text if text.starts_with("-u")
                || text.starts_with("--unset=")
                || text.starts_with("--chdir=") =>
            {
                after
            }
            text if is_assignment(text) => after,
            text if text.starts_with('-') => return &[],
            _ => return rest,
        };
    }
    rest
}

/// What there is to know of the options of a `sudo`.
#[derive(Debug, Default)]
struct Options {
    /// It must not ask, reads the password already, asks in another way, or does something that needs none.
    settled: bool,
    /// Runs something without naming a command: a shell, or nothing but the check itself.
    acts: bool,
}

/// Options with one letter that take a value.
const VALUED: &str = "CDRTUacghprtu";

/// Long options that take a value.
const VALUED_LONG: [&str; 13] = [
    "chdir",
    "chroot",
    "close-from",
    "command-timeout",
    "group",
    "host",
    "other-user",
    "prompt",
    "role",
    "type",
    "user",
    "auth-type",
    "login-class",
];

fn may_ask(arguments: &[Word], source: &str) -> bool {
    let mut options = Options::default();
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        // What is not known before it runs is taken for the command.
        let text = first.literal(source).unwrap_or_default();
        let takes_next = if text == "--" {
            rest = after;
            break;
        } else if let Some(long) = text.strip_prefix("--") {
            options.long(long)
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            options.short(letters, after.is_empty())
        } else {
            break;
        };
        rest = if takes_next { after.get(1..).unwrap_or_default() } else { after };
    }
    !options.settled && (options.acts || !rest.is_empty())
}

impl Options {
    /// Takes a long option, and returns whether the next word is its value. It may be shortened.
    fn long(&mut self, long: &str) -> bool {
        let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        let is = |whole: &str| name.len() > 1 && whole.starts_with(name);
        let settled = ["non-interactive", "stdin", "askpass", "remove-timestamp", "version", "help", "list"];
        if settled.into_iter().any(is) {
            self.settled = true;
        }
        self.acts |= ["validate", "shell", "login", "edit"].into_iter().any(is);
        !has_value && VALUED_LONG.into_iter().any(is)
    }

    /// Takes letters, and returns whether the next word is the value of the last.
    fn short(&mut self, letters: &str, is_last: bool) -> bool {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            match letter {
                'h' if is_last && rest.as_str().is_empty() => self.settled = true,
                'n' | 'S' | 'A' | 'K' | 'V' | 'l' => self.settled = true,
                'v' | 's' | 'i' | 'e' => self.acts = true,
                _ if VALUED.contains(letter) => return rest.as_str().is_empty(),
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SUDO` in the expected text stands for what becomes of `sudo`.
    fn check(cases: &[(&str, &str)]) {
        for (source, expected) in cases {
            let rewritten = rewrite(source);
            let found = rewritten.as_ref().map_or(*source, |rewritten| &rewritten.command);
            assert_eq!(found, expected.replace("SUDO", "sudo -k -S -p ''"), "{source}");
            let passwords = rewritten.map_or(0, |rewritten| rewritten.passwords);
            assert_eq!(passwords, expected.matches("SUDO").count(), "{source}");
        }
    }

    #[test]
    fn sudo_in_command_position_reads_its_password() {
        check(&[
            ("sudo id", "SUDO id"),
            ("  sudo\tid", "  SUDO\tid"),
            ("/usr/bin/sudo id", "/usr/bin/SUDO id"),
            ("A=1 B='x y' sudo id", "A=1 B='x y' SUDO id"),
            (
                "env A=1 sudo id; /usr/bin/env -i -u X A=1 sudo id",
                "env A=1 SUDO id; /usr/bin/env -i -u X A=1 SUDO id",
            ),
            ("a; sudo b && sudo c || sudo d", "a; SUDO b && SUDO c || SUDO d"),
            ("sudo a | b", "SUDO a | b"),
            ("(sudo a); { sudo b; }; ! sudo c", "(SUDO a); { SUDO b; }; ! SUDO c"),
            (
                "if sudo a; then sudo b; elif sudo c; then d; else sudo e; fi",
                "if SUDO a; then SUDO b; elif SUDO c; then d; else SUDO e; fi",
            ),
            (
                "while sudo a; do sudo b; done; until sudo c; do d; done",
                "while SUDO a; do SUDO b; done; until SUDO c; do d; done",
            ),
            ("for x in sudo b; do sudo $x; done", "for x in sudo b; do SUDO $x; done"),
            ("case sudo in sudo) sudo a;; esac", "case sudo in sudo) SUDO a;; esac"),
            ("time sudo a; time -p sudo b", "time SUDO a; time -p SUDO b"),
            ("a\nsudo b\\\n c\n", "a\nSUDO b\\\n c\n"),
            ("echo $(sudo a) \"$(sudo b)\" `sudo c`", "echo $(SUDO a) \"$(SUDO b)\" `SUDO c`"),
            ("sudo a \"$(sudo b)\"", "SUDO a \"$(SUDO b)\""),
            ("f() { sudo a; }; f", "f() { SUDO a; }; f"),
            (">f sudo a 2>&1", ">f SUDO a 2>&1"),
            ("echo ä€; sudo écho ü", "echo ä€; SUDO écho ü"),
            ("sudo a # sudo b", "SUDO a # sudo b"),
            ("cat <<E; sudo a\nsudo b\nE\nsudo c", "cat <<E; SUDO a\nsudo b\nE\nSUDO c"),
        ]);
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        check(&[
            ("echo sudo id", "echo sudo id"),
            ("'sudo' id; \"sudo\" id; \\sudo id", "'sudo' id; \"sudo\" id; \\sudo id"),
            ("echo 'a; sudo b' \"; sudo c\"", "echo 'a; sudo b' \"; sudo c\""),
            (
                "sudoedit f; my-sudo a; sudo-x; ./sudo a; $sudo a",
                "sudoedit f; my-sudo a; sudo-x; ./sudo a; $sudo a",
            ),
            ("# sudo a\nb", "# sudo a\nb"),
            ("cat <<E\nsudo a\n$(sudo b)\nE", "cat <<E\nsudo a\n$(sudo b)\nE"),
            ("cat <<-'E'\n\tsudo a\n\tE\n", "cat <<-'E'\n\tsudo a\n\tE\n"),
            ("sudo() { a; }; sudo b", "sudo() { a; }; sudo b"),
            ("function sudo { a; }; sudo b", "function sudo { a; }; sudo b"),
            ("x=sudo; x=(sudo a); env sudo=1 a; sudo=1 b", "x=sudo; x=(sudo a); env sudo=1 a; sudo=1 b"),
            ("[[ a == b || sudo ]]", "[[ a == b || sudo ]]"),
            ("env -S 'a b' sudo c", "env -S 'a b' sudo c"),
            ("a > sudo", "a > sudo"),
            ("which sudo && command -v sudo", "which sudo && command -v sudo"),
        ]);
    }

    #[test]
    fn a_sudo_that_says_what_it_wants_stays() {
        let stay = [
            "-n a",
            "--non-interactive a",
            "--non-int a",
            "-S a",
            "--stdin a",
            "-A a",
            "--askpass a",
            "-k",
            "-K",
            "-V",
            "-h",
            "-l",
            "-l -U bob",
            "--version",
            "--list",
            "--reset-timestamp",
            "",
            "-u bob -n a",
            "-ubob -n a",
            "-Hn a",
            "-nu bob a",
            "'-n' a",
            "--user=bob -n a",
            "--user bob -n a",
            "-u bob",
            "-p x -S a",
        ];
        for arguments in stay {
            assert_eq!(rewrite(&format!("sudo {arguments}")), None, "{arguments}");
        }
        let ask = [
            "a -n",
            "-u bob a -n",
            "-k a",
            "-v",
            "-s",
            "-i",
            "-E a",
            "-u -n a",
            "-p -n a",
            "-- -n",
            "-h box a",
            "--user=n a",
            "-un a",
            "$X",
            "\"$@\"",
            "A=1 a",
            "-e f",
            "--host box a",
        ];
        for arguments in ask {
            let expected = format!("sudo -k -S -p '' {arguments}");
            assert_eq!(
                rewrite(&format!("sudo {arguments}")).map(|found| found.command),
                Some(expected),
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_sudo_that_reads_something_else_stays() {
        check(&[
            ("echo a | sudo tee f", "echo a | sudo tee f"),
            ("sudo a <f; sudo b", "sudo a <f; SUDO b"),
            ("while read x; do sudo a; done <f", "while read x; do sudo a; done <f"),
            ("sudo a &", "sudo a &"),
            ("sudo tee f <<E\nsudo a\nE\nsudo b", "sudo tee f <<E\nsudo a\nE\nSUDO b"),
        ]);
        assert_eq!(
            rewrite("a | sudo b; sudo c").map(|found| (found.passwords, found.out_of_reach)),
            Some((1, 1))
        );
    }

    #[test]
    fn what_is_not_understood_stays() {
        check(&[
            ("sudo 'a", "sudo 'a"),
            ("sudo a; if", "sudo a; if"),
            ("sudo a)", "sudo a)"),
            ("sudo a; ((b) c)", "sudo a; ((b) c)"),
            ("sudo a <<E\nb", "sudo a <<E\nb"),
        ]);
    }

    #[test]
    fn a_long_command_is_read_in_one_go() {
        let long = [
            "sudo a; ",
            "sudo a & ",
            "echo 'sudo' \"$(sudo b)\"\n",
            "a <<E\nE\n",
            "`sudo`",
            "x=(",
            "{ ",
            "((",
            "$((",
            "a <f ",
            "sudo -u ",
            "{1",
        ];
        for part in long {
            let command = format!("sudo x;{}", part.repeat(500_000 / part.len()));
            let rewritten = rewrite(&command).map_or(0, |rewritten| rewritten.passwords);
            assert_eq!(rewritten > 1, part.starts_with("sudo a; ") || part.starts_with("echo"), "{part}");
        }
    }
}
