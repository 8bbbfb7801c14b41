//! Characters that look alike, and that models write in place of each other.
//!
//! Word processors make curly quotes, long dashes and no-break spaces; models write the plain ones of ASCII, or the
//! other way round. And an accented letter may be one character or two. The plain form here is for comparing only:
//! what a file holds stays as it is.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How an em dash is written plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dash {
    /// As `-`.
    One,
    /// As `--`.
    Two,
}

/// Accents: the mark, the letters that have it, and the same letters without it.
const ACCENTS: [(char, &str, &str); 13] = [
    ('\u{300}', "ÀÈÌÒÙàèìòùǸǹ", "AEIOUaeiouNn"),
    ('\u{301}', "ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹź", "AEIOUYaeiouyCcLlNnRrSsZz"),
    ('\u{302}', "ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷ", "AEIOUaeiouCcGgHhJjSsWwYy"),
    ('\u{303}', "ÃÑÕãñõĨĩŨũ", "ANOanoIiUu"),
    ('\u{304}', "ĀāĒēĪīŌōŪū", "AaEeIiOoUu"),
    ('\u{306}', "ĂăĔĕĞğĬĭŎŏŬŭй", "AaEeGgIiOoUuи"),
    ('\u{307}', "ĊċĖėĠġİŻż", "CcEeGgIZz"),
    ('\u{308}', "ÄËÏÖÜäëïöüÿŸё", "AEIOUaeiouyYе"),
    ('\u{30a}', "ÅåŮů", "AaUu"),
    ('\u{30b}', "ŐőŰű", "OoUu"),
    ('\u{30c}', "ČčĎďĚěŇňŘřŠšŤťŽž", "CcDdEeNnRrSsTtZz"),
    ('\u{327}', "ÇçĢģĶķĻļŅņŖŗŞşŢţ", "CcGgKkLlNnRrSsTt"),
    ('\u{328}', "ĄąĘęĮįŲų", "AaEeIiUu"),
];

static DECOMPOSED: LazyLock<HashMap<char, [char; 2]>> = LazyLock::new(|| {
    let pairs = |(mark, whole, bare): &(char, &'static str, &'static str)| {
        let mark = *mark;
        whole.chars().zip(bare.chars()).map(move |(whole, bare)| (whole, [bare, mark]))
    };
    ACCENTS.iter().flat_map(pairs).collect()
});

/// Gives the plain form of a character, which may be several characters or none.
pub(super) fn plain(c: char, dash: Dash, mut give: impl FnMut(char)) {
    match c {
        '\0'..='\u{7f}' => give(c),
        '\u{2018}'..='\u{201b}' | '\u{2032}' => give('\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => give('"'),
        '\u{2010}'..='\u{2013}' | '\u{2212}' | '\u{fe63}' => give('-'),
        '\u{2014}' | '\u{2015}' => {
            give('-');
            if dash == Dash::Two {
                give('-');
            }
        }
        '\u{2026}' => "...".chars().for_each(give),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => give(' '),
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => give(char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)),
        _ => match DECOMPOSED.get(&c) {
            Some(parts) => parts.iter().copied().for_each(give),
            None => give(c),
        },
    }
}

/// Returns whether a text certainly is its own plain form.
pub(super) fn is_plain(text: &str) -> bool {
    text.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str, dash: Dash) -> String {
        let mut form = String::new();
        text.chars().for_each(|c| plain(c, dash, |c| form.push(c)));
        form
    }

    #[test]
    fn what_looks_alike_has_one_form() {
        assert_eq!(form("“a”\u{a0}‘b’ – c…\u{200b}", Dash::One), "\"a\" 'b' - c...");
        assert_eq!((form("—", Dash::One), form("—", Dash::Two)), ("-".into(), "--".into()));
        assert_eq!(form("café Ångström", Dash::One), form("cafe\u{301} A\u{30a}ngstro\u{308}m", Dash::One));
        assert_eq!(form("ｘ＝１", Dash::One), "x=1");
        assert_eq!(form("日本 €", Dash::One), "日本 €");
    }

    #[test]
    fn the_table_of_accents_is_even() {
        for (mark, whole, bare) in ACCENTS {
            assert_eq!(whole.chars().count(), bare.chars().count(), "{mark:?}");
        }
    }
}
