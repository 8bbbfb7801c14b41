//! How a script is brought to its place: the command that is run there, and what that reads first.
//!
//! The command is fixed text: it reads a *launcher* from its standard input and becomes that. The launcher reads the rest: which variables
//! the script sees, the module `hostel_tools`, and the script. So nothing of the script stands in an argument list or in a file that others can
//! read, and nothing has to be there before. The input stays open, and answers to calls come after.

use std::fmt::Write as _;

use super::environ;
use crate::exec::in_quotes;

/// What a script is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools) enum Language {
    /// Python 3.
    #[default]
    Python,
    /// bash.
    Bash,
    /// JavaScript.
    Node,
}

impl Language {
    /// Returns the language that an agent means.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "python" | "python3" | "py" => Some(Self::Python),
            "bash" | "shell" | "sh" => Some(Self::Bash),
            "node" | "nodejs" | "javascript" | "js" => Some(Self::Node),
            _ => None,
        }
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Bash => "bash",
            Self::Node => "node",
        }
    }

    /// Returns the program that it needs.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Bash => "bash",
            Self::Node => "node",
        }
    }

    /// Returns the command that reads a launcher and becomes it, whatever functions and settings
    /// the session has.
    pub(super) fn command(self) -> String {
        let (start, boot) = match self {
            Self::Python => ("python3 -I -c", include_str!("python/boot.py")),
            Self::Bash => ("bash -p -c", include_str!("bash/boot.sh")),
            Self::Node => ("env -u NODE_OPTIONS node -e", include_str!("node/boot.js")),
        };
        format!("\\exec {start} {}", in_quotes(boot.trim_end()))
    }

    /// Returns what the launcher and its script are made of, in the order in which they are read.
    fn parts(self, script: &str) -> Vec<Vec<u8>> {
        let texts = match self {
            Self::Python => &[include_str!("python/hostel_tools.py"), include_str!("python/run.py")][..],
            Self::Bash => &[include_str!("bash/hostel_tools.sh")],
            Self::Node => &[include_str!("node/hostel_tools.js"), include_str!("node/run.js")],
        };
        let launcher = match self {
            Self::Python => include_str!("python/launch.py"),
            Self::Bash => include_str!("bash/launch.sh"),
            Self::Node => include_str!("node/launch.js"),
        };
        let mut parts = vec![launcher.into(), environ::rule().into_bytes()];
        parts.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
        parts.push(script.into());
        parts
    }

    /// Returns what the command reads first: a line with the token, the name of the launcher's folder and the size of each part, and
    /// the parts.
    pub(super) fn input(self, token: &str, folder: &str, script: &str) -> Vec<u8> {
        let parts = self.parts(script);
        let sizes = parts.iter().fold(String::new(), |mut sizes, part| {
            // Writing to a string cannot fail.
            let _ = write!(sizes, " {}", part.len());
            sizes
        });
        let mut input = format!("{token} {folder}{sizes}\n").into_bytes();
        input.extend(parts.concat());
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn the_first_line_says_how_large_the_parts_are() {
        for language in [Language::Python, Language::Bash, Language::Node] {
            let token = random::hex::<16>().unwrap();
            let input = language.input(&token, "folder", "echo ä\n");
            let end = input.iter().position(|byte| *byte == b'\n').unwrap();
            let line = std::str::from_utf8(&input[..end]).unwrap();
            let mut words = line.split(' ');
            assert!(words.next() == Some(token.as_str()) && token.len() == 32);
            assert_eq!(words.next(), Some("folder"));
            let sizes: Vec<usize> = words.map(|size| size.parse().unwrap()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), input.len() - end - 1, "{language:?}");
            assert!(sizes.last() == Some(&8) && input.ends_with("echo ä\n".as_bytes()));
            assert_eq!(Language::named(language.name()), Some(language));
            assert!(!language.command().contains("echo ä"));
        }
        assert_eq!((Language::named(""), Language::named("ruby")), (Some(Language::Python), None));
    }
}
