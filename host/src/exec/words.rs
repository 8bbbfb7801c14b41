//! From the words of a command line to shell text.

/// Makes shell text of the words after `--`. One word is shell text already; several are an argument list, of which each
/// word reaches the program exactly as it is.
#[must_use]
pub fn join(words: &[String]) -> String {
    match words {
        [text] => text.clone(),
        [program, arguments @ ..] => {
            // In quotes whatever it is: `time`, `if` and `%1` mean something else to a shell.
            let words = std::iter::once(in_quotes(program)).chain(arguments.iter().map(|word| quote(word)));
            words.collect::<Vec<_>>().join(" ")
        }
        [] => String::new(),
    }
}

fn quote(word: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b',' | b':' | b'@' | b'%')
    };
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    in_quotes(word)
}

/// Returns `word` so that a shell reads exactly that.
#[must_use]
pub fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_text_and_several_are_a_list() {
        let words = |words: &[&str]| join(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["echo $HOME; exit 7"]), "echo $HOME; exit 7");
        assert_eq!(
            words(&["printf", "%s", "a b", "$X", "it's", "", "~", "A=1"]),
            r"'printf' %s 'a b' '$X' 'it'\''s' '' '~' 'A=1'"
        );
    }
}
