//! The values that nobody is to be told.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use hostel_plugin_api::shell::StripList;

use super::redactor::Redactor;
use super::shapes;

/// A value of fewer bytes would blank out words of ordinary text.
const SHORTEST: usize = 8;

/// What stands at one place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing of interest.
    Nothing,
    /// Perhaps something, of which the rest is still to come.
    Perhaps,
    /// So many bytes, in whose place this is to stand.
    Secret(usize, String),
    /// The beginning of a private key, whose rest goes as well.
    Key(usize),
}

/// The values of the variables that no command may see.
#[derive(Default)]
pub struct Secrets {
    /// Each with what stands in its place, the longest first: one may be a part of another.
    values: Vec<(Vec<u8>, String)>,
    /// Whether something can begin with a byte.
    begins: Begins,
}

/// A table of all bytes.
struct Begins([bool; 256]);

impl Default for Begins {
    fn default() -> Self {
        let mut table = [false; 256];
        for byte in shapes::BEGINNINGS {
            table[usize::from(*byte)] = true;
        }
        Self(table)
    }
}

impl Secrets {
    /// Takes the values of those `variables` that are on the list. Of one that has several lines, each line is secret.
    pub fn new(strip: &StripList, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in variables {
            if !strip.matches(&name) {
                continue;
            }
            let mask = format!("[redacted {}]", name.to_string_lossy());
            let value = value.into_vec();
            let lines = value.split(|byte| *byte == b'\n');
            let pieces: Vec<Vec<u8>> = lines.map(|line| line.trim_ascii().to_vec()).collect();
            for piece in pieces.into_iter().chain([value]) {
                if piece.len() >= SHORTEST {
                    secrets.begins.0[usize::from(piece[0])] = true;
                    secrets.values.push((piece, mask.clone()));
                }
            }
        }
        secrets.values.sort_by(|one, other| (other.0.len(), &one.0).cmp(&(one.0.len(), &other.0)));
        secrets.values.dedup_by(|one, other| one.0 == other.0);
        secrets
    }

    /// Returns a text without secrets.
    #[must_use]
    pub fn hide(self: &Arc<Self>, text: &str) -> String {
        let mut redactor = Redactor::new(Arc::clone(self));
        let mut hidden = redactor.take(text.as_bytes());
        hidden.extend(redactor.finish());
        // A value that is no text may have taken a part of a character along.
        String::from_utf8_lossy(&hidden).into_owned()
    }

    /// Returns where the next thing may begin.
    pub(super) fn next(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| self.begins.0[usize::from(*byte)])
    }

    /// Looks at what `rest` begins with. `before` is the byte in front of it, and `all` says that nothing comes behind it.
    pub(super) fn look(&self, before: Option<u8>, rest: &[u8], all: bool) -> Found {
        for (value, mask) in &self.values {
            if rest.starts_with(value) {
                return Found::Secret(value.len(), mask.clone());
            }
            if !all && value.starts_with(rest) {
                return Found::Perhaps;
            }
        }
        shapes::look(before, rest, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Arc<Secrets> {
        let strip = StripList::new(["KEY*".to_owned(), "TOKEN".to_owned()]);
        let owned = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Arc::new(Secrets::new(&strip, owned))
    }

    #[test]
    fn values_are_replaced_by_names_and_short_ones_stay() {
        let secrets = secrets(&[("TOKEN", "hunter22"), ("KEY_A", "short12"), ("OTHER", "not-secret")]);
        assert_eq!(
            secrets.hide("a hunter22, hunter2 and short12 and not-secret; hunter22hunter22"),
            "a [redacted TOKEN], hunter2 and short12 and not-secret; [redacted TOKEN][redacted TOKEN]"
        );
        assert_eq!(secrets.hide(""), "");
    }

    #[test]
    fn the_longer_of_two_values_wins_and_each_line_is_secret() {
        let two = secrets(&[("TOKEN", "abcdefgh"), ("KEY_A", "abcdefghij")]);
        assert_eq!(two.hide("abcdefghij abcdefghi"), "[redacted KEY_A] [redacted TOKEN]i");
        let lines = secrets(&[("TOKEN", "first-line\n  second-line\nend")]);
        assert_eq!(lines.hide("x second-line end"), "x [redacted TOKEN] end");
        assert_eq!(lines.hide("first-line\n  second-line\nend"), "[redacted TOKEN]");
    }

    #[test]
    fn text_beside_a_secret_is_unchanged() {
        let secrets = secrets(&[("TOKEN", "geheim€geheim")]);
        assert_eq!(secrets.hide("ä geheim€geheim ü geheim€"), "ä [redacted TOKEN] ü geheim€");
    }
}
