//! What a text says if its escapes are taken for those of the JSON in which the model has written it.
//!
//! A model that escapes once too often writes `\"` where the file has `"`, and `\n` where a line ends.

/// The escapes that are undone, from the most likely to all: quotes, then backslashes too, then control characters too.
const LEVELS: [&[(char, char)]; 3] = [
    &[('"', '"'), ('\'', '\''), ('`', '`')],
    &[('"', '"'), ('\'', '\''), ('`', '`'), ('\\', '\\')],
    &[('"', '"'), ('\'', '\''), ('`', '`'), ('\\', '\\'), ('n', '\n'), ('t', '\t'), ('r', '\r'), ('/', '/')],
];

/// Returns what a text may have been before it was escaped, other than itself.
pub(super) fn readings(text: &str) -> Vec<String> {
    let mut readings: Vec<String> = Vec::new();
    for level in LEVELS {
        let reading = unescaped(text, level);
        if reading != text && !readings.contains(&reading) {
            readings.push(reading);
        }
    }
    readings
}

fn unescaped(text: &str, level: &[(char, char)]) -> String {
    let mut reading = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            reading.push(c);
            continue;
        }
        let Some(next) = rest.next() else {
            reading.push(c);
            break;
        };
        match level.iter().find(|(escape, _)| *escape == next) {
            Some((_, meant)) => reading.push(*meant),
            None => reading.extend([c, next]),
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_from_the_likely_to_all() {
        assert_eq!(readings(r#"say(\"a\n\")"#), ["say(\"a\\n\")", "say(\"a\n\")"]);
        assert_eq!(readings(r"C:\\dir"), [r"C:\dir"]);
        assert!(readings(r"plain \d \").is_empty());
    }
}
