//! What keys look like whose value is not known.
//!
//! | begins with | then | is |
//! | --- | --- | --- |
//! | `-----BEGIN … PRIVATE KEY-----` | base64, at least 40 characters in one line | a private key, to its `END` |
//! | `sk-` | 20 to 300 of `A-Za-z0-9_-`, among them a digit and a capital | an API key |
//! | `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_` | 36 to 300 of `A-Za-z0-9` | a GitHub token |
//! | `github_pat_` | 22 to 300 of `A-Za-z0-9_` | a GitHub token |
//! | `AKIA`, `ASIA` | 16 of `A-Z0-9` | an AWS access key |
//! | `xoxa-`, `xoxb-`, `xoxp-`, `xoxr-`, `xoxs-` | 10 to 300 of `A-Za-z0-9-` | a Slack token |
//!
//! None of them goes on with a character of its own alphabet, nor stands behind a letter, a digit, `_` or `-`: words such as
//! `task-management` are none.

use super::secrets::Found;

/// What stands in the place of a private key.
pub(super) const KEY_MASK: &str = "[redacted private key]";

/// The bytes with which any of these begins.
pub(super) const BEGINNINGS: &[u8] = b"-sgAx";

/// The longest token that is known of.
const LONGEST: usize = 300;

/// A token: its beginning, what may follow, how many of that, and what it is.
struct Token {
    begins: &'static [u8],
    follows: fn(u8) -> bool,
    least: usize,
    most: usize,
    mixed: bool,
    mask: &'static str,
}

const fn token(
    begins: &'static [u8],
    follows: fn(u8) -> bool,
    (least, most): (usize, usize),
    mask: &'static str,
) -> Token {
    Token { begins, follows, least, most, mixed: false, mask }
}

const GITHUB: &str = "[redacted GitHub token]";
const AWS: &str = "[redacted AWS access key]";
const SLACK: &str = "[redacted Slack token]";

const TOKENS: [Token; 14] = [
    Token { mixed: true, ..token(b"sk-", in_words, (20, LONGEST), "[redacted API key]") },
    token(b"ghp_", letters, (36, LONGEST), GITHUB),
    token(b"gho_", letters, (36, LONGEST), GITHUB),
    token(b"ghu_", letters, (36, LONGEST), GITHUB),
    token(b"ghs_", letters, (36, LONGEST), GITHUB),
    token(b"ghr_", letters, (36, LONGEST), GITHUB),
    token(b"github_pat_", with_underscores, (22, LONGEST), GITHUB),
    token(b"AKIA", capitals, (16, 16), AWS),
    token(b"ASIA", capitals, (16, 16), AWS),
    token(b"xoxa-", with_dashes, (10, LONGEST), SLACK),
    token(b"xoxb-", with_dashes, (10, LONGEST), SLACK),
    token(b"xoxp-", with_dashes, (10, LONGEST), SLACK),
    token(b"xoxr-", with_dashes, (10, LONGEST), SLACK),
    token(b"xoxs-", with_dashes, (10, LONGEST), SLACK),
];

fn letters(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn capitals(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn with_underscores(byte: u8) -> bool {
    letters(byte) || byte == b'_'
}

fn with_dashes(byte: u8) -> bool {
    letters(byte) || byte == b'-'
}

fn in_words(byte: u8) -> bool {
    letters(byte) || matches!(byte, b'_' | b'-')
}

/// Looks at what `rest` begins with, as [`Secrets::look`](super::Secrets) does.
pub(super) fn look(before: Option<u8>, rest: &[u8], all: bool) -> Found {
    if rest.first() == Some(&b'-') {
        return key(rest, all);
    }
    if before.is_some_and(in_words) {
        return Found::Nothing;
    }
    for token in &TOKENS {
        if !all && token.begins.starts_with(rest) {
            return Found::Perhaps;
        }
        let Some(value) = rest.strip_prefix(token.begins) else { continue };
        let length = value.iter().take(token.most + 1).take_while(|byte| (token.follows)(**byte)).count();
        if length > token.most {
            return Found::Nothing;
        }
        if length == value.len() && !all {
            return Found::Perhaps;
        }
        let value = &value[..length];
        let is_mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_uppercase);
        if length >= token.least && (is_mixed || !token.mixed) {
            return Found::Secret(token.begins.len() + length, token.mask.to_owned());
        }
        return Found::Nothing;
    }
    Found::Nothing
}

const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"-----BEGIN ";
const PRIVATE: &[u8] = b"PRIVATE KEY";

/// The longest name of a sort of key, such as `RSA PRIVATE KEY`.
const NAME: usize = 60;

/// Base64 in one line without which there is no key, and how far behind the beginning it is looked for: there may be headers.
const LEAST_BASE64: usize = 40;
const HEADERS: usize = 400;

/// Larger than so many bytes no key is.
const LARGEST: usize = 32 * 1024;

/// Looks whether a private key begins here.
fn key(rest: &[u8], all: bool) -> Found {
    if rest.len() < BEGIN.len() {
        return if !all && BEGIN.starts_with(rest) { Found::Perhaps } else { Found::Nothing };
    }
    let Some(name) = rest.strip_prefix(BEGIN) else { return Found::Nothing };
    let length = name.iter().take(NAME).take_while(|byte| capitals(**byte) || **byte == b' ').count();
    let (name, behind) = name.split_at(length);
    let undecided = || if all { Found::Nothing } else { Found::Perhaps };
    if length == NAME || !DASHES.starts_with(&behind[..behind.len().min(DASHES.len())]) {
        return Found::Nothing;
    }
    if behind.len() < DASHES.len() {
        return undecided();
    }
    if !name.windows(PRIVATE.len()).any(|window| window == PRIVATE) {
        return Found::Nothing;
    }
    let body = &behind[DASHES.len()..];
    let mut run = 0;
    for (at, byte) in body.iter().take(HEADERS).enumerate() {
        run = if is_base64(*byte) { run + 1 } else { 0 };
        if run == LEAST_BASE64 {
            return Found::Key(BEGIN.len() + length + DASHES.len() + at + 1);
        }
        if !is_of_key(*byte) {
            return Found::Nothing;
        }
    }
    if body.len() < HEADERS { undecided() } else { Found::Nothing }
}

fn is_base64(byte: u8) -> bool {
    letters(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// Whether a byte may stand in a private key, also where it is quoted, numbered or marked line by line.
fn is_of_key(byte: u8) -> bool {
    is_base64(byte) || byte.is_ascii_whitespace() || matches!(byte, b'\\' | b':' | b',' | b'-' | b'>' | b'|')
}

/// How many bytes still belong to a private key.
pub(super) struct Within {
    pub(super) length: usize,
    /// Whether the key goes on behind them.
    pub(super) goes_on: bool,
    /// Whether that cannot be told before more has come.
    pub(super) waits: bool,
}

/// Returns what of `rest` belongs to a private key of which so many bytes were seen.
pub(super) fn within_key(rest: &[u8], seen: usize, all: bool) -> Within {
    let room = LARGEST.saturating_sub(seen);
    let ends = |length: usize| Within { length, goes_on: false, waits: false };
    for (at, byte) in rest.iter().enumerate() {
        if at >= room || !is_of_key(*byte) {
            return ends(at);
        }
        if *byte != b'-' {
            continue;
        }
        let from = &rest[at..];
        if from.len() < DASHES.len() && DASHES.starts_with(from) && !all {
            return Within { length: at, goes_on: true, waits: true };
        }
        let Some(name) = from.strip_prefix(DASHES) else { continue };
        let length = name.iter().take(NAME).take_while(|byte| **byte != b'-').count();
        if name[length..].starts_with(DASHES) {
            return ends(at + DASHES.len() + length + DASHES.len());
        }
        if !all && length < NAME && DASHES.starts_with(&name[length..]) {
            return Within { length: at, goes_on: true, waits: true };
        }
        return ends(at);
    }
    Within { length: rest.len(), goes_on: true, waits: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&str> {
        let found = look(None, text.as_bytes(), true);
        match found {
            Found::Secret(length, _) => Some(&text[..length]),
            _ => None,
        }
    }

    #[test]
    fn tokens_are_known_by_beginning_alphabet_and_length() {
        let thirty_six = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
        for token in [
            "sk-proj-abcDEF0123456789_-xy".to_owned(),
            format!("ghp_{thirty_six}"),
            format!("ghs_{thirty_six}"),
            format!("github_pat_11ABCDEFG0{thirty_six}_x"),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            "xoxb-123456789012-abcDEF".to_owned(),
        ] {
            assert_eq!(found(&token), Some(token.as_str()));
            assert_eq!(found(&format!("{token}. Then")), Some(token.as_str()));
        }
    }

    #[test]
    fn what_only_looks_alike_is_none() {
        for text in [
            "sk-folding-cube-animation-long-name",
            "sk-short1A",
            "ghp_tooshort",
            "AKIAIOSFODNN7EXAMPLEANDMORE",
            "AKIA123",
            "xoxb-",
            "xylophone",
            "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa",
            "-----BEGIN PRIVATE KEY-----\" in text and then many words that are no base64 at all",
            "-----BEGIN PRIVATE KEY-----\nput your own key between these two lines, as the manual of it says",
            "- a list",
            "--------------------",
        ] {
            assert_eq!(look(None, text.as_bytes(), true), Found::Nothing, "{text}");
        }
        assert_eq!(look(Some(b'a'), b"sk-proj-abcDEF0123456789_-xy", true), Found::Nothing);
    }

    #[test]
    fn a_key_is_known_by_its_first_line() {
        let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
        for text in [
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{line}"),
            format!("-----BEGIN PRIVATE KEY-----\\n{line}"),
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{line}"
            ),
            format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{line}"),
        ] {
            assert!(matches!(look(None, text.as_bytes(), true), Found::Key(_)), "{text}");
        }
    }
}
