//! Names of requests.
//!
//! A person types one to say yes, and it becomes the name of a file. So it is short, and nothing else is taken for one.

use std::fmt;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

/// What every name begins with.
const PREFIX: &str = "appr_";

/// Digits after it.
const DIGITS: usize = 12;

/// The name of one request: `appr_` and twelve hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Makes a name at random.
    ///
    /// # Errors
    ///
    /// Fails if the kernel gives no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; 8];
        if getrandom(&mut bytes, GetRandomFlags::empty())? < bytes.len() {
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

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ApprovalId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{}` is no name of a request", text.escape_debug()))
    }
}

impl From<ApprovalId> for String {
    fn from(id: ApprovalId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_nothing_else_is() {
        let id = ApprovalId::random().unwrap();
        assert_eq!(ApprovalId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(ApprovalId::random().unwrap(), id);
        let bad =
            ["", "appr_", "appr_0123456789a", "appr_0123456789AB", "../r_0123456789ab", "proc_0123456789ab"];
        assert!(bad.iter().all(|text| ApprovalId::parse(text).is_none()));
    }
}
