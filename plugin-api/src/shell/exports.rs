//! Reads what `export -p` and `alias -p` print.
//!
//! Shells print it so that it can be read back by a shell: `declare -x NAME="value"` (bash) or `export NAME='value'`
//! (POSIX). A shell would run whatever else stands there, so it is read here instead, as data. The quoting rules are those
//! of POSIX.1-2024, section 2.2, with bash's `$'…'`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Returns the exported variables that have a value, or nothing if the text is not what `export -p` prints.
pub(super) fn parse(text: &[u8]) -> Option<BTreeMap<OsString, OsString>> {
    let mut reader = Reader { text, at: 0 };
    let mut variables = BTreeMap::new();
    while let Some(statement) = reader.statement()? {
        let mut words = statement.into_iter();
        match words.next()?.as_slice() {
            b"declare" | b"typeset" => {
                let flags = words.next()?;
                // An array cannot be exported, even where the flag is set.
                if flags.contains(&b'a') || flags.contains(&b'A') {
                    continue;
                }
            }
            b"export" => {}
            _ => return None,
        }
        let assignment = words.find(|word| !word.starts_with(b"-"))?;
        if let Some(split) = assignment.iter().position(|byte| *byte == b'=') {
            let value = assignment[split + 1..].to_vec();
            variables.insert(OsString::from_vec(assignment[..split].to_vec()), OsString::from_vec(value));
        }
    }
    Some(variables)
}

/// Returns the aliases that `alias -p` prints, or nothing if the text is not what it prints.
pub(super) fn parse_aliases(text: &[u8]) -> Option<BTreeMap<OsString, OsString>> {
    let mut reader = Reader { text, at: 0 };
    let mut aliases = BTreeMap::new();
    while let Some(statement) = reader.statement()? {
        let mut words = statement.into_iter();
        if words.next()?.as_slice() != b"alias" {
            return None;
        }
        let assignment = words.find(|word| word != b"--")?;
        let split = assignment.iter().position(|byte| *byte == b'=')?;
        let value = assignment[split + 1..].to_vec();
        aliases.insert(OsString::from_vec(assignment[..split].to_vec()), OsString::from_vec(value));
    }
    Some(aliases)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Returns the words of the next line; `Some(None)` at the end, `None` where a quotation does not end.
    #[allow(clippy::option_option, reason = "the outer layer is failure, the inner one the end of the text")]
    fn statement(&mut self) -> Option<Option<Vec<Vec<u8>>>> {
        let mut words = Vec::new();
        let mut word: Option<Vec<u8>> = None;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' if word.is_none() && words.is_empty() => {}
                b'\n' => {
                    words.extend(word.take());
                    return Some(Some(words));
                }
                b' ' | b'\t' => words.extend(word.take()),
                b'\'' => self.single_quoted(word.get_or_insert_default())?,
                b'"' => self.double_quoted(word.get_or_insert_default())?,
                b'$' if self.peek() == Some(b'\'') => {
                    self.at += 1;
                    self.ansi_quoted(word.get_or_insert_default())?;
                }
                b'\\' => word.get_or_insert_default().push(self.next()?),
                other => word.get_or_insert_default().push(other),
            }
        }
        words.extend(word);
        Some(if words.is_empty() { None } else { Some(words) })
    }

    fn single_quoted(&mut self, word: &mut Vec<u8>) -> Option<()> {
        loop {
            match self.next()? {
                b'\'' => return Some(()),
                other => word.push(other),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Vec<u8>) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'\n' => {}
                    escaped @ (b'$' | b'`' | b'"' | b'\\') => word.push(escaped),
                    other => word.extend([b'\\', other]),
                },
                other => word.push(other),
            }
        }
    }

    fn ansi_quoted(&mut self, word: &mut Vec<u8>) -> Option<()> {
        loop {
            match self.next()? {
                b'\'' => return Some(()),
                b'\\' => match self.next()? {
                    b'n' => word.push(b'\n'),
                    b't' => word.push(b'\t'),
                    b'r' => word.push(b'\r'),
                    b'a' => word.push(7),
                    b'b' => word.push(8),
                    b'e' | b'E' => word.push(27),
                    b'f' => word.push(12),
                    b'v' => word.push(11),
                    b'c' => word.push(self.next()? & 0x1f),
                    b'x' => word.push(u8::try_from(self.digits(16, 2)).ok()?),
                    b'u' => self.character(word, 4)?,
                    b'U' => self.character(word, 8)?,
                    b'0'..=b'7' => {
                        self.at -= 1;
                        // Three octal digits may name more than a byte; shells keep the low eight bits.
                        word.push((self.digits(8, 3) & 0xff) as u8);
                    }
                    other => word.push(other),
                },
                other => word.push(other),
            }
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0;
        for _ in 0..most {
            match self.peek().and_then(|byte| char::from(byte).to_digit(radix)) {
                Some(digit) => value = value * radix + digit,
                None => break,
            }
            self.at += 1;
        }
        value
    }

    fn character(&mut self, word: &mut Vec<u8>, most: usize) -> Option<()> {
        let character = char::from_u32(self.digits(16, most))?;
        word.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn value(text: &str, name: &str) -> Option<OsString> {
        parse(text.as_bytes()).unwrap().remove(&OsString::from(name))
    }

    #[test]
    fn reads_every_form_of_quoting() {
        assert_eq!(
            value("declare -x A=\"a \\\"b\\\" \\$c \\`d\\` \\\\e\"\n", "A").unwrap(),
            "a \"b\" $c `d` \\e"
        );
        assert_eq!(
            value("declare -x A=$'one\\ntwo\\t\\'q\\' \\302\\254 \\x41 \\u20ac'\n", "A").unwrap(),
            "one\ntwo\t'q' ¬ A €"
        );
        assert_eq!(value("export A='it'\\''s'\n", "A").unwrap(), "it's");
        assert_eq!(value("declare -x A=\"two\nlines\"\ndeclare -x B=\"x\"\n", "B").unwrap(), "x");
        assert_eq!(value("declare -rx A=\"1\"\n", "A").unwrap(), "1");
        assert_eq!(value("declare -x A\n", "A"), None);
        assert_eq!(value("declare -ax A=([0]=\"a b\")\ndeclare -x B=\"2\"\n", "B").unwrap(), "2");
    }

    #[test]
    fn refuses_what_a_shell_would_run() {
        assert_eq!(parse(b"touch pwned\n"), None);
        assert_eq!(parse(b"declare -x A=\"not closed\n"), None);
    }

    /// Every byte that an environment can hold comes back from the real shells.
    #[test]
    fn reads_what_real_shells_print() {
        let mut bytes: Vec<u8> = (1..=255).collect();
        bytes.extend_from_slice("\n€ 'q' \"d\" $(touch x) `y` \\ ; & \n\nend ".as_bytes());
        let wanted = OsString::from_vec(bytes);
        for shell in ["bash", "sh"] {
            for locale in ["C", "C.UTF-8"] {
                let mut command = Command::new(shell);
                let output = command
                    .args(["-c", "export -p"])
                    .env("ODD", &wanted)
                    .env("LC_ALL", locale)
                    .output()
                    .unwrap();
                let parsed = parse(&output.stdout).unwrap_or_else(|| panic!("{shell} {locale}"));
                assert_eq!(parsed.get(&OsString::from("ODD")), Some(&wanted), "{shell} {locale}");
            }
        }
    }
}
