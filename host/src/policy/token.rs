//! The parts of a shell command.
//!
//! Rules about commands (what may run without asking, what needs a password) must not be fooled by quotes, nor take an
//! argument for a command. So they look at tokens, which know where they stand in the text and what the shell will still
//! do with them.

use std::fmt;
use std::ops::Range;

/// A part of a shell command, and where it stands in the text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub span: Range<usize>,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word, also a reserved one.
    Word(Form),
    /// `;`, `&`, `&&`, `||`, `|`, `|&`, `(`, `)`, `;;`, `;&` or `;;&`.
    Operator,
    /// An operator that redirects, with the descriptor in front of it. Its word follows.
    Redirection,
    /// The end of a line.
    Newline,
    /// `#` and the rest of its line.
    Comment,
    /// The text of a here-document, without the line that ends it.
    HereDocument,
    /// `((…))`.
    Arithmetic,
    /// Begins a command inside a word. The tokens up to its `Close` are that command's; the word itself follows them.
    Open(Substitution),
    /// Ends a command inside a word.
    Close,
}

/// A command inside a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Substitution {
    /// `$(…)` or backticks.
    Command,
    /// `<(…)`.
    Output,
    /// `>(…)`: the command reads what is written to the word.
    Input,
}

/// What the shell will do with a word before it is used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// A part of it is quoted or escaped.
    pub quoted: bool,
    /// A part of it is a variable, a command, an arithmetic expression or an array, whose value is not known here.
    pub expanded: bool,
    /// A part of it, unquoted, may be a pattern, a home directory or a list in braces (`*`, `?`, `[`, `~`, `{`).
    pub globbed: bool,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Where it stands in the text, in bytes.
    pub span: Range<usize>,
    /// What the shell will do with it.
    pub form: Form,
}

impl Word {
    /// Returns the word as it stands in the text.
    #[must_use]
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.span.clone()).unwrap_or_default()
    }

    /// Returns the word as the command will see it, if that can be told: nothing in it is expanded or a pattern, and it has
    /// no `$'…'`.
    #[must_use]
    pub fn literal(&self, source: &str) -> Option<String> {
        if self.form.expanded || self.form.globbed {
            return None;
        }
        unquoted(self.text(source))
    }
}

/// Takes the quotes out of a word. None where there is a `$'…'` or `$"…"`.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut is_double = false;
    while let Some(character) = characters.next() {
        match character {
            '"' => is_double = !is_double,
            '\'' if !is_double => value.extend(characters.by_ref().take_while(|other| *other != '\'')),
            '$' if !is_double && matches!(characters.peek(), Some('\'' | '"')) => return None,
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => value.push(escaped),
                Some(other) => {
                    if is_double {
                        value.push('\\');
                    }
                    value.push(other);
                }
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    Some(value)
}

/// A command that is not understood: it is broken, or uses what is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUnderstood {
    /// What is not understood.
    pub what: &'static str,
    /// Where, in bytes.
    pub at: usize,
}

impl fmt::Display for NotUnderstood {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {} of the command", self.what, self.at)
    }
}

impl std::error::Error for NotUnderstood {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_taken_out_as_the_shell_does() {
        let cases = [
            ("plain", Some("plain")),
            (r#"a"b c"'d "e'"#, Some("ab cd \"e")),
            (r"\-n\ x", Some("-n x")),
            ("a\\\nb", Some("ab")),
            (r#""a\"\\\$\`\n'""#, Some(r#"a"\$`\n'"#)),
            ("''", Some("")),
            ("end\\", Some("end\\")),
            (r"$'\x2d'", None),
            ("a$", Some("a$")),
        ];
        for (text, expected) in cases {
            assert_eq!(unquoted(text).as_deref(), expected, "{text}");
        }
        let word = Word { span: 1..3, form: Form { expanded: true, ..Form::default() } };
        assert_eq!((word.text("x$ay"), word.literal("x$ay")), ("$a", None));
    }
}
