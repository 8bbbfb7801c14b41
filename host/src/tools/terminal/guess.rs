//! Reads shell text that is not understood, as well as that can be done.
//!
//! A rule that must not be got round would refuse such a text. Guidance is no such rule: a command that it lets through runs as it
//! would anywhere, and one that it refuses by mistake keeps an agent from its work. So quotes, comments and here-documents are
//! blanked out roughly, and only what is then still plain counts.

/// What stands in the place of what is not looked at.
const BLANK: char = 'x';

/// Returns the text with all that is only data blanked out.
pub(super) fn bare(source: &str) -> String {
    let mut bare = String::with_capacity(source.len());
    let mut documents: Vec<(String, bool)> = Vec::new();
    let mut rest = source;
    while let Some(one) = rest.chars().next() {
        rest = &rest[one.len_utf8()..];
        match one {
            '\\' => {
                bare.push(BLANK);
                rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            }
            '\'' => {
                bare.push(BLANK);
                rest = rest.split_once('\'').map_or("", |(_, behind)| behind);
            }
            '"' => {
                bare.push(BLANK);
                rest = behind_double(rest);
            }
            '#' if bare.chars().last().is_none_or(|last| last.is_whitespace() || ";&|(".contains(last)) => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            }
            '(' if rest.starts_with('(') => {
                bare.push(BLANK);
                rest = rest.split_once("))").map_or("", |(_, behind)| behind);
            }
            '$' if rest.starts_with('[') => {
                bare.push(BLANK);
                rest = rest.split_once(']').map_or("", |(_, behind)| behind);
            }
            '<' if rest.starts_with('<') && !rest.starts_with("<<") => {
                let (document, behind) = document(&rest[1..]);
                documents.extend(document);
                bare.push(BLANK);
                rest = behind;
            }
            '<' if rest.starts_with("<<") => {
                bare.push(BLANK);
                rest = &rest[2..];
            }
            '\n' => {
                bare.push('\n');
                for (end, tabs) in documents.drain(..) {
                    rest = behind_document(rest, &end, tabs);
                }
            }
            other => bare.push(other),
        }
    }
    bare
}

fn behind_double(mut rest: &str) -> &str {
    while let Some(at) = rest.find(['"', '\\']) {
        let (found, behind) = rest[at..].split_at(1);
        if found == "\"" {
            return behind;
        }
        rest = &behind[behind.chars().next().map_or(0, char::len_utf8)..];
    }
    ""
}

/// Reads the word that ends a here-document, and whether tabs in front of it count for nothing.
fn document(rest: &str) -> (Option<(String, bool)>, &str) {
    let (tabs, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
    let mut rest = rest.trim_start_matches([' ', '\t']);
    let mut word = String::new();
    while let Some(one) = rest.chars().next() {
        let behind = &rest[one.len_utf8()..];
        rest = match one {
            '\'' | '"' => {
                let (quoted, behind) = behind.split_once(one).unwrap_or((behind, ""));
                word.push_str(quoted);
                behind
            }
            '\\' => behind,
            _ if one.is_whitespace() || ";&|()<>".contains(one) => break,
            _ => {
                word.push(one);
                behind
            }
        };
    }
    ((!word.is_empty()).then_some((word, tabs)), rest)
}

fn behind_document<'a>(mut rest: &'a str, end: &str, tabs: bool) -> &'a str {
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = behind;
        let line = if tabs { line.trim_start_matches('\t') } else { line };
        if line == end {
            break;
        }
    }
    rest
}

/// Returns whether a bare text has an operator that puts a command in the background.
pub(super) fn has_background(bare: &str) -> bool {
    let bytes = bare.as_bytes();
    let is_lone = |at: usize| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let behind = bytes.get(at + 1).copied();
        !matches!(before, Some(b'&' | b'|' | b'<' | b'>' | b';')) && !matches!(behind, Some(b'&' | b'>'))
    };
    bytes.iter().enumerate().any(|(at, byte)| *byte == b'&' && is_lone(at))
}

/// Returns the words of each command of a bare text, without assignments and reserved words in front.
pub(super) fn commands(bare: &str) -> Vec<Vec<String>> {
    let reserved = ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "coproc"];
    let parts = bare.split(['\n', ';', '|', '&', '(', ')', '`']);
    let words = parts.map(|part| {
        let words = part.split_whitespace();
        let skipped = |word: &&str| reserved.contains(word) || crate::policy::commands::is_assignment(word);
        words.skip_while(skipped).map(str::to_owned).collect::<Vec<_>>()
    });
    words.filter(|words| !words.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_blanked_out() {
        for (source, expected) in [
            ("a 'b & c' \"d \\\" & e\" f\\&g", "a x x fxg"),
            ("a # b & c\nd", "a \nd"),
            ("cat <<'E F' & x\nb &\nE F\nc", "cat x & x\nc"),
            ("cat <<-E\n\tb &\n\tE\nc", "cat x\nc"),
            ("cat <<E <<F\n&\nE\n&\nF\nc", "cat x x\nc"),
            ("((a & b)); x", "x; x"),
            ("a <<< b", "a x b"),
            ("'unclosed &", "x"),
            ("\"ü\\", "x"),
        ] {
            assert_eq!(bare(source), expected, "{source}");
        }
    }

    #[test]
    fn only_a_lone_ampersand_is_background() {
        for text in ["a & b", "a &", "a&b", "a & "] {
            assert!(has_background(text), "{text}");
        }
        for text in ["a && b", "a >&2", "a &>f", "a 2>&1", "a |& b", "a <&3", ";& b"] {
            assert!(!has_background(text), "{text}");
        }
    }

    #[test]
    fn words_begin_at_the_name() {
        assert_eq!(
            commands("if A=1 nohup x; then b | (c d)"),
            [
                vec!["nohup".to_owned(), "x".to_owned()],
                vec!["b".to_owned()],
                vec!["c".to_owned(), "d".to_owned()]
            ]
        );
    }
}
