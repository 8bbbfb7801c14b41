//! SHA-256.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes`, in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
