//! What a shell is told to run: typed by a person, or read from a file or a pipe.
//!
//! A person gets a prompt, can edit the line and call back what was typed before. A script gets none of that: its lines are read as
//! they are. Either way a command that goes on in the next line is read to its end.

use std::io::{self, BufRead};

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{ColorMode, Config, Editor};

use super::print::say;
use super::shell_history::{History, MOST};
use super::shell_prompt::{MORE, Prompt};
use super::shell_unfinished::Unfinished;
use crate::home::Home;

/// Where commands come from.
pub(super) enum Input {
    Person(Box<Person>),
    Script,
}

/// A person at a terminal.
pub(super) struct Person {
    editor: Editor<(), MemHistory>,
    /// None once it could not be written to.
    history: Option<History>,
}

/// What was read.
pub(super) enum Told {
    Command(String),
    /// Nothing to run: an empty line, or one that was given up.
    Nothing,
    End,
}

/// One line.
enum Line {
    Text(String),
    GivenUp,
    End,
}

impl Input {
    /// Prepares to ask a person, whose history is that of `home`.
    pub(super) fn person(home: &Home) -> io::Result<Self> {
        let colours = match std::env::var_os("NO_COLOR") {
            Some(_) => ColorMode::Disabled,
            None => ColorMode::Enabled,
        };
        let config = Config::builder().max_history_size(MOST).map_err(failed)?.color_mode(colours).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        // Without one, no prompt has colours.
        editor.set_helper(Some(()));
        let history = History::new(home);
        let loaded = history.load();
        let mut person = Person { editor, history: Some(history) };
        match loaded {
            Ok(commands) => {
                for command in commands {
                    person.editor.add_history_entry(command).map_err(failed)?;
                }
            }
            Err(error) => person.forget("read", &error),
        }
        Ok(Self::Person(Box::new(person)))
    }

    /// Reads the next command.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, which is the end of all.
    pub(super) fn next(&mut self, prompt: &Prompt) -> io::Result<Told> {
        let mut command = Unfinished::default();
        loop {
            let line = match self {
                Self::Person(person) if command.has_begun() => person.line(&MORE)?,
                Self::Person(person) => person.line(prompt)?,
                Self::Script => read_line(&mut io::stdin().lock())?,
            };
            match line {
                Line::GivenUp => return Ok(Told::Nothing),
                Line::End if !command.has_begun() => return Ok(Told::End),
                // What is there is run: the shell says best what is missing.
                Line::End => break,
                Line::Text(line) if !command.has_begun() && says_nothing(&line) => return Ok(Told::Nothing),
                Line::Text(line) if command.push(&line) => break,
                Line::Text(_) => {}
            }
        }
        let command = command.into_text();
        if let Self::Person(person) = self {
            person.remember(&command)?;
        }
        Ok(Told::Command(command))
    }
}

impl Person {
    fn line<P: rustyline::Prompt>(&mut self, prompt: &P) -> io::Result<Line> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Line::GivenUp),
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                say("warning", "what was typed is not valid UTF-8");
                Ok(Line::GivenUp)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn remember(&mut self, command: &str) -> io::Result<()> {
        if command.starts_with(' ') {
            return Ok(());
        }
        self.editor.add_history_entry(command).map_err(failed)?;
        if let Some(Err(error)) = self.history.as_ref().map(|history| history.add(command)) {
            self.forget("written", &error);
        }
        Ok(())
    }

    /// Keeps no history any more, since its file is not to be had.
    fn forget(&mut self, done: &str, error: &io::Error) {
        let Some(history) = self.history.take() else { return };
        let path = history.path();
        say("warning", &format!("the history `{}` could not be {done}: {error}", path.display()));
        say("hint", "commands are kept for this shell only; see to the file, or remove it");
    }
}

fn failed(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// Reads a line of a script.
fn read_line(script: &mut impl BufRead) -> io::Result<Line> {
    let mut bytes = Vec::new();
    if script.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(Line::End);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("a line is not valid UTF-8"))?;
    Ok(Line::Text(text))
}

/// Returns whether a line is empty or a comment.
fn says_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line_to_its_end() {
        let mut script: &[u8] = b"a\n\n b \nlast";
        let mut lines = Vec::new();
        while let Line::Text(line) = read_line(&mut script).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["a", "", " b ", "last"]);
        let mut script: &[u8] = b"\xff\n";
        assert!(read_line(&mut script).is_err());
    }

    #[test]
    fn comments_and_empty_lines_say_nothing() {
        assert!(["", " \t", "# a", "  #!a"].into_iter().all(says_nothing));
        assert!(!["a # b", "'#'", "$#"].into_iter().any(says_nothing));
    }
}
