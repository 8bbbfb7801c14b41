//! Names that people and agents keep, type back and mix up, and that become names of files.
//!
//! So one is short, says what it is of, cannot be guessed from another one, and nothing else is taken for one.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::random;

/// Bytes at random in a name.
const BYTES: usize = 6;

/// What names of one kind are of.
pub trait Kind: Clone {
    /// What every name begins with.
    const PREFIX: &'static str;
    /// What has such a name: `a process`.
    const WHAT: &'static str;
}

/// A name: the prefix of its kind, and twelve hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String", bound = "K: Kind")]
pub struct ShortId<K>(String, PhantomData<K>);

impl<K: Kind> ShortId<K> {
    /// Makes a name at random.
    ///
    /// # Errors
    ///
    /// Fails if the kernel gives no random bytes.
    pub fn random() -> io::Result<Self> {
        Ok(Self(format!("{}{}", K::PREFIX, random::hex::<BYTES>()?), PhantomData))
    }

    /// Reads a name. None for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(K::PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 2 * BYTES && digits.bytes().all(is_digit))
            .then(|| Self(text.to_owned(), PhantomData))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<K> fmt::Display for ShortId<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<K: Kind> TryFrom<String> for ShortId<K> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{}` is no name of {}", text.escape_debug(), K::WHAT))
    }
}

impl<K> From<ShortId<K>> for String {
    fn from(id: ShortId<K>) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Cup;

    impl Kind for Cup {
        const PREFIX: &'static str = "cup_";
        const WHAT: &'static str = "a cup";
    }

    #[test]
    fn names_are_read_back_and_nothing_else_is() {
        let id = ShortId::<Cup>::random().unwrap();
        assert_eq!(ShortId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(ShortId::random().unwrap(), id);
        let bad =
            ["", "cup_", "cup_0123456789a", "cup_0123456789abc", "cup_0123456789AB", "../_0123456789ab"];
        assert!(bad.iter().all(|text| ShortId::<Cup>::parse(text).is_none()));
        let read = serde_json::from_str::<ShortId<Cup>>("\"../../x\"");
        assert!(read.unwrap_err().to_string().contains("`../../x` is no name of a cup"));
    }
}
