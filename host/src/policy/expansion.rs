//! Reads what stands inside a word: quotes, variables, and commands whose output the word takes.

use super::lexer::Lexer;
use super::token::{Form, Kind, NotUnderstood, Substitution};

impl Lexer<'_> {
    /// Reads one part of a word that began at `start`: a character, a quotation or an expansion. False at its end.
    pub(super) fn part(&mut self, start: usize, form: &mut Form) -> Result<bool, NotUnderstood> {
        let last = self.source.as_bytes()[start..self.at].last();
        match self.peek() {
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')') => return Ok(false),
            Some(b'(') => match last {
                Some(b'=') => {
                    form.expanded = true;
                    self.at += 1;
                    self.deeper(Self::array)?;
                }
                // Shells, and `bash` with and without `extglob`, do not agree.
                Some(b'?' | b'*' | b'+' | b'@' | b'!') => return self.fail("a pattern with `(`"),
                _ => return Ok(false),
            },
            Some(kind @ (b'<' | b'>')) => {
                if self.rest().get(1) != Some(&b'(') {
                    return Ok(false);
                }
                form.expanded = true;
                self.at += 2;
                self.command(if kind == b'<' { Substitution::Output } else { Substitution::Input })?;
            }
            Some(b'\\') => {
                form.quoted = true;
                self.escaped();
            }
            Some(b'\'') => {
                form.quoted = true;
                self.single()?;
            }
            Some(b'"') => {
                form.quoted = true;
                self.double(form)?;
            }
            Some(b'`') => self.backticks(form)?,
            Some(b'$') => self.dollar(false, form)?,
            Some(byte) => {
                form.globbed |=
                    matches!(byte, b'*' | b'?' | b'[' | b'{') || (byte == b'~' && self.at == start);
                self.at += 1;
            }
        }
        Ok(true)
    }

    /// Passes a backslash and the character after it.
    fn escaped(&mut self) {
        let rest = &self.source[self.at..self.end];
        self.at += rest.chars().take(2).map(char::len_utf8).sum::<usize>();
    }

    fn single(&mut self) -> Result<(), NotUnderstood> {
        match self.rest()[1..].iter().position(|byte| *byte == b'\'') {
            Some(length) => {
                self.at += length + 2;
                Ok(())
            }
            None => self.fail("an unclosed `'`"),
        }
    }

    fn double(&mut self, form: &mut Form) -> Result<(), NotUnderstood> {
        self.at += 1;
        self.deeper(|lexer| {
            loop {
                match lexer.peek() {
                    None => return lexer.fail("an unclosed `\"`"),
                    Some(b'"') => break,
                    Some(b'\\') => lexer.escaped(),
                    Some(b'`') => lexer.backticks(form)?,
                    Some(b'$') => lexer.dollar(true, form)?,
                    Some(_) => lexer.at += 1,
                }
            }
            lexer.at += 1;
            Ok(())
        })
    }

    fn dollar(&mut self, is_quoted: bool, form: &mut Form) -> Result<(), NotUnderstood> {
        let next = self.rest().get(1).copied();
        match next {
            Some(b'(') if self.rest().starts_with(b"$((") => {
                self.at += 3;
                self.deeper(Self::arithmetic)?;
            }
            Some(b'(') => {
                self.at += 2;
                self.command(Substitution::Command)?;
            }
            Some(b'{') => {
                self.at += 2;
                self.deeper(|lexer| lexer.parameter(is_quoted))?;
            }
            // `$[…]` is arithmetic to `bash` alone.
            Some(b'[') => return self.fail("`$[`"),
            Some(b'\'') if !is_quoted => {
                form.quoted = true;
                self.at += 2;
                loop {
                    match self.peek() {
                        None => return self.fail("an unclosed `$'`"),
                        Some(b'\\') => self.escaped(),
                        Some(byte) => {
                            self.at += 1;
                            if byte == b'\'' {
                                return Ok(());
                            }
                        }
                    }
                }
            }
            Some(b'"') if !is_quoted => {
                self.at += 1;
                return Ok(());
            }
            Some(
                b'A'..=b'Z'
                | b'a'..=b'z'
                | b'0'..=b'9'
                | b'_'
                | b'@'
                | b'*'
                | b'#'
                | b'?'
                | b'-'
                | b'$'
                | b'!',
            ) => {
                self.at += 2;
            }
            _ => {
                self.at += 1;
                return Ok(());
            }
        }
        form.expanded = true;
        Ok(())
    }

    /// Reads the commands of a substitution to its `)`.
    fn command(&mut self, substitution: Substitution) -> Result<(), NotUnderstood> {
        self.push(Kind::Open(substitution), self.at..self.at);
        self.deeper(|lexer| lexer.list(true))?;
        self.push(Kind::Close, self.at..self.at + 1);
        self.at += 1;
        Ok(())
    }

    /// Reads the commands between backticks. The shell takes backslashes out of them first, which changes what they mean:
    /// those that it would take out are refused.
    fn backticks(&mut self, form: &mut Form) -> Result<(), NotUnderstood> {
        form.expanded = true;
        self.at += 1;
        let Some(length) = self.rest().iter().position(|byte| *byte == b'`') else {
            return self.fail("an unclosed backtick");
        };
        let inside = &self.rest()[..length];
        let is_escaped = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'\\' | b'$' | b'"');
        if inside.windows(2).any(is_escaped) || inside.last() == Some(&b'\\') {
            return self.fail("a backslash between backticks");
        }
        let end = std::mem::replace(&mut self.end, self.at + length);
        self.push(Kind::Open(Substitution::Command), self.at..self.at);
        self.deeper(|lexer| lexer.list(false))?;
        self.end = end;
        self.push(Kind::Close, self.at..self.at + 1);
        self.at += 1;
        Ok(())
    }

    /// Reads `${…}` after its brace. Inside double quotes, shells do not agree on what a single quote means there.
    fn parameter(&mut self, is_quoted: bool) -> Result<(), NotUnderstood> {
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            return self.fail("a command in `${`");
        }
        let mut form = Form::default();
        loop {
            match self.peek() {
                None => return self.fail("an unclosed `${`"),
                Some(b'}') => break,
                Some(b'\\') => self.escaped(),
                Some(b'\'') if is_quoted => return self.fail("a quote in a quoted `${`"),
                Some(b'\'') => self.single()?,
                Some(b'"') => self.double(&mut form)?,
                Some(b'`') => self.backticks(&mut form)?,
                Some(b'$') => self.dollar(is_quoted, &mut form)?,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads arithmetic after its `((`. What does not end in `))` may be commands in two parentheses: that is refused.
    pub(super) fn arithmetic(&mut self) -> Result<(), NotUnderstood> {
        let (mut open, mut form) = (0_usize, Form::default());
        loop {
            match self.peek() {
                None | Some(b'\'') => return self.fail("an unclosed or unclear `((`"),
                Some(b')') if open == 0 => break,
                Some(b')') => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b'(') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b'\\') => self.escaped(),
                Some(b'"') => self.double(&mut form)?,
                Some(b'`') => self.backticks(&mut form)?,
                Some(b'$') => self.dollar(true, &mut form)?,
                Some(_) => self.at += 1,
            }
        }
        if !self.rest().starts_with(b"))") {
            return self.fail("an unclear `((`");
        }
        self.at += 2;
        Ok(())
    }

    /// Reads the elements of an array to its `)`. They are no words of a command, but commands may stand in them.
    fn array(&mut self) -> Result<(), NotUnderstood> {
        loop {
            match self.peek() {
                None => return self.fail("an unclosed `(`"),
                Some(b')') => break,
                Some(b' ' | b'\t' | b'\n') => self.at += 1,
                Some(b'#') => {
                    let rest = self.rest();
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                Some(_) => {
                    let (start, mut form) = (self.at, Form::default());
                    while self.part(start, &mut form)? {}
                    if self.at == start {
                        return self.fail("an operator in an array");
                    }
                }
            }
        }
        self.at += 1;
        Ok(())
    }
}
