//! Names that cannot be guessed.

use std::fmt::Write as _;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes of a name.
const BYTES: usize = 16;

/// Returns 32 hexadecimal digits at random.
///
/// # Errors
///
/// Fails if the kernel gives no random bytes.
pub(super) fn name() -> io::Result<String> {
    let mut bytes = [0_u8; BYTES];
    if getrandom(&mut bytes, GetRandomFlags::empty())? < BYTES {
        return Err(io::Error::other("the kernel gave too few random bytes"));
    }
    Ok(bytes.iter().fold(String::with_capacity(2 * BYTES), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let (one, other) = (name().unwrap(), name().unwrap());
        assert!(one != other && one.len() == 32);
    }
}
