//! A password in memory, which does not stay there.
//!
//! Freed memory keeps what stood in it: it can be written to a swap file or a core dump long after. So the bytes are
//! overwritten before they are freed. Copies that the system or a backend makes on the way to the command are theirs.

use std::fmt;
use std::hint::black_box;
use std::io::Write;

/// Bytes that are overwritten when this is dropped, and that are never printed.
#[derive(Default)]
pub(super) struct Secret(Vec<u8>);

impl Secret {
    /// Takes the first line of `bytes`: no more can be typed where a password is asked for.
    pub(super) fn first_line(bytes: impl Into<Vec<u8>>) -> Self {
        let mut whole = Self(bytes.into());
        let length = whole.0.iter().position(|byte| matches!(*byte, b'\n' | b'\r')).unwrap_or(whole.0.len());
        whole.0[length..].fill(0);
        whole.0.truncate(length);
        whole
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns so many lines, each of which is this.
    pub(super) fn lines(&self, count: usize) -> Self {
        // In one piece, since what a vector leaves behind when it grows is not overwritten.
        let mut lines = Vec::with_capacity(count * (self.0.len() + 1));
        for _ in 0..count {
            lines.extend_from_slice(&self.0);
            lines.push(b'\n');
        }
        Self(lines)
    }

    /// Returns these bytes and then `more`, for whoever takes care of them from here on.
    pub(super) fn followed_by(&self, more: &[u8]) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.0.len() + more.len());
        whole.extend_from_slice(&self.0);
        whole.extend_from_slice(more);
        whole
    }

    /// Writes the bytes to `to`, and forgets them.
    pub(super) fn write_to(self, mut to: impl Write) -> std::io::Result<()> {
        to.write_all(&self.0)
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Nobody reads them any more, which is a reason for the compiler not to write them.
        black_box(&mut self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_and_is_never_printed() {
        for (given, kept) in [("a b", "a b"), ("ab\n", "ab"), ("ab\r\ncd", "ab"), ("", ""), ("\nx", "")] {
            assert_eq!(Secret::first_line(given).bytes(), kept.as_bytes(), "{given:?}");
        }
        let secret = Secret::first_line("hunter2");
        assert_eq!(secret.lines(2).bytes(), b"hunter2\nhunter2\n");
        assert_eq!(Secret::default().lines(2).followed_by(b"x"), b"\n\nx");
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
