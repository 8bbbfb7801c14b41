//! Text with halves of characters, which JSON can spell and nothing can hold.
//!
//! A program that reads bytes into text of its own kind writes what was no character as half of a surrogate pair, such as `\udce9`. A message with
//! one cannot be read, and an answer that does not name the request would leave its client waiting for ever. So the message is read once more
//! without them, for its number alone.

use serde_json::Value;

/// What stands for a half.
const INSTEAD: &str = "\\ufffd";

/// Reads a message in which halves of characters, and bytes that are no text, are replaced. None if that is not what is wrong with it.
pub(super) fn read_without(line: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(line);
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        let escape = &rest[at..];
        let length = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(escape.get(6..).and_then(unit), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                whole.push_str(INSTEAD);
                rest = &escape[6..];
                continue;
            }
            // The backslash, and what it stands before.
            _ => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    serde_json::from_str(&whole).ok()
}

/// Reads the escape `\uXXXX` at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // A sign would be taken as well.
    let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else() {
        for (line, expected) in [
            (&br#"["\ud800"]"#[..], json!(["\u{fffd}"])),
            (br#"["\udc00\ud83d"]"#, json!(["\u{fffd}\u{fffd}"])),
            (br#"["\ud83d\ude00 \\ud800 \"\n\u00e9"]"#, json!(["\u{1f600} \\ud800 \"\n\u{e9}"])),
            (br#"["\ud83dx\ude00"]"#, json!(["\u{fffd}x\u{fffd}"])),
            (b"[\"caf\xe9\"]", json!(["caf\u{fffd}"])),
        ] {
            assert_eq!(read_without(line), Some(expected), "{}", String::from_utf8_lossy(line));
        }
        for line in [&b"{nonsense"[..], br#"["\u+123"]"#, br#"["\ud8"#, b"\\", br#"["\ud800", "#] {
            assert_eq!(read_without(line), None);
        }
    }
}
