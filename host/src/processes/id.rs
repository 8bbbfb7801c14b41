//! Names of background processes.
//!
//! A name is what an agent keeps, types back and mixes up, and it becomes the name of a folder. So it is short, says what it
//! is, cannot be guessed from another one, and nothing else is taken for one.

use std::fmt;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

/// What every name begins with.
const PREFIX: &str = "proc_";

/// Digits after it.
const DIGITS: usize = 12;

/// The name of one background process: `proc_` and twelve hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessId(String);

impl ProcessId {
    /// Makes a name at random.
    ///
    /// # Errors
    ///
    /// Fails if the kernel gives no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 8];
        let got = getrandom(&mut bytes, GetRandomFlags::empty())?;
        if got < bytes.len() {
            return Err(io::Error::other("the kernel gave too few random bytes"));
        }
        let number = u64::from_ne_bytes(bytes) >> 16;
        Ok(Self(format!("{PREFIX}{number:012x}")))
    }

    /// Reads a name. None for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == DIGITS && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ProcessId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no name of a process"))
    }
}

impl From<ProcessId> for String {
    fn from(id: ProcessId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_nothing_else_is() {
        let id = ProcessId::random().unwrap();
        assert_eq!(ProcessId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(ProcessId::random().unwrap(), id);
        let bad =
            ["", "proc_", "proc_0123456789a", "proc_0123456789abc", "proc_0123456789AB", "../c_0123456789ab"];
        assert!(bad.iter().all(|text| ProcessId::parse(text).is_none()));
        assert!(serde_json::from_str::<ProcessId>("\"../../x\"").is_err());
    }
}
