//! Dotted keys: `terminal.backend`, `hooks.1.run`.

use std::fmt;

/// Why a text is not a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// Two dots in a row, or one at an end.
    #[error("`{0}` is not a key: it has an empty part")]
    EmptyPart(String),
    /// A character that no key has.
    #[error(
        "`{0}` is not a key: parts are of letters, digits, `_` and `-`, and list items are numbered as in `hooks.1.run`"
    )]
    Character(String),
}

/// A path through the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(Vec<String>);

impl Key {
    /// Reads a dotted key.
    ///
    /// # Errors
    ///
    /// Fails if a part is empty or holds a character that no key has.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        if parts.iter().any(String::is_empty) {
            return Err(KeyError::EmptyPart(text.escape_debug().to_string()));
        }
        let plain = |part: &String| {
            part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        if !parts.iter().all(plain) {
            return Err(KeyError::Character(text.escape_debug().to_string()));
        }
        Ok(Self(parts))
    }

    /// The parts, outermost first.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// The key above, if this is not outermost.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        (self.0.len() > 1).then(|| Self(self.0[..self.0.len() - 1].to_vec()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_and_strange_characters_are_refused() {
        assert_eq!(Key::parse("terminal.backend").unwrap().parts(), ["terminal", "backend"]);
        for bad in ["", "agent.", "a..b", ".a"] {
            assert!(matches!(Key::parse(bad), Err(KeyError::EmptyPart(_))), "{bad}");
        }
        for bad in ["hooks[1].run", "a b", "a:b", "ä", "a\nb"] {
            assert!(matches!(Key::parse(bad), Err(KeyError::Character(_))), "{bad}");
        }
    }
}
