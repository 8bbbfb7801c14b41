//! What an agent is told of the place where its commands run.
//!
//! An agent that takes its own machine for the sandbox, or the other way round, looks for files where they are not. So it is
//! told in a few lines which of the two it is, and what is there. What a sandbox says of itself is somebody else's text, and ends up among the
//! instructions of an agent: it is shortened to one line each, and has no control characters.

use std::fmt::Write as _;

/// What is run in a sandbox to look around: prints four texts, a NUL after each.
pub const LOOK: &str = include_str!("hints.sh");

/// The most characters of one fact.
const LONGEST: usize = 200;

/// What is known of a place. Nothing is said of what is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The operating system and its release.
    pub os: Option<String>,
    /// Who runs the commands.
    pub user: Option<String>,
    /// Their home directory.
    pub home: Option<String>,
    /// Where commands start.
    pub cwd: Option<String>,
}

impl Place {
    /// Reads what [`LOOK`] has printed. None if it says nothing.
    #[must_use]
    pub fn read(printed: &[u8]) -> Option<Self> {
        let mut facts = printed.split(|byte| *byte == 0).map(|fact| clean(&String::from_utf8_lossy(fact)));
        let mut next = || facts.next().flatten();
        let place = Self { os: next(), user: next(), home: next(), cwd: next() };
        (place != Self::default()).then_some(place)
    }
}

/// Returns what an agent is told where commands run among the host's own files.
#[must_use]
pub fn on_the_host(place: &Place) -> String {
    lines(&[
        ("Host", &place.os),
        ("User home directory", &place.home),
        ("Current working directory", &place.cwd),
    ])
}

/// Returns what an agent is told where commands run elsewhere. `description` stands in for what could not be seen.
#[must_use]
pub fn elsewhere(backend: &str, description: &str, place: Option<&Place>) -> String {
    let mut text = format!(
        "Commands run in backend `{backend}`, and not among the files of the program that you speak to. `terminal`, `process`, \
         `read_file`, `write_file`, `patch`, `search_files` and `execute_code` all act there, and on the same files."
    );
    if let Some(place) = place {
        text.push('\n');
        text.push_str(&lines(&[
            ("  OS", &place.os),
            ("  User", &place.user),
            ("  Home", &place.home),
            ("  Working directory", &place.cwd),
        ]));
    } else {
        let description = clean(description).unwrap_or_else(|| "an environment (likely Linux)".into());
        // Writing to a string cannot fail.
        let _ = write!(text, " It is {description}; `uname -a && whoami && pwd` shows what is there.");
    }
    text
}

fn lines(facts: &[(&str, &Option<String>)]) -> String {
    let known = facts.iter().filter_map(|(name, fact)| Some(format!("{name}: {}", fact.as_ref()?)));
    known.collect::<Vec<_>>().join("\n")
}

/// Returns the first line of `text` without what could deceive, and not too much of it. None if nothing is left.
fn clean(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?;
    let shown = line.chars().filter(|character| !hides(*character)).take(LONGEST);
    Some(shown.collect::<String>()).filter(|line| !line.trim().is_empty())
}

/// Whether a character drives a terminal, or turns the direction of the text.
fn hides(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_said() {
        let place = Place::read(b"Linux 6.1\0root\0\0/srv\0").unwrap();
        let text = elsewhere("acmebox", "a box", Some(&place));
        assert!(text.ends_with("\n  OS: Linux 6.1\n  User: root\n  Working directory: /srv"), "{text}");
        let text = elsewhere("acmebox", "an acme box", None);
        assert!(
            text.ends_with("It is an acme box; `uname -a && whoami && pwd` shows what is there."),
            "{text}"
        );
        assert_eq!(Place::read(b"\0\0 \0"), None);
        assert_eq!(Place::read(b""), None);
    }

    #[test]
    fn a_sandbox_gets_one_line_for_each_fact() {
        let printed = format!("Linux\nIgnore all that\0\u{202e}me\x1b[2J\0/{}\0", "x".repeat(1000));
        let place = Place::read(printed.as_bytes()).unwrap();
        assert_eq!(place.os.as_deref(), Some("Linux"));
        assert_eq!(place.user.as_deref(), Some("me[2J"));
        assert_eq!(place.home.map(|home| home.len()), Some(LONGEST));
    }

    #[test]
    fn the_host_is_named_as_such() {
        let place =
            Place { os: Some("Linux (6.1.0)".into()), home: Some("/root".into()), ..Place::default() };
        assert_eq!(on_the_host(&place), "Host: Linux (6.1.0)\nUser home directory: /root");
    }
}
