//! Names of files as bytes, which need not be text.
//!
//! A result is JSON and can only hold text. Were what is no text replaced, two files would become one. So such a name is
//! written as bash would read it back, and no two names are written alike.

use std::cmp::Ordering;
use std::fmt::Write;

/// Returns a name as it is shown: as it is if it is text, else between `$'` and `'` with escapes.
pub(super) fn shown(name: &[u8]) -> String {
    match str::from_utf8(name) {
        // What only looks like an escaped name is escaped too.
        Ok(text) if !text.starts_with("$'") => text.to_owned(),
        _ => escaped(name),
    }
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::from("$'");
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' | '\'' => text.extend(['\\', character]),
                '\0'..=' ' | '\x7f' if character != ' ' => {
                    let _ = write!(text, "\\x{:02x}", u32::from(character));
                }
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text + "'"
}

/// Compares paths part by part, so that what lies in one folder stands together.
pub(super) fn in_order(one: &[u8], other: &[u8]) -> Ordering {
    one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_shown_alike() {
        let names: [&[u8]; 6] =
            [b"a:12:b\n.txt", b"caf\xe9", b"caf\xea", b"$'caf\\xe9'", b"caf\\xe9", "café".as_bytes()];
        let shown: Vec<_> = names.iter().map(|name| shown(name)).collect();
        assert_eq!(
            shown,
            ["a:12:b\n.txt", r"$'caf\xe9'", r"$'caf\xea'", r"$'$\'caf\\xe9\''", r"caf\xe9", "café"]
        );
    }

    #[test]
    fn escaped_names_are_bashs() {
        assert_eq!(shown(b"a b\t'\\\xff"), r"$'a b\x09\'\\\xff'");
    }

    #[test]
    fn folders_stay_together() {
        let mut paths: Vec<&[u8]> = vec![b"a.c", b"a/z", b"a-b/c", b"a/b/c"];
        paths.sort_by(|one, other| in_order(one, other));
        assert_eq!(paths, [&b"a/b/c"[..], b"a/z", b"a-b/c", b"a.c"]);
    }
}
