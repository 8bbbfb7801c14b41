//! SHA-256.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes`, in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Reads to the end, and returns the SHA-256 of all there was, in lower-case hexadecimal, and its length in bytes. Each piece goes to `each`
/// as it comes.
///
/// # Errors
///
/// Fails if reading does, or `each`.
pub fn sha256_of(
    mut from: impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(String, u64)> {
    let (mut digest, mut length) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok((hex(&digest.finalize()), length)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(&piece[..read]);
        each(&piece[..read])?;
        length += read as u64;
    }
}

/// Read at once: it stays in the processor's cache while it is hashed and passed on.
const PIECE: usize = 128 << 10;

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
