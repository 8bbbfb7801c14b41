//! What a crate cannot be called, although a plugin can.

use crate::registry::fold;

/// The crate that every plugin depends on.
pub(super) const API_CRATE: &str = "hostel-plugin-api";

/// The keywords of Rust 2024, used or kept for later, as far as they are lower-case.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// The crates that come with Rust.
const RUSTS_OWN: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// Returns why the plugin `name` cannot be a crate of that name, if it cannot.
pub(super) fn why_not(name: &str) -> Option<&'static str> {
    let folded = fold(name);
    if KEYWORDS.contains(&folded.as_str()) {
        return Some("it is a keyword of Rust");
    }
    if RUSTS_OWN.contains(&folded.as_str()) {
        return Some("a crate of that name comes with Rust");
    }
    if folded == fold(API_CRATE) {
        return Some("it is the crate that every plugin depends on");
    }
    // Rust warns of a crate's name with two `_` in a row, and the name for people would have a hole.
    let holes = folded.split('_').any(str::is_empty);
    holes.then_some("each `-` and `_` must stand between two letters or digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_rust_and_holes_are_refused() {
        for good in ["a", "acmebox", "demo-box", "a_b-c9", "null", "async-box"] {
            assert_eq!(why_not(good), None, "{good}");
        }
        for (bad, reason) in [
            ("fn", "keyword"),
            ("gen", "keyword"),
            ("test", "comes with Rust"),
            ("proc-macro", "comes with Rust"),
            ("hostel-plugin-api", "every plugin depends on"),
            ("a--b", "between two letters"),
            ("a-", "between two letters"),
        ] {
            assert!(why_not(bad).is_some_and(|why| why.contains(reason)), "{bad}");
        }
    }
}
