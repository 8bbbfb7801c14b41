//! Takes a plugin's secrets out of what it says, before anybody sees that.

/// A value of fewer characters would blank out half of every line.
const SHORTEST: usize = 4;

/// What stands in the place of a secret.
const MASK: &str = "***";

/// The values of a plugin's secrets.
#[derive(Default)]
pub(super) struct Masks(Vec<String>);

impl Masks {
    /// Takes the values of secrets. Of one that has several lines, each is a secret.
    pub(super) fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut pieces: Vec<String> = Vec::new();
        for value in values {
            pieces.extend(value.lines().map(|line| line.trim().to_owned()));
            pieces.push(value);
        }
        pieces.retain(|piece| piece.len() >= SHORTEST);
        // The longest first: one may be a part of another.
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.len()));
        pieces.dedup();
        Self(pieces)
    }

    /// Returns `text` without them.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_value_is_hidden() {
        let masks =
            Masks::of(["s3cret".into(), "BEGIN\n  MIIEkey1\nEND".into(), "x".into(), "s3cret-longer".into()]);
        assert_eq!(masks.hide("a s3cret, x; MIIEkey1 and s3cret-longer"), "a ***, x; *** and ***");
        assert_eq!(masks.hide("BEGIN"), "***");
        assert_eq!(Masks::default().hide("plain"), "plain");
    }
}
