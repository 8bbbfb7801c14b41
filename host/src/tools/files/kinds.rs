//! What kind of file it is, by how it begins: names do not always say, and some say what is not so.

/// The share of control characters from which on a file is binary, in percent.
const MOST_CONTROLS: usize = 30;

/// What is shown of a file, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its lines.
    Text,
    /// Its lines, which are in UTF-16; the first byte of each pair is the higher one.
    Utf16 {
        /// Whether it is.
        big_endian: bool,
    },
    /// Nothing: it is a picture.
    Image,
    /// Nothing: it is something else.
    Binary,
}

/// How pictures begin. A dot is any byte.
const IMAGES: [&[u8]; 10] = [
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF....WEBP",
    b"II*\0",
    b"MM\0*",
    b"\0\0\x01\0",
    b"....ftypavif",
    b"....ftypheic",
    b"....ftypmif1",
];

/// What the names of pictures end in.
const IMAGE_NAMES: [&str; 13] = [
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".jxl",
];

impl Kind {
    /// Finds out what a file is from its name and its first bytes.
    pub(super) fn of(path: &str, head: &[u8]) -> Self {
        // Before the rest, since every second byte of it may be a NUL. Four bytes may also be the mark of UTF-32.
        if (head.starts_with(b"\xff\xfe") && !head.starts_with(b"\xff\xfe\0\0"))
            || head.starts_with(b"\xfe\xff")
        {
            return Self::Utf16 { big_endian: head[0] == 0xfe };
        }
        let name = path.to_ascii_lowercase();
        if IMAGES.iter().any(|image| begins(head, image)) {
            return Self::Image;
        }
        if !is_binary(head) {
            return Self::Text;
        }
        if IMAGE_NAMES.iter().any(|end| name.ends_with(end)) { Self::Image } else { Self::Binary }
    }
}

fn begins(head: &[u8], image: &[u8]) -> bool {
    head.len() >= image.len()
        && image.iter().zip(head).all(|(wanted, byte)| *wanted == b'.' || wanted == byte)
}

fn is_binary(head: &[u8]) -> bool {
    let is_control =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b);
    let controls = head.iter().filter(|byte| is_control(byte)).count();
    head.contains(&0) || controls * 100 > head.len() * MOST_CONTROLS
}

/// Reads text in UTF-16 behind its mark. What is none becomes U+FFFD.
pub(super) fn from_utf16(bytes: &[u8], big_endian: bool) -> String {
    let pairs = bytes.get(2..).unwrap_or_default().chunks(2);
    let units = pairs.map(|pair| match (pair, big_endian) {
        ([first, second], true) => u16::from_be_bytes([*first, *second]),
        ([first, second], false) => u16::from_le_bytes([*first, *second]),
        _ => 0xfffd,
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_how_they_begin() {
        let utf16 = |big_endian| Kind::Utf16 { big_endian };
        for (path, head, kind) in [
            ("a.txt", &b"hello\n"[..], Kind::Text),
            ("a", b"", Kind::Text),
            ("a", b"a\0b and more", Kind::Binary),
            ("a", b"\x1b[31mred\x1b[0m", Kind::Text),
            ("a", b"\x01\x02\x03abcd", Kind::Binary),
            ("a", b"\x01\x02\x03abcdefgh", Kind::Text),
            ("cyrillic.txt", b"\xcf\xf0\xe8\xe2\xe5\xf2", Kind::Text),
            ("a", b"\xff\xfea\0", utf16(false)),
            ("a", b"\xfe\xff\0a", utf16(true)),
            ("a", b"\xff\xfe\0\0a\0\0\0", Kind::Binary),
            ("a", b"\x89PNG\r\n\x1a\n", Kind::Image),
            ("a", b"\xff\xd8\xff\xe0", Kind::Image),
            ("a.webp", b"RIFF\x01\0\0\0WEBPVP8 ", Kind::Image),
            ("A.BMP", b"BM\0\0", Kind::Image),
            ("a.exe", b"MZ\0\0", Kind::Binary),
            // What stands in for a picture that is kept elsewhere.
            ("a.png", b"version https://git-lfs.github.com/spec/v1\n", Kind::Text),
        ] {
            assert_eq!(Kind::of(path, head), kind, "{path} {head:?}");
        }
    }

    #[test]
    fn text_in_utf_16_is_read_either_way() {
        assert_eq!(from_utf16(b"\xff\xfea\0\xe9\0", false), "aé");
        assert_eq!(from_utf16(b"\xfe\xff\0a\xd8\x3d\xde\x00", true), "a😀");
        assert_eq!(from_utf16(b"\xff\xfea\0\x00\xd8b", false), "a\u{fffd}\u{fffd}");
    }
}
