//! Cuts a shell command into tokens.
//!
//! The grammar is that of `sh` and `bash`. It need not be understood in full, but what is not understood must be told
//! from what is: whoever takes a quote for a command, or a command for a quote, is fooled by the next script. So there is
//! no guessing here: a text that is broken, or that shells read in different ways, is refused. Time is linear in the
//! length of the text.

use std::ops::Range;

use super::token::{Form, Kind, NotUnderstood, Token, unquoted};

/// How deep quotes and substitutions may stand in one another.
const DEEPEST: usize = 64;

/// Operators, the longer before what they begin with.
const OPERATORS: [&str; 11] = [";;&", "&&", "||", "|&", ";;", ";&", ";", "&", "|", "(", ")"];

/// Operators that redirect, the longer before what they begin with.
const REDIRECTIONS: [&str; 12] = ["&>>", "<<<", "<<-", "&>", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];

/// Returns the tokens of a command, in the order of the text. What stands inside a word comes before the word.
///
/// # Errors
///
/// The text is broken, uses something that is not known here, or is nested more than 64 deep.
pub fn lex(source: &str) -> Result<Vec<Token>, NotUnderstood> {
    let end = source.len();
    let mut lexer = Lexer { source, at: 0, end, depth: 0, tokens: Vec::new(), documents: Vec::new() };
    lexer.list(false)?;
    Ok(lexer.tokens)
}

pub(super) struct Lexer<'a> {
    pub(super) source: &'a str,
    /// The next byte.
    pub(super) at: usize,
    /// Where the text ends that is being read: within backticks, before the second one.
    pub(super) end: usize,
    pub(super) depth: usize,
    pub(super) tokens: Vec<Token>,
    /// Here-documents that begin after this line.
    documents: Vec<Document>,
}

struct Document {
    delimiter: String,
    /// Nothing in it is expanded, and a backslash means nothing.
    is_quoted: bool,
    strips_tabs: bool,
}

impl Lexer<'_> {
    pub(super) fn rest(&self) -> &[u8] {
        &self.source.as_bytes()[self.at..self.end]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn fail<T>(&self, what: &'static str) -> Result<T, NotUnderstood> {
        Err(NotUnderstood { what, at: self.at })
    }

    pub(super) fn push(&mut self, kind: Kind, span: Range<usize>) {
        self.tokens.push(Token { kind, span });
    }

    /// Reads what stands inside something else.
    pub(super) fn deeper(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<(), NotUnderstood>,
    ) -> Result<(), NotUnderstood> {
        if self.depth == DEEPEST {
            return self.fail("too much nesting");
        }
        self.depth += 1;
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Reads commands to the end of the text, or to the `)` that closes a substitution, which is left.
    pub(super) fn list(&mut self, in_parentheses: bool) -> Result<(), NotUnderstood> {
        let (outer, first) = (self.documents.len(), self.tokens.len());
        let mut open = 0_usize;
        loop {
            let start = self.at;
            match self.peek() {
                None if in_parentheses => return self.fail("an unclosed `(`"),
                None => break,
                Some(b')') if in_parentheses && open == 0 => break,
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.rest().starts_with(b"\\\n") => self.at += 2,
                Some(b'\n') => {
                    self.at += 1;
                    self.push(Kind::Newline, start..self.at);
                    if outer > 0 {
                        return self.fail("a line that ends inside a word before a here-document");
                    }
                    self.documents()?;
                }
                Some(b'#') => {
                    let rest = self.rest();
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    self.push(Kind::Comment, start..self.at);
                }
                Some(b'(') if self.rest().starts_with(b"((") => {
                    self.at += 2;
                    self.deeper(Self::arithmetic)?;
                    self.push(Kind::Arithmetic, start..self.at);
                }
                Some(_) => {
                    if let Some(length) = self.redirection() {
                        self.at += length;
                        self.push(Kind::Redirection, start..self.at);
                    } else if let Some(operator) = self.one_of(&OPERATORS) {
                        self.at += operator.len();
                        self.push(Kind::Operator, start..self.at);
                        match operator {
                            "(" => open += 1,
                            ")" => open = open.saturating_sub(1),
                            _ => {}
                        }
                    } else {
                        self.word(in_parentheses, first)?;
                    }
                }
            }
        }
        if self.documents.len() > outer {
            return self.fail("a here-document without text");
        }
        Ok(())
    }

    fn one_of(&self, operators: &[&'static str]) -> Option<&'static str> {
        operators.iter().find(|operator| self.rest().starts_with(operator.as_bytes())).copied()
    }

    /// Returns the length of the redirection that begins here, with its descriptor: a number, or a name in braces.
    fn redirection(&self) -> Option<usize> {
        let rest = self.rest();
        let descriptor = match rest.first()? {
            b'0'..=b'9' => rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            b'{' => {
                let name = rest[1..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                    .count();
                if name == 0 || rest.get(name + 1) != Some(&b'}') {
                    return None;
                }
                name + 2
            }
            _ => 0,
        };
        let from = &rest[descriptor..];
        let operator = REDIRECTIONS.iter().find(|operator| from.starts_with(operator.as_bytes()))?;
        let is_substitution = matches!(*operator, "<" | ">") && from.get(1) == Some(&b'(');
        let is_wrong = descriptor > 0 && operator.starts_with('&');
        (!is_substitution && !is_wrong).then_some(descriptor + operator.len())
    }

    fn word(&mut self, in_parentheses: bool, first: usize) -> Result<(), NotUnderstood> {
        let (start, tokens) = (self.at, self.tokens.len());
        let mut form = Form::default();
        while self.part(start, &mut form)? {}
        if self.at == start {
            return self.fail("a character that begins nothing");
        }
        let text = &self.source[start..self.at];
        let before = if tokens > first { self.tokens.get(tokens - 1) } else { None };
        if let Some(Token { kind: Kind::Redirection, span }) = before {
            let operator = self.source[span.clone()].trim_start_matches(|other| other != '<');
            if matches!(operator, "<<" | "<<-") {
                let strips_tabs = operator == "<<-";
                let delimiter = if form.quoted { unquoted(text) } else { Some(text.to_owned()) };
                let (Some(delimiter), false) = (delimiter, form.expanded) else {
                    return self.fail("a here-document whose end is not plain");
                };
                self.documents.push(Document { delimiter, is_quoted: form.quoted, strips_tabs });
            }
        } else if in_parentheses
            && text == "case"
            && before.is_none_or(|token| self.may_precede_command(token))
        {
            // Its patterns have a `)` without `(`.
            return self.fail("`case` inside a substitution");
        }
        self.push(Kind::Word(form), start..self.at);
        Ok(())
    }

    fn may_precede_command(&self, token: &Token) -> bool {
        let reserved = [
            "!", "{", "if", "then", "elif", "else", "while", "until", "do", "time", "-p", "}", "fi", "done",
            "esac",
        ];
        !matches!(token.kind, Kind::Word(_)) || reserved.contains(&&self.source[token.span.clone()])
    }

    /// Reads the here-documents that begin with this line.
    fn documents(&mut self) -> Result<(), NotUnderstood> {
        for document in std::mem::take(&mut self.documents) {
            let start = self.at;
            let mut is_continued = false;
            loop {
                let rest = &self.source[self.at..self.end];
                if rest.is_empty() {
                    return self.fail("a here-document without end");
                }
                let line = rest.split_once('\n').map_or(rest, |(line, _)| line);
                let content = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                let end = self.at;
                self.at += (line.len() + 1).min(rest.len());
                if content == document.delimiter && !is_continued {
                    self.push(Kind::HereDocument, start..end);
                    break;
                }
                let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
                is_continued = !document.is_quoted && backslashes % 2 == 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::token::Substitution;

    /// Shows tokens by one letter and their text; words that are quoted, expanded or globbed by more letters.
    fn shown(source: &str) -> Result<String, &'static str> {
        let show = |token: Token| {
            let kind = match token.kind {
                Kind::Word(form) => {
                    let letter = |is: bool, letter| if is { letter } else { "" };
                    format!(
                        "w{}{}{}",
                        letter(form.quoted, "q"),
                        letter(form.expanded, "e"),
                        letter(form.globbed, "g")
                    )
                }
                Kind::Operator => "o".into(),
                Kind::Redirection => "r".into(),
                Kind::Newline => return "n".into(),
                Kind::Comment => "c".into(),
                Kind::HereDocument => "h".into(),
                Kind::Arithmetic => "a".into(),
                Kind::Open(Substitution::Command) => return "<".into(),
                Kind::Open(_) => return "<<".into(),
                Kind::Close => return ">".into(),
            };
            format!("{kind}:{}", &source[token.span])
        };
        lex(source)
            .map(|tokens| tokens.into_iter().map(show).collect::<Vec<_>>().join(" "))
            .map_err(|error| error.what)
    }

    #[test]
    fn text_is_cut_as_the_shell_does() {
        let cases = [
            ("a b;c&&d||e|f&", "w:a w:b o:; w:c o:&& w:d o:|| w:e o:| w:f o:&"),
            ("a|&b;;c;&;;&", "w:a o:|& w:b o:;; w:c o:;& o:;;&"),
            ("echo 'a;b' \"c|d\" e\\;f", "w:echo wq:'a;b' wq:\"c|d\" wq:e\\;f"),
            ("a #b;c\nd#e", "w:a c:#b;c n w:d#e"),
            ("a \\\n b", "w:a w:b"),
            (
                "$x ${y:-a b} \"$z\" $ $'a\\'b' *.c ~ a~",
                "we:$x we:${y:-a b} wqe:\"$z\" w:$ wq:$'a\\'b' wg:*.c wg:~ w:a~",
            ),
            ("a 2>&1 >f <g {h}<i 3<>j &>k", "w:a r:2>& w:1 r:> w:f r:< w:g r:{h}< w:i r:3<> w:j r:&> w:k"),
            ("(a) { b; }", "o:( w:a o:) wg:{ w:b o:; w:}"),
            ("a$(b (c) \"$(d)\")e", "< w:b o:( w:c o:) < w:d > wqe:\"$(d)\" > we:a$(b (c) \"$(d)\")e"),
            ("`a b`", "< w:a w:b > we:`a b`"),
            ("a <(b) >(c)", "w:a << w:b > we:<(b) << w:c > we:>(c)"),
            ("x=(a $(b)\n#)\nc) y", "< w:b > we:x=(a $(b)\n#)\nc) w:y"),
            ("((i<<2)) $((1+(2)))", "a:((i<<2)) we:$((1+(2)))"),
            ("a <<E b\n$(c\nE\nd", "w:a r:<< w:E w:b n h:$(c\n w:d"),
            ("a <<-'E' <<F\n\tb\n\tE\nE\nF\n", "w:a r:<<- wq:'E' r:<< w:F n h:\tb\n h:E\n"),
            ("a <<E\nb\\\nE\nE", "w:a r:<< w:E n h:b\\\nE\n"),
            ("$(a <<E\n)\nE\n)", "< w:a r:<< w:E n h:)\n > we:$(a <<E\n)\nE\n)"),
            ("a <<<b", "w:a r:<<< w:b"),
            ("ä €'ö'", "w:ä wq:€'ö'"),
        ];
        for (source, expected) in cases {
            assert_eq!(shown(source), Ok(expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn what_is_broken_or_read_in_different_ways_is_refused() {
        let cases = [
            "'a",
            "\"a",
            "`a",
            "$(a",
            "${a",
            "$'a",
            "$((1",
            "((a) b)",
            "$((a) | b)",
            "a=(b",
            "a <<E\nb",
            "a <<E",
            "\"$(a\"",
            "ls !(a)",
            "$[1]",
            "${ a; }",
            "\"${a:-'}\"",
            "`a \\`b\\``",
            "$(case a in b) c;; esac)",
            "a <<$(b)\n",
            "a=(b;c)",
            "a <<E $(b\n)\nE\n",
        ];
        for source in cases {
            assert!(lex(source).is_err(), "{source}");
        }
        assert!(lex(&"$(".repeat(1_000_000)).is_err());
        assert!(lex(&"\"$(".repeat(500_000)).is_err());
        let deep = format!("{}a{}", "$(".repeat(60), ")".repeat(60));
        assert_eq!(lex(&deep).map(|tokens| tokens.len()), Ok(181));
    }

    #[test]
    fn tokens_stand_in_the_text() {
        const PARTS: [&str; 26] = [
            "a", " ", "é€", "'", "\"", "`", "$", "$(", "(", ")", "{", "}", "${", "\\", "\n", "#", "<<E", "<",
            ">", "&", "|", ";", "=", "((", "\nE\n", "case ",
        ];
        let mut seed = 7_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        let mut understood = 0;
        for _ in 0..20_000 {
            let source: String = (0..random(14)).map(|_| PARTS[random(PARTS.len())]).collect();
            let Ok(tokens) = lex(&source) else { continue };
            understood += 1;
            for token in tokens {
                assert!(source.get(token.span.clone()).is_some(), "{source:?}: {token:?}");
            }
        }
        assert!(understood > 2000, "{understood}");
    }
}
