//! From the bytes of a log to text.
//!
//! A piece of a log begins and ends anywhere, also within a character. One that begins before the piece is left out, and one
//! whose rest is still to come is left for later: neither becomes a replacement character.

/// Makes text of a piece. `before` says whether there is something in front of it, `after` whether more can come behind it.
pub(super) fn decode(bytes: &[u8], before: bool, after: bool) -> String {
    String::from_utf8_lossy(trim(bytes, before, after)).into_owned()
}

/// Cuts a piece to whole characters.
pub(super) fn trim(bytes: &[u8], before: bool, after: bool) -> &[u8] {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let start = if before { bytes.iter().take(3).take_while(is_continuation).count() } else { 0 };
    let bytes = &bytes[start..];
    let end = if after { bytes.len() - unfinished(bytes) } else { bytes.len() };
    &bytes[..end]
}

/// Returns how many bytes at the end begin a character that is not all there.
fn unfinished(bytes: &[u8]) -> usize {
    for (back, byte) in (1..).zip(bytes.iter().rev().take(3)) {
        let needed = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

/// Returns the last `most` characters.
pub(super) fn last(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    if most == 0 { "" } else { &text[start..] }
}

/// Returns the first `most` characters.
pub(super) fn first(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cut_makes_a_replacement_character() {
        let text = "a€😀é".as_bytes();
        for start in 0..text.len() {
            for end in start..=text.len() {
                let piece = decode(&text[start..end], start > 0, end < text.len());
                assert!(!piece.contains('\u{fffd}'), "{start}..{end}: {piece}");
            }
        }
    }

    #[test]
    fn what_never_comes_is_shown_at_the_end() {
        assert_eq!(decode(b"a\xe2\x82", false, true), "a");
        assert_eq!(decode(b"a\xe2\x82", false, false), "a\u{fffd}");
        assert_eq!(decode(b"\xff\xff", true, true), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn ends_are_counted_in_characters() {
        assert_eq!((last("a€b", 2), last("ab", 5), last("ab", 0)), ("€b", "ab", ""));
        assert_eq!((first("a€b", 2), first("ab", 5), first("ab", 0)), ("a€", "ab", ""));
    }
}
