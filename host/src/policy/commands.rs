//! Finds the commands in a shell text.
//!
//! A rule about `sudo`, or about any other program, is about what runs, not about what is printed or passed on. So this
//! follows the shell's grammar as far as is needed to say which word is a command's name, and where the command's standard
//! input comes from (`grammar.rs`). What it does not follow is refused and not guessed.

use std::ops::Range;

use super::grammar::Parser;
use super::lexer::lex;
use super::token::{NotUnderstood, Word};

/// What a shell text would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// Commands that are no compound ones, also those inside words.
    pub simple: Vec<SimpleCommand>,
    /// Where the names of functions stand that the text defines.
    pub functions: Vec<Range<usize>>,
}

/// A name with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Assignments, the name and the arguments; no redirections.
    pub words: Vec<Word>,
    /// Its standard input is not that of the whole text: it is a pipe, redirected, or nothing because the command runs in
    /// the background. Where that cannot be told (as inside words of a redirected command), it is assumed.
    pub reads_elsewhere: bool,
}

/// Returns the commands of a shell text.
///
/// # Errors
///
/// The text is broken, or uses something that is not known here.
pub fn commands(source: &str) -> Result<Commands, NotUnderstood> {
    let mut parser = Parser::new(source);
    let mut last = 0;
    for token in lex(source)? {
        last = token.span.start;
        parser.take(token).map_err(|what| NotUnderstood { what, at: last })?;
    }
    parser.finish().map_err(|what| NotUnderstood { what, at: last })
}

/// Returns whether a word assigns a variable if it stands before a command's name.
#[must_use]
pub fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows each command's words, marked with `!` if it reads elsewhere, and the functions.
    fn shown(source: &str) -> String {
        let Ok(found) = commands(source) else { return "refused".into() };
        let show = |command: &SimpleCommand| {
            let words: Vec<_> = command.words.iter().map(|word| word.text(source)).collect();
            format!("{}{}", words.join(" "), if command.reads_elsewhere { "!" } else { "" })
        };
        let functions = found.functions.iter().map(|span| format!("{}()", &source[span.clone()]));
        found.simple.iter().map(show).chain(functions).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn commands_are_told_from_what_surrounds_them() {
        let cases = [
            ("a 1; b 2 && ! c || time -p d\ne #f", "a 1, b 2, c, d, e"),
            ("A=1 B=2 a >f 2>&1 b", "A=1 B=2 a b"),
            ("if a; then b; elif c; then d; else e; fi >f", "a, b, c, d, e"),
            ("while a; do b; done; until c\ndo d\ndone", "a, b, c, d"),
            ("for x in a b; do c; done; for y do d; done; for z; do e; done", "c, d, e"),
            ("for ((i=0;i<2;i++)); do a; done; ((i++)) && b", "a, b"),
            ("case a in b) c;; (d|e) f ;; *) g; esac; h", "c, f, g, h"),
            ("case a\nin\nb)\n;;\nesac", ""),
            ("{ a; { b; } } ; (c; (d))", "a, b, c, d"),
            ("f() { a; }; function g { b; }; function h () (c)", "a, b, c, f(), g(), h()"),
            ("[[ a && ( b < c ) ]] && d", "d"),
            ("echo if then { } case", "echo if then { } case"),
            ("a $(b; c) \"`d`\"", "a $(b; c) \"`d`\", b, c, d"),
            ("$(a) b", "a, $(a) b"),
            ("a <<E\n$(b)\nE\nc", "a!, c"),
        ];
        for (source, expected) in cases {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn it_is_known_who_reads_elsewhere() {
        let cases = [
            ("a | b |& c; d", "a, b!, c!, d"),
            ("a |\n\n b && c", "a, b!, c"),
            ("a <f; <f b; c 0<f; d 3<f; e <<<x; f >g", "a!, b!, c!, d, e!, f"),
            ("a | while b; do c; done; d", "a, b!, c!, d"),
            ("while a; do b; done <f; c", "a!, b!, c"),
            ("a; b && { c; d; } & e", "a, b!, c!, d!, e"),
            ("a | { b $(c); }", "a, b $(c)!, c!"),
            ("a > >(b) <(c)", "a <(c), b!, c"),
        ];
        for (source, expected) in cases {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases = [
            "if a; then b",
            "a; fi",
            "{ a",
            "(a",
            "a)",
            "a; }",
            "case a in b) c",
            "for x in",
            "a >",
            "a > ; b",
            "echo (a)",
            "(a) b",
            "coproc a",
            "[[ a",
            "; a",
            "a;;",
            "f( a",
            "'a",
            "for 1 2",
            "{ a; )",
        ];
        for source in cases {
            assert_eq!(shown(source), "refused", "{source}");
        }
        assert_eq!(shown(&"{ ".repeat(500_000)), "refused");
    }

    #[test]
    fn assignments_are_known() {
        assert!(["a=", "A_1=b=c", "a+=b", "a[1]=b"].into_iter().all(is_assignment));
        assert!(!["a", "=b", "1a=b", "a-b=c", "$a=b", "-a=b"].into_iter().any(is_assignment));
    }
}
