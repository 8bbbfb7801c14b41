//! The pattern as each program understands it.
//!
//! What an agent writes is a regular expression as ripgrep has them. `grep -P` differs little, `grep -E` much, and which of
//! them there is, only the sandbox knows: so it is given the pattern in every dialect. Three things are made the same in all:
//! `$` also stands before a carriage return at the end of a line, `\<` and `\>` are the edges of words, and `\u00e9` is a
//! character.

use super::extended::{self, Extended};

/// A pattern in each dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patterns {
    /// For `rg`. Its `--crlf` will not do: some releases then print carriage returns of their own.
    pub(super) ripgrep: String,
    /// For `grep -P`.
    pub(super) perl: String,
    /// For `grep -E`, or what in the pattern it has no word for.
    pub(super) extended: Result<Extended, String>,
}

impl Patterns {
    /// Translates a pattern. Whether it is sound, the programs will say.
    pub(super) fn new(pattern: &str) -> Self {
        Self {
            ripgrep: rewritten(pattern, false),
            perl: rewritten(pattern, true),
            extended: extended::translate(pattern),
        }
    }
}

/// What `$` becomes.
const END: &str = r"(?:\r?$)";

/// Rewrites what ripgrep and `grep -P`, for which it is if `perl` is set, read differently.
fn rewritten(pattern: &str, perl: bool) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut class = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('<' | '>') if !class => text.push_str(r"\b"),
                Some('u') if perl => {
                    text.push_str(r"\x");
                    if rest.peek().is_some_and(char::is_ascii_hexdigit) {
                        let digits = std::iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit)).take(4);
                        text.extend(std::iter::once('{').chain(digits).chain(std::iter::once('}')));
                    }
                }
                next => text.extend(std::iter::once('\\').chain(next)),
            },
            '[' if !class => {
                class = true;
                text.push('[');
                text.extend(rest.next_if_eq(&'^'));
                text.extend(rest.next_if_eq(&']'));
            }
            '[' if rest.peek() == Some(&':') => {
                text.push('[');
                for character in rest.by_ref() {
                    text.push(character);
                    if character == ']' {
                        break;
                    }
                }
            }
            ']' => {
                class = false;
                text.push(']');
            }
            '$' if !class => text.push_str(END),
            _ => text.push(character),
        }
    }
    text
}

/// Returns whether a pattern asks for a line break: itself, or as `\n` outside of brackets.
pub(super) fn has_line_break(pattern: &str) -> bool {
    let mut rest = pattern.chars();
    let mut class = false;
    while let Some(character) = rest.next() {
        match character {
            '\n' => return true,
            '\\' => match rest.next() {
                Some('n') if !class => return true,
                Some('\n') => return true,
                _ => {}
            },
            '[' => class = true,
            ']' => class = false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_read_differently_is_rewritten() {
        for (pattern, ripgrep, perl) in [
            ("plain", "plain", "plain"),
            ("end$", r"end(?:\r?$)", r"end(?:\r?$)"),
            (r"a\$b[$]$", r"a\$b[$](?:\r?$)", r"a\$b[$](?:\r?$)"),
            (r"\<word\>", r"\bword\b", r"\bword\b"),
            (r"[\<]\\<", r"[\<]\\<", r"[\<]\\<"),
            (r"caf\u00e9s\u{e9}", r"caf\u00e9s\u{e9}", r"caf\x{00e9}s\x{e9}"),
            (r"[[:alpha:]$]$", r"[[:alpha:]$](?:\r?$)", r"[[:alpha:]$](?:\r?$)"),
            ("[]$]$", r"[]$](?:\r?$)", r"[]$](?:\r?$)"),
            ("[", "[", "["),
            (r"\", r"\", r"\"),
        ] {
            let patterns = Patterns::new(pattern);
            assert_eq!((patterns.ripgrep.as_str(), patterns.perl.as_str()), (ripgrep, perl), "{pattern}");
        }
    }
}
