//! A pattern for one part of a path: `*`, `?` and `[…]` stand for characters of a name, never for a slash.

/// A pattern for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component(Vec<Piece>);

/// What stands for some of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// This byte.
    Byte(u8),
    /// Any one character.
    One,
    /// Any characters.
    Any,
    /// A character of these ranges, or one of none of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Component {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Fails if a bracket is not closed.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '*' if pieces.last() == Some(&Piece::Any) => {}
                '*' => pieces.push(Piece::Any),
                '?' => pieces.push(Piece::One),
                '[' => pieces.push(class(&mut rest)?),
                _ => {
                    let literal = if character == '\\' { rest.next().unwrap_or('\\') } else { character };
                    pieces.extend(literal.encode_utf8(&mut [0; 4]).bytes().map(Piece::Byte));
                }
            }
        }
        Ok(Self(pieces))
    }

    /// Returns whether a name fits.
    pub(super) fn fits(&self, name: &[u8]) -> bool {
        let (mut piece, mut at) = (0, 0);
        // Where to go on if what comes behind the last `*` does not fit: with one character more for it.
        let mut back: Option<(usize, usize)> = None;
        loop {
            if self.0.get(piece) == Some(&Piece::Any) {
                back = Some((piece + 1, at));
                piece += 1;
            } else if let Some(taken) = self.0.get(piece).and_then(|piece| piece.takes(&name[at..])) {
                piece += 1;
                at += taken;
            } else if piece == self.0.len() && at == name.len() {
                return true;
            } else if let Some((behind, from)) = back.filter(|(_, from)| *from < name.len()) {
                (piece, at) = (behind, from + 1);
                back = Some((behind, at));
            } else {
                return false;
            }
        }
    }
}

impl Piece {
    /// Returns how many bytes at the beginning of `name` it stands for.
    fn takes(&self, name: &[u8]) -> Option<usize> {
        let first = *name.first()?;
        match self {
            Self::Any => None,
            Self::Byte(byte) => (*byte == first).then_some(1),
            Self::One => Some(character(name).map_or(1, char::len_utf8)),
            Self::Class { negated, ranges } => match character(name) {
                Some(found) => {
                    let held = ranges.iter().any(|(from, to)| (*from..=*to).contains(&found));
                    (held != *negated).then_some(found.len_utf8())
                }
                None => negated.then_some(1),
            },
        }
    }
}

/// Returns the character at the beginning of a name, if that is one.
fn character(name: &[u8]) -> Option<char> {
    let beginning = &name[..name.len().min(4)];
    beginning.utf8_chunks().next()?.valid().chars().next()
}

fn class(rest: &mut std::str::Chars) -> Result<Piece, String> {
    let mut members = Vec::new();
    let mut negated = false;
    loop {
        match rest.next().ok_or("`[` is not closed")? {
            ']' if !members.is_empty() => break,
            '!' | '^' if members.is_empty() && !negated => negated = true,
            '\\' => members.push((rest.next().ok_or("`[` is not closed")?, true)),
            character => members.push((character, false)),
        }
    }
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some((from, _)) = members.get(at) {
        if let (Some(('-', false)), Some((to, _))) = (members.get(at + 1), members.get(at + 2)) {
            ranges.push((*from, *to));
            at += 3;
        } else {
            ranges.push((*from, *from));
            at += 1;
        }
    }
    Ok(Piece::Class { negated, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_or_do_not() {
        for (pattern, fits, fails) in [
            ("*.rs", vec!["a.rs", ".rs", "a.b.rs"], vec!["a.rsx", "rs"]),
            ("a*b*c", vec!["abc", "axbxbxc"], vec!["ab", "acb"]),
            ("?", vec!["a", "é"], vec!["", "ab"]),
            ("[a-c]x", vec!["ax", "cx"], vec!["dx", "x"]),
            ("[!a-c]", vec!["d", "é"], vec!["a"]),
            ("[]-]", vec!["]", "-"], vec!["a"]),
            (r"\*[\]]", vec!["*]"], vec!["a]"]),
            ("", vec![""], vec!["a"]),
            ("**", vec!["", "ab"], vec![]),
        ] {
            let component = Component::new(pattern).unwrap();
            for name in fits {
                assert!(component.fits(name.as_bytes()), "{pattern} {name}");
            }
            for name in fails {
                assert!(!component.fits(name.as_bytes()), "{pattern} {name}");
            }
        }
        assert!(Component::new("[a").is_err() && Component::new("[]").is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_characters_too() {
        assert!(Component::new("caf?.txt").unwrap().fits(b"caf\xe9.txt"));
        assert!(Component::new("*[!a]").unwrap().fits(b"caf\xe9"));
        assert!(!Component::new("[a-z]").unwrap().fits(b"\xe9"));
    }
}
