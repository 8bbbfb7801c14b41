//! Text in UTF-16, as programs of Windows write it: every unit has two bytes, and a mark at the beginning says in which order.
//!
//! An agent is shown such a file as text, so it can edit it as text, and the file stays in UTF-16. What is not read back as the
//! same bytes is left alone: it is no text.

/// How the units of a text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide {
    big_endian: bool,
}

impl Wide {
    /// Reads the contents of a file, without its mark. None if they are not in UTF-16.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, String)> {
        let big_endian = match bytes {
            // The mark of UTF-32.
            [0xff, 0xfe, 0, 0, ..] => return None,
            [0xff, 0xfe, ..] => false,
            [0xfe, 0xff, ..] => true,
            _ => return None,
        };
        let pairs = bytes[2..].chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return None;
        }
        let unit = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        let units = pairs.map(|pair| unit([pair[0], pair[1]]));
        let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
        (!text.contains('\0')).then_some((Self { big_endian }, text))
    }

    /// Returns the contents of a file with this text, behind the mark.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let unit = if self.big_endian { u16::to_be_bytes } else { u16::to_le_bytes };
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_either_order_comes_back_byte_for_byte() {
        for (bytes, text) in [
            (&b"\xff\xfea\0\xe9\0\r\0\n\0"[..], "aé\r\n"),
            (b"\xfe\xff\0a\xd8\x3d\xde\x00", "a😀"),
            (b"\xff\xfe", ""),
            (b"\xff\xfe\xff\xfea\0", "\u{feff}a"),
        ] {
            let (wide, read) = Wide::decode(bytes).unwrap();
            assert_eq!((read.as_str(), wide.encode(&read).as_slice()), (text, bytes));
        }
        for bytes in [
            &b"a\0b\0"[..],
            b"\xff\xfe\0\0a\0\0\0",
            b"\xff\xfea",
            b"\xff\xfe\x00\xd8b\0",
            b"\xff\xfea\0\0\0b\0",
        ] {
            assert_eq!(Wide::decode(bytes), None, "{bytes:?}");
        }
    }
}
