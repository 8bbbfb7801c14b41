//! A pattern for `grep -E`, where a sandbox has nothing better.
//!
//! | in the pattern | becomes |
//! | --- | --- |
//! | `\d` `\w` `\s`, and `\D` `\W` `\S` outside of brackets | classes such as `[[:space:]]` |
//! | `\b` `\B` `\<` `\>` | themselves, which the sandbox must be found to understand |
//! | `\t` `\r` `\f` `\v` `\a` `\e` `\x41` `\u00e9` | the character |
//! | `\A` `\z` `\Z` `$` | the line's edges, the last also before a carriage return |
//! | `\p{L}` `\p{Lu}` `\p{Ll}` `\p{N}` `\p{Nd}` `\p{P}` | classes of the locale |
//! | `(?:…)` `(?<name>…)` `(?P<name>…)` | plain groups |
//! | `(?i)` at the beginning | `-i`; `(?s)`, `(?m)` and `(?u)` mean nothing for single lines |
//! | `*?` `+?` `??` `{2,}?` | greedy, which matches the same lines |
//! | `\Q…\E`, and `{` that counts nothing | the characters |
//!
//! Everything else that only looks alike (looking around, back-references, possessive and atomic groups, other flags and escapes)
//! has no translation, which is said instead of a search for something else.

use std::iter::Peekable;
use std::str::Chars;

use super::class;

/// A translated pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extended {
    /// For `grep -E`.
    pub(super) pattern: String,
    /// It needs `-i`.
    pub(super) ignores_case: bool,
    /// It needs a program that knows the edges of words.
    pub(super) knows_words: bool,
}

/// Translates a pattern.
///
/// # Errors
///
/// Fails with what there is no word for.
pub(super) fn translate(pattern: &str) -> Result<Extended, String> {
    let mut made = Extended::default();
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => escape(&mut rest, &mut made)?,
            '[' => made.pattern.push_str(&class::translate(&mut rest)?),
            '(' => group(&mut rest, &mut made)?,
            '*' | '+' | '?' => {
                made.pattern.push(character);
                greedy(&mut rest)?;
            }
            '{' => counted(&mut rest, &mut made)?,
            '$' => made.pattern.push_str("\r?$"),
            _ => made.pattern.push(character),
        }
    }
    Ok(made)
}

type Rest<'a> = Peekable<Chars<'a>>;

fn escape(rest: &mut Rest, made: &mut Extended) -> Result<(), String> {
    // A backslash at the end is an error that grep will report.
    let Some(character) = rest.next() else {
        made.pattern.push('\\');
        return Ok(());
    };
    let becomes = match character {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[[:alnum:]_]",
        'W' => "[^[:alnum:]_]",
        's' => "[[:space:]]",
        'S' => "[^[:space:]]",
        'A' => "^",
        'z' | 'Z' => "\r?$",
        'b' | 'B' | '<' | '>' => {
            made.knows_words = true;
            if character == 'B' { r"\B" } else { r"\b" }
        }
        'p' | 'P' => {
            let class = property(rest)?;
            let (open, close) = if character == 'P' { ("[^", "]") } else { ("[", "]") };
            made.pattern.extend([open, class, close]);
            return Ok(());
        }
        'Q' => {
            quoted(rest, &mut made.pattern);
            return Ok(());
        }
        _ => {
            let character = single(character, rest)?.ok_or_else(|| format!(r"`\{character}`"))?;
            literal(character, &mut made.pattern);
            return Ok(());
        }
    };
    made.pattern.push_str(becomes);
    Ok(())
}

/// Returns the one character that an escape stands for; none if it stands for something else. The backslash and `character` are
/// read already.
pub(super) fn single(character: char, rest: &mut Rest) -> Result<Option<char>, String> {
    Ok(Some(match character {
        't' => '\t',
        'r' => '\r',
        'f' => '\x0c',
        'v' => '\x0b',
        'a' => '\x07',
        'e' => '\x1b',
        'x' => hexadecimal(rest, 'x', 2)?,
        'u' => hexadecimal(rest, 'u', 4)?,
        _ if character.is_ascii_alphanumeric() => return Ok(None),
        _ => character,
    }))
}

fn hexadecimal(rest: &mut Rest, letter: char, digits: usize) -> Result<char, String> {
    let braced = rest.next_if_eq(&'{').is_some();
    let most = if braced { 8 } else { digits };
    let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit)).take(most).collect();
    let closed = !braced || rest.next_if_eq(&'}').is_some();
    let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
    // A NUL or a line break can stand in no line.
    let character = character.filter(|character| closed && !matches!(character, '\0' | '\n'));
    character.ok_or_else(|| format!(r"`\{letter}{digits}`"))
}

/// Reads the name of a property, and returns the class for brackets.
pub(super) fn property(rest: &mut Rest) -> Result<&'static str, String> {
    let name: String = match rest.next_if_eq(&'{') {
        Some(_) => rest.by_ref().take_while(|character| *character != '}').collect(),
        None => rest.next().into_iter().collect(),
    };
    Ok(match name.as_str() {
        "L" | "Alphabetic" | "Letter" => "[:alpha:]",
        "Lu" | "Uppercase" => "[:upper:]",
        "Ll" | "Lowercase" => "[:lower:]",
        "N" | "Nd" => "[:digit:]",
        "P" => "[:punct:]",
        _ => return Err(format!(r"`\p{{{name}}}`")),
    })
}

fn quoted(rest: &mut Rest, text: &mut String) {
    while let Some(character) = rest.next() {
        if character == '\\' && rest.next_if_eq(&'E').is_some() {
            return;
        }
        literal(character, text);
    }
}

fn literal(character: char, text: &mut String) {
    // What is escaped though it means nothing is undefined to some.
    if matches!(character, '.' | '[' | '*' | '^' | '$' | '+' | '?' | '{' | '(' | ')' | '|' | '\\') {
        text.push('\\');
    }
    text.push(character);
}

/// Reads what may stand behind a quantifier.
fn greedy(rest: &mut Rest) -> Result<(), String> {
    if rest.next_if_eq(&'+').is_some() {
        return Err("a quantifier that ends in `+`".to_owned());
    }
    rest.next_if_eq(&'?');
    Ok(())
}

fn counted(rest: &mut Rest, made: &mut Extended) -> Result<(), String> {
    let counts: String = rest.clone().take_while(|character| *character != '}').collect();
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let closed = rest.clone().nth(counts.chars().count()) == Some('}');
    let sound = match counts.split_once(',') {
        None => whole(&counts),
        Some((least, most)) => whole(least) && (most.is_empty() || whole(most)),
    };
    if !(closed && sound) {
        made.pattern.push_str(r"\{");
        return Ok(());
    }
    made.pattern.push('{');
    made.pattern.push_str(&counts);
    made.pattern.push('}');
    let _ = rest.nth(counts.len());
    greedy(rest)
}

fn group(rest: &mut Rest, made: &mut Extended) -> Result<(), String> {
    match rest.peek() {
        Some('*') => return Err("`(*`".to_owned()),
        Some('?') => {}
        _ => {
            made.pattern.push('(');
            return Ok(());
        }
    }
    rest.next();
    let named = rest.next_if_eq(&'P').is_some();
    if rest.next_if_eq(&'<').is_some() {
        if let Some(sign) = rest.next_if(|character| matches!(character, '=' | '!')) {
            return Err(format!("`(?<{sign}`"));
        }
        let _name = rest.by_ref().find(|character| *character == '>');
        made.pattern.push('(');
        return Ok(());
    }
    let letter = |character: &char| character.is_ascii_alphabetic() || *character == '-';
    let flags: String = std::iter::from_fn(|| rest.next_if(letter)).collect();
    let end = rest.next();
    let unknown = format!("`(?{flags}{}`", end.map(String::from).unwrap_or_default());
    let harmless = flags.chars().all(|flag| matches!(flag, 's' | 'm' | 'u'));
    let first = made.pattern.is_empty() && !made.ignores_case;
    match end {
        _ if named => Err("`(?P`".to_owned()),
        Some(':') if harmless => {
            made.pattern.push('(');
            Ok(())
        }
        Some(')') if harmless => Ok(()),
        Some(')') if first && flags.chars().all(|flag| matches!(flag, 'i' | 's' | 'm' | 'u')) => {
            made.ignores_case = true;
            Ok(())
        }
        _ => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> String {
        translate(text).unwrap().pattern
    }

    #[test]
    fn escapes_become_classes_and_characters() {
        for (given, made) in [
            (r"\d+\.\d*", r"[0-9]+\.[0-9]*"),
            (r"\w\W\s\S\D", "[[:alnum:]_][^[:alnum:]_][[:space:]][^[:space:]][^0-9]"),
            (r"a\tb\x41\x{42}\u0043", "a\tbABC"),
            (r"\-\/\#\]\}\ ", "-/#]} "),
            (r"\(\[\{\|\\\.", r"\(\[\{\|\\\."),
            (r"\p{Lu}\pL\P{N}", "[[:upper:]][[:alpha:]][^[:digit:]]"),
            (r"\Qa.b*\E.", r"a\.b\*."),
            (r"^a$", "^a\r?$"),
            (r"\x2e", r"\."),
        ] {
            assert_eq!(pattern(given), made, "{given}");
        }
    }

    #[test]
    fn groups_and_quantifiers_are_plain_ones() {
        for (given, made) in [
            ("(?:ab)+?c*?d??", "(ab)+c*d?"),
            ("(?P<year>x)(?<y>z)(w)", "(x)(z)(w)"),
            ("a{2}b{2,}?c{2,3}", "a{2}b{2,}c{2,3}"),
            ("fn main() {", r"fn main() \{"),
            ("{x}", r"\{x}"),
            ("a{,2}", r"a\{,2}"),
            ("(?s)a(?m:b)", "a(b)"),
        ] {
            assert_eq!(pattern(given), made, "{given}");
        }
        let made = translate("(?im)x").unwrap();
        assert!(made.ignores_case && made.pattern == "x");
        assert!(translate(r"\bx").unwrap().knows_words);
    }

    #[test]
    fn what_has_no_translation_is_named() {
        for (given, named) in [
            ("a(?=b)", "`(?=`"),
            ("a(?!b)", "`(?!`"),
            ("(?<=a)b", "`(?<=`"),
            ("(?>a)", "`(?>`"),
            (r"(a)\1", r"`\1`"),
            (r"\h", r"`\h`"),
            ("a(?i)b", "`(?i)`"),
            ("(?i:a)", "`(?i:`"),
            ("(?x)a b", "`(?x)`"),
            ("a++", "a quantifier that ends in `+`"),
            (r"\p{Greek}", r"`\p{Greek}`"),
            (r"\xzz", r"`\x`"),
            ("(*UCP)a", "`(*`"),
        ] {
            assert_eq!(translate(given).unwrap_err(), named, "{given}");
        }
    }
}
