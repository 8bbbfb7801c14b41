//! Words that cannot be guessed.

use std::fmt::Write as _;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// The most bytes that come whole, or not at all (`man 2 getrandom`).
const MOST: usize = 256;

/// Returns the hexadecimal digits, in lower case, of so many bytes at random.
///
/// # Errors
///
/// Fails if the kernel gives no random bytes.
pub fn hex<const BYTES: usize>() -> io::Result<String> {
    const { assert!(BYTES <= MOST) };
    let mut bytes = [0_u8; BYTES];
    if getrandom(&mut bytes, GetRandomFlags::empty())? < BYTES {
        return Err(io::Error::other("the kernel gave too few random bytes"));
    }
    Ok(bytes.iter().fold(String::with_capacity(2 * BYTES), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let (one, other) = (hex::<16>().unwrap(), hex::<16>().unwrap());
        assert!(one != other && one.len() == 32);
        assert!(one.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    }
}
