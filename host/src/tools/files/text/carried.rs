//! Carries bytes that are not UTF-8 through a string, and back.
//!
//! Many a file is text but for a name in an old encoding. An edit elsewhere in it must neither fail nor touch those
//! bytes. So each of them, which all are 0x80 or higher, becomes one of 128 neighbouring characters for private use
//! that the text does not hold itself.

use std::borrow::Cow;
use std::collections::HashSet;

/// The first of the characters of plane 16, all of which are for private use.
const PLANE: u32 = 0x10_0000;

/// How many blocks of 128 there are in it, without the last: two of that are no characters.
const BLOCKS: u32 = 511;

/// The characters that stand for the bytes of one text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier {
    /// What stands for 0x80.
    first: u32,
}

/// Returns the text of these bytes, and what carries those that are not UTF-8. None if all characters for it are
/// taken, by the text or by `others`.
pub(super) fn decode(bytes: &[u8], others: &[&str]) -> Option<(String, Option<Carrier>)> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some((text.to_owned(), None));
    }
    let valid = bytes.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
    let others = others.iter().flat_map(|other| other.chars());
    let taken: HashSet<u32> =
        valid.chain(others).filter_map(|c| u32::from(c).checked_sub(PLANE)).map(|at| at / 128).collect();
    let block = (0..BLOCKS).find(|block| !taken.contains(block))?;
    let carrier = Carrier { first: PLANE + block * 128 };
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 4);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| carrier.character(*byte)));
    }
    Some((text, Some(carrier)))
}

impl Carrier {
    fn character(self, byte: u8) -> Option<char> {
        char::from_u32(self.first + u32::from(byte).checked_sub(0x80)?)
    }

    fn byte(self, c: char) -> Option<u8> {
        let at = u32::from(c).checked_sub(self.first).filter(|at| *at < 128)?;
        u8::try_from(at + 0x80).ok()
    }

    /// Appends the bytes of a piece of text.
    pub(super) fn encode(self, piece: &str, bytes: &mut Vec<u8>) {
        for c in piece.chars() {
            match self.byte(c) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    /// Returns a piece of text with U+FFFD for what is carried.
    pub(super) fn shown(self, piece: &str) -> Cow<'_, str> {
        let carries = |c: char| self.byte(c).is_some();
        if !piece.contains(carries) {
            return Cow::Borrowed(piece);
        }
        Cow::Owned(piece.chars().map(|c| if carries(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
    }
}
