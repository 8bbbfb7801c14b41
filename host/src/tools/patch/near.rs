//! Finds what a model may have meant when what it quotes is not in the file.
//!
//! This is for showing only; nothing is ever edited because of it. So it is cheap and crude: lines are compared by the
//! pairs of letters in them, and only so many of them.

use super::strategies::{Lines, trimmed};

/// No more lines of the quoted text than this are looked at, and no more shown.
const LINES: usize = 12;

/// No more than this many characters of a line are shown.
const WIDTH: usize = 200;

/// How many pairs of lines are compared at most.
const COMPARED: usize = 1_000_000;

/// How alike the lines must be on average to be worth a look.
const ALIKE: f32 = 0.5;

/// Returns the lines that are most like `old`, as `read_file` shows them. None if none are.
pub(super) fn nearest(lines: &Lines, old: &str) -> Option<String> {
    let quoted = Lines::new(old);
    let quoted_lines = quoted.block(0..quoted.len().min(LINES));
    let mut wanted: Vec<(usize, Letters)> =
        quoted_lines.iter().map(|line| Letters::of(line)).enumerate().collect();
    wanted.retain(|(_, letters)| !letters.0.is_empty());
    // The longest say the most.
    wanted.sort_by_key(|(_, letters)| std::cmp::Reverse(letters.0.len()));
    wanted.truncate(COMPARED / lines.len().max(1));
    let whole: f32 = wanted.iter().map(|(_, letters)| letters.weight()).sum();
    let mut scores = vec![0.0_f32; lines.len()];
    for index in 0..lines.len() {
        let found = Letters::of(lines.line(index));
        for (at, letters) in &wanted {
            let Some(start) = index.checked_sub(*at) else { continue };
            scores[start] += letters.alike(&found) * letters.weight();
        }
    }
    // The first of the best.
    let scores = scores.into_iter().enumerate().rev();
    let (start, best) = scores.max_by(|one, other| one.1.total_cmp(&other.1))?;
    (whole > 0.0 && best / whole >= ALIKE).then(|| shown(lines, start, quoted_lines.len()))
}

/// Returns lines as `read_file` shows them: the number, and what stands there.
pub(super) fn shown(lines: &Lines, start: usize, count: usize) -> String {
    let line = |index: usize| {
        let text = lines.line(index);
        let cut: String = text.chars().take(WIDTH).collect();
        format!("{}|{cut}{}", index + 1, if cut.len() < text.len() { " …" } else { "" })
    };
    (start..lines.len().min(start + count.min(LINES))).map(line).collect::<Vec<_>>().join("\n")
}

/// The pairs of neighbouring letters in a line, in order.
struct Letters(Vec<u16>);

impl Letters {
    fn of(line: &str) -> Self {
        let bytes = trimmed(line).as_bytes();
        let bytes = &bytes[..bytes.len().min(WIDTH)];
        let one =
            |pair: &[u8]| u16::from_be_bytes([pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()]);
        let mut pairs: Vec<u16> = match bytes {
            [only] => vec![u16::from(*only)],
            _ => bytes.windows(2).map(one).collect(),
        };
        pairs.sort_unstable();
        Self(pairs)
    }

    fn weight(&self) -> f32 {
        f32::from(u16::try_from(self.0.len()).unwrap_or(u16::MAX))
    }

    /// Returns the share of pairs that both have.
    fn alike(&self, other: &Self) -> f32 {
        let (mut one, mut two) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut same = 0_u16;
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(one.next()),
                std::cmp::Ordering::Greater => drop(two.next()),
                std::cmp::Ordering::Equal => {
                    same += 1;
                    one.next();
                    two.next();
                }
            }
        }
        2.0 * f32::from(same) / (self.weight() + other.weight()).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_lines_are_shown_with_their_numbers() {
        let file = "def a():\n    retry(2)\n    done()\n\ndef b():\n    retry(2)\n    stop()\n";
        let lines = Lines::new(file);
        assert_eq!(nearest(&lines, "    retry(9)\n    done()").unwrap(), "2|    retry(2)\n3|    done()");
        assert_eq!(nearest(&lines, "Def B():").unwrap(), "5|def b():");
        assert_eq!(nearest(&lines, "class Window:"), None);
        assert_eq!((nearest(&lines, "\n\n"), nearest(&Lines::new(""), "a")), (None, None));
    }
}
