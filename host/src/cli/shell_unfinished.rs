//! Whether a command goes on in the next line.
//!
//! A person, or a script, gives us lines, and a backend takes commands: a quotation, a here-document or a loop must be whole before
//! it is handed over. The shell's own word comes too late, since to it half a command is a broken one. So the grammar
//! (`policy::commands`) is asked after each line. What it does not follow counts as whole: the shell will say what is wrong with it,
//! and nobody is asked for more without end.

use crate::policy::commands::commands;
use crate::policy::lexer::lex;
use crate::policy::token::{Kind, NotUnderstood};

/// A command, line by line.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    text: String,
    begun: bool,
    wait: Wait,
}

/// What a line must hold if it is to end the command. Long quotations and here-documents need not be read anew for each of their
/// lines.
#[derive(Debug, Default, PartialEq, Eq)]
enum Wait {
    #[default]
    Anything,
    Character(char),
    /// The end of a here-document, which stands somewhere in this text.
    Delimiter(String),
}

impl Unfinished {
    /// Returns whether there is a line already.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Adds a line, without its end. Returns whether the command is whole.
    pub(super) fn push(&mut self, line: &str) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            self.text.push('\n');
        }
        self.text.push_str(line);
        let may_end = match &self.wait {
            Wait::Anything => true,
            Wait::Character(character) => line.contains(*character),
            Wait::Delimiter(opening) => opening.contains(bare(line).trim_start_matches('\t')),
        };
        if !may_end {
            return false;
        }
        match (open(&self.text), &self.wait) {
            (None, _) => return true,
            // The text in which it stands is still the one in which the first was.
            (Some(Wait::Delimiter(_)), Wait::Delimiter(_)) => {}
            (Some(wait), _) => self.wait = wait,
        }
        false
    }

    /// Returns the lines as one text.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Returns what is missing at the end of `text`. None if nothing is.
fn open(text: &str) -> Option<Wait> {
    let whole = format!("{text}\n");
    let tokens = match commands(&whole).and_then(|_| lex(&whole)) {
        Ok(tokens) => tokens,
        Err(error) => return missing(&error, &whole),
    };
    let last = tokens.last().map(|token| token.kind);
    if text.ends_with('\\') && !matches!(last, Some(Kind::Newline | Kind::HereDocument)) {
        // It has taken the end of the line with it.
        return Some(Wait::Anything);
    }
    let mut before = tokens
        .iter()
        .rev()
        .filter(|token| !matches!(token.kind, Kind::Newline | Kind::Comment | Kind::HereDocument))
        .map(|token| if token.kind == Kind::Operator { &whole[token.span.clone()] } else { "" });
    match (before.next(), before.next()) {
        // A list that goes on, or the name of a function whose body is still to come.
        (Some("&&" | "||" | "|" | "|&"), _) | (Some(")"), Some("(")) => Some(Wait::Anything),
        _ => None,
    }
}

/// Returns what is missing if an error says that a text is too short. None if the text is broken or not understood.
fn missing(error: &NotUnderstood, whole: &str) -> Option<Wait> {
    let character = match error.what {
        "a command that does not end" => return Some(Wait::Anything),
        "a here-document without text" | "a here-document without end" => {
            return Some(Wait::Delimiter(bare(whole)));
        }
        "an unclosed `'`" | "an unclosed `$'`" => '\'',
        "an unclosed `\"`" => '"',
        "an unclosed backtick" => '`',
        "an unclosed `${`" => '}',
        "an unclosed `(`" => ')',
        // Anywhere else it is unclear, and stays so.
        "an unclosed or unclear `((`" if error.at == whole.len() => ')',
        _ => return None,
    };
    Some(Wait::Character(character))
}

/// Takes out of a text what may be put around a here-document's end.
fn bare(text: &str) -> String {
    text.replace(['\'', '"', '\\'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts a text into commands.
    fn cut(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut present = Unfinished::default();
        for line in text.lines() {
            if present.push(line) {
                found.push(std::mem::take(&mut present).into_text());
            }
        }
        if present.has_begun() {
            found.push(format!("unfinished: {}", present.into_text()));
        }
        found
    }

    #[test]
    fn what_goes_on_in_the_next_line_is_one_command() {
        let whole = [
            "echo 'a\nb'",
            "echo \"a\nb\" c",
            "echo $'a\nb'",
            "echo `a\nb`",
            "echo $(a\nb)",
            "echo \"$(a 'x\ny')\nz\"",
            "echo ${a:-\nb}",
            "echo $((1 +\n2))",
            "((i++\n))",
            "a=(b\nc)",
            "a \\\nb",
            "a\\\nb",
            "a &&\nb",
            "a || # why\n\nb",
            "a |\nb",
            "if a\nthen b\nfi",
            "for x in 1 2\ndo a\ndone",
            "while a; do\nb\ndone < f",
            "case a in\nb)\nc;;\nesac",
            "{ a\n}",
            "( a\n)",
            "f()\n{ a\n}",
            "function f\n{ a; }",
            "[[ a &&\nb ]]",
            "cat <<E\n$x 'y\nE",
            "cat <<'E F' <<-G; b\n\\\nE F\n\tx\n\tG",
            "cat <<E |\nx\nE\nb",
            "if a; then cat <<E\nx\n\nEE\nE\nfi",
            "echo \"$(cat <<E\n'\nE\n)\"",
        ];
        for text in whole {
            assert_eq!(cut(text), [text], "{text}");
        }
    }

    #[test]
    fn what_ends_with_its_line_is_not_held_back() {
        let lines = [
            "a",
            "a;",
            "a &",
            "a # 'b",
            "a # \\",
            "'a\\'",
            "a\\\\",
            "! a",
            "a >f",
            "a <<<b",
            "f() { a; }",
            "echo if",
            "a b()c",
            "",
        ];
        for line in lines {
            assert_eq!(cut(&format!("{line}\nb")), [line, "b"], "{line}");
        }
    }

    #[test]
    fn what_is_broken_or_not_followed_is_left_to_the_shell() {
        for line in ["a;;", "fi", "a >", "a)", "ls !(a|b)", "((a) || b)", "echo \"${a:-'}\"", "coproc a"] {
            assert_eq!(cut(&format!("{line}\nb")), [line, "b"], "{line}");
        }
    }

    #[test]
    fn an_open_end_is_seen() {
        assert_eq!(cut("echo 'a\nb"), ["unfinished: echo 'a\nb"]);
        assert_eq!(cut("cat <<E\nE \n E"), ["unfinished: cat <<E\nE \n E"]);
    }

    #[test]
    fn a_long_document_is_not_read_anew_for_each_line() {
        let lines = "one line of it\n".repeat(20_000);
        let text = format!("cat <<'END'\n{lines}END");
        assert_eq!(cut(&text), [text]);
    }
}
