//! What the scripts print, read without trust.
//!
//! Names of files may hold anything but a NUL. So each field ends in one, and what may hold it comes last.

use super::error::FileError;
use crate::tools::script::Ran;

/// What stands behind contents of any kind, so that one knows that they are whole.
const END: &[u8] = b"\0done";

/// What is still to be read.
#[derive(Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(printed: &'a [u8]) -> Self {
        Self(printed)
    }

    /// Takes the first field. None if it is not whole: then the script did not get so far.
    pub(super) fn take(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (field, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Some(field)
    }

    /// As [`take`](Self::take), as text.
    pub(super) fn text(&mut self) -> Option<String> {
        self.take().map(|field| String::from_utf8_lossy(field).into_owned())
    }

    /// As [`take`](Self::take), as a number.
    pub(super) fn number(&mut self) -> Option<u64> {
        str::from_utf8(self.take()?).ok()?.trim().parse().ok()
    }

    /// Takes contents of any kind. None if they are not whole.
    pub(super) fn contents(&self) -> Option<&'a [u8]> {
        self.0.strip_suffix(END)
    }

    /// Takes all fields that are left, as text.
    pub(super) fn texts(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.text()).collect()
    }
}

/// What was asked for, as far as its errors speak of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The file, as the caller named it.
    pub(super) path: &'a str,
    /// The most bytes that it may have.
    pub(super) most: u64,
    /// How many bytes were sent.
    pub(super) sent: usize,
}

impl Asked<'_> {
    /// Returns what a script printed behind the word `ok`.
    ///
    /// # Errors
    ///
    /// Returns the reason that it printed instead, or says that it did not get so far.
    pub(super) fn answer<'r>(&self, ran: &'r Ran) -> Result<Fields<'r>, FileError> {
        let mut fields = Fields::new(&ran.output);
        match fields.take() {
            Some(b"ok") => Ok(fields),
            Some(b"no") => {
                let refused = FileError::refused(&mut fields, self.most, self.sent);
                Err(refused.unwrap_or_else(|| self.garbled(ran)))
            }
            _ => Err(self.garbled(ran)),
        }
    }

    /// Says that what came back makes no sense.
    pub(super) fn garbled(&self, ran: &Ran) -> FileError {
        let first = &ran.output[..ran.output.len().min(300)];
        let said = String::from_utf8_lossy(first).replace('\0', " ").trim().to_owned();
        FileError::Garbled { path: self.path.to_owned(), said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_one_by_one() {
        let mut fields = Fields::new(b"a\nb\0 12\n\0\0x\0y\0\0done");
        assert_eq!(fields.text().as_deref(), Some("a\nb"));
        assert_eq!(fields.number(), Some(12));
        assert_eq!(fields.take(), Some(&b""[..]));
        assert_eq!(fields.contents(), Some(&b"x\0y\0"[..]));
        assert_eq!(Fields::new(b"a\0b\0half").texts(), ["a", "b"]);
    }

    #[test]
    fn what_was_cut_off_is_not_taken_for_whole() {
        assert_eq!(Fields::new(b"half").take(), None);
        assert_eq!(Fields::new(b"half").contents(), None);
        assert_eq!(Fields::new(b"\0don").contents(), None);
    }
}
