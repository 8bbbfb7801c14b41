//! What an agent is told instead of having a command run that would leave it worse off.
//!
//! A program that is put in the background by shell means runs where nobody sees its output or hears of its end, and one that never
//! ends costs its whole time limit. Both are wanted, and both are had by `background`. What counts is what the shell would run:
//! not what stands in quotes, comments or here-documents, and `&&`, `&>` and `2>&1` put nothing in the background.

use super::called::{Called, behind_runners, called};
use super::guess;
use super::servers::is_server;
use crate::policy::commands::{Commands, commands};
use crate::policy::lexer::lex;
use crate::policy::token::Kind;
use crate::tools::tool::Failure;

/// Programs that take a command away from its shell.
const DETACHING: [&str; 3] = ["nohup", "disown", "setsid"];

/// What to do instead.
const INSTEAD: &str = "call `terminal` with `background: true`, and `process` with the `session_id` that it returns; \
                       `notify` tells you of its end or of lines of its output";

/// Returns why a command is not run in the foreground, if it is not.
pub(super) fn refusal(command: &str) -> Option<Failure> {
    let (programs, in_background) = look(command);
    let wrong = programs.iter().find(|called| detaches(called) || is_server(called));
    wrong.map(about).or_else(|| in_background.then(|| leaves("&")))
}

/// Returns what is to be known of a command that is run in the background, and would leave that too.
pub(super) fn remark(command: &str) -> Option<String> {
    let (programs, in_background) = look(command);
    let name = programs.iter().find(|called| detaches(called)).map(|called| called.name.as_str());
    let name = name.or_else(|| in_background.then_some("&"))?;
    Some(format!(
        "what `{name}` starts is not looked after: leave it out, since this runs in the background as it is"
    ))
}

/// Returns the programs that a command runs, and whether it puts something in the background.
fn look(command: &str) -> (Vec<Called>, bool) {
    if let Ok(found) = commands(command) {
        return (programs(&found, command), has_background(command));
    }
    let bare = guess::bare(command);
    let programs = guess::commands(&bare).into_iter().filter_map(behind_runners).collect();
    (programs, guess::has_background(&bare))
}

fn detaches(called: &Called) -> bool {
    let asks = |word: &String| matches!(word.as_str(), "--help" | "--version");
    DETACHING.contains(&called.name.as_str()) && !called.arguments.first().is_some_and(asks)
}

fn leaves(name: &str) -> Failure {
    Failure::new(format!(
        "`{name}` would leave a command running where nobody sees its output or hears of its end"
    ))
    .with_hint(INSTEAD)
}

fn about(called: &Called) -> Failure {
    let name = &called.name;
    if detaches(called) {
        return leaves(name);
    }
    let words: Vec<&str> = std::iter::once(name).chain(&called.arguments).map(String::as_str).collect();
    let shown: String = words.join(" ").chars().take(80).collect();
    let message =
        format!("`{shown}` runs until it is stopped, which in the foreground is when its time is up");
    Failure::new(message).with_hint(INSTEAD)
}

fn programs(found: &Commands, source: &str) -> Vec<Called> {
    found.simple.iter().filter_map(|simple| called(simple, source)).collect()
}

/// Returns whether a text that is understood puts a command in the background, and leaves it there: one that is waited for or ended further on, by the
/// same shell, is the text's own affair.
fn has_background(source: &str) -> bool {
    let Ok(tokens) = lex(source) else { return false };
    let (mut is_left, mut depth, mut is_certain, mut begins) = (false, 0_i32, true, true);
    for token in &tokens {
        let text = source.get(token.span.clone()).unwrap_or_default();
        let is_operator = token.kind == Kind::Operator;
        match text {
            "(" if is_operator => depth += 1,
            ")" if is_operator => depth -= 1,
            // What a subshell leaves nobody else can wait for.
            "&" if is_operator && depth != 0 => return true,
            "&" if is_operator => (is_left, is_certain) = (true, true),
            "wait" | "kill" if begins && is_certain && depth == 0 => is_left = false,
            // What is done only under a condition may not be done.
            word if begins && CONDITIONS.contains(&word) => is_certain = false,
            _ => {}
        }
        begins = token.kind == Kind::Newline || (is_operator && matches!(text, ";" | "&" | "&&"));
    }
    is_left
}

/// What begins a part of a text that may be passed over.
const CONDITIONS: [&str; 5] = ["if", "while", "until", "case", "for"];

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: &str) -> Option<String> {
        refusal(command).map(|failure| failure.message)
    }

    #[test]
    fn what_leaves_the_foreground_is_refused() {
        for (command, named) in [
            ("sleep 5 &", "`&`"),
            ("a & b", "`&`"),
            ("(a &)", "`&`"),
            ("a && b & ", "`&`"),
            ("echo $(a & b)", "`&`"),
            ("if a; then b & fi", "`&`"),
            ("nohup make", "`nohup`"),
            ("nohup make > log 2>&1 &", "`nohup`"),
            ("cd x && sudo setsid y", "`setsid`"),
            ("a; disown", "`disown`"),
            ("npm run dev", "`npm run dev`"),
            ("cd web && npm run dev 2>&1 | tee log", "`npm run dev`"),
            ("coproc x; nohup y", "`nohup`"),
            ("$[1]; a &", "`&`"),
            ("wait; a &", "`&`"),
            ("a & wait; b &", "`&`"),
            ("a & echo wait for it", "`&`"),
            ("(while :; do sleep 9; done) & echo kill", "`&`"),
            ("( a & ) & wait", "`&`"),
            ("(a &) ; wait", "`&`"),
            ("a & if false; then wait; fi", "`&`"),
            ("a & (wait)", "`&`"),
        ] {
            let message = refused(command).unwrap_or_else(|| panic!("{command}"));
            assert!(message.contains(named), "{command}: {message}");
        }
    }

    #[test]
    fn data_and_other_ampersands_are_not() {
        assert!(
            remark("server &").unwrap().contains("`&`") && remark("nohup x").unwrap().contains("`nohup`")
        );
        assert_eq!(remark("npm run dev 2>&1 | tee log"), None);
        for command in [
            "echo \"a & b\"",
            "echo 'nohup x &'",
            "git commit -m 'run nohup server &'",
            "cat <<'EOF'\nnohup x &\nEOF",
            "cat > s.sh <<EOF\nsetsid a & b\nEOF",
            "a && b",
            "a 2>&1",
            "a &> f; b >& g; c |& d",
            "echo a # b &",
            "python3 - <<'E'\nprint(0o755 & 0o777)\nE",
            "echo $((5 & 3)); ((x = 5 & 3))",
            "curl 'http://x/?a=1&b=2'",
            "sleep 0.1 & wait; echo ok",
            "f & wait $!",
            "tail -f x & sleep 1; kill %1",
            "a & b & wait",
            "for x in 1 2; do a $x & done; wait",
            "a &\nwait\necho $?",
            "setsid --version; nohup --help",
            "man nohup; which setsid; command -v disown",
            "echo nohup",
            "grep -r 'npm run dev' .",
            "npm run dev --help",
            "$[5 & 3] 'a & b'; true",
            "case x in a) b ;& c) d;; esac",
            "",
        ] {
            assert_eq!(refused(command), None, "{command}");
        }
    }
}
