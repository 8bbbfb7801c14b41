//! Changes one line of a file as a model has changed the line that it believed to be there.
//!
//! The two lines differ in white space and in characters that look alike. Where the model leaves a word alone, what
//! the file has stays, so that a changed number does not also change curly quotes into straight ones.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::strategies::{Dash, Form, Mapped, is_space};

/// Returns `file` with what turns `old` into `new`.
pub(super) fn merged(file: &str, old: &str, new: &str) -> String {
    if file == old {
        return new.to_owned();
    }
    for dash in [Dash::One, Dash::Two] {
        let form = Form::Plain(dash);
        let (file_form, old_form) = (Mapped::new(file, form), Mapped::new(old, form));
        if file_form.text == old_form.text {
            let kept = |from: usize, to: usize| {
                let part = old_form.place(from)..old_form.place(to);
                file_form.source(&part).map_or(&old[from..to], |source| &file[source])
            };
            return applied(old, new, kept);
        }
    }
    new.to_owned()
}

/// Returns `new`, with what `kept` says in place of each part that it has from `old`.
fn applied<'a>(old: &'a str, new: &str, kept: impl Fn(usize, usize) -> &'a str) -> String {
    let (old, new) = (words(old), words(new));
    let mut starts = vec![0];
    starts.extend(old.iter().scan(0, |at, word| {
        *at += word.len();
        Some(*at)
    }));
    let mut line = String::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                line.push_str(kept(starts[old_index], starts[old_index + len]));
            }
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                line.extend(new[new_index..new_index + new_len].iter().copied());
            }
            DiffOp::Delete { .. } => {}
        }
    }
    line
}

/// Cuts a line into words, white space, and runs of the same other character.
fn words(line: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 'a',
        _ if is_space(c) => ' ',
        _ => c,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in line.char_indices() {
        if before.is_some_and(|before| before != kind(c)) {
            words.push(&line[start..at]);
            start = at;
        }
        before = Some(kind(c));
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_alone_stays_as_the_file_has_it() {
        for (file, old, new, merged_line) in [
            ("say(“hi”, 1)", "say(\"hi\", 1)", "say(\"hi\", 2)", "say(“hi”, 2)"),
            ("a — b…  c", "a -- b... c", "a -- b... d", "a — b…  d"),
            ("x   = 1    # one", "x = 1 # one", "x = 10 # ten", "x   = 10    # ten"),
            ("café 1", "cafe\u{301} 1", "cafe\u{301} 2", "café 2"),
            ("same", "same", "other", "other"),
            ("a\u{a0}b", "a b", "b", "b"),
        ] {
            assert_eq!(merged(file, old, new), merged_line);
        }
    }

    #[test]
    fn words_are_cut_where_their_kind_changes() {
        assert_eq!(words("a_1 ==  b...é!"), ["a_1", " ", "==", "  ", "b", "...", "é", "!"]);
    }
}
