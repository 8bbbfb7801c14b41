//! What an agent is told of a script that was run, or could not be.

use hostel_plugin_api::{Ended, Error, ErrorKind};

use super::launch::Language;
use super::limits::START;
use super::result::{NONE, Outcome};
use super::running::{Ran, Script};
use crate::tools::session::Session;
use crate::tools::terminal::Taken;

/// What a shell says of a program that is not there, or cannot be run.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// The most characters of a line of the script's own that are part of an error.
const LONGEST: usize = 300;

/// Returns what the agent is told.
pub(super) fn outcome(script: Script<'_>, ran: Ran, session: &Session) -> Outcome {
    let mut output = Outcome {
        tool_calls_made: ran.calls,
        duration_seconds: (ran.took.as_secs_f64() * 1000.0).round() / 1000.0,
        ..Outcome::default()
    };
    if let Some(taken) = ran.output {
        printed(&mut output, taken);
    }
    if let Some(Taken { kept, .. }) = ran.errors {
        let whole = kept.whereabouts().map(|whereabouts| format!("; {whereabouts}"));
        output.stderr = kept.text;
        if kept.omitted > 0 {
            output.warn(&format!(
                "{} of {} bytes of the standard error are left out{}",
                kept.omitted,
                kept.total,
                whole.unwrap_or_default()
            ));
        }
        for warning in &kept.warnings {
            output.warn(warning);
        }
    }
    match ran.outcome {
        Err(error) => not_run(&mut output, &error, ran.is_asked, session),
        Ok(outcome) => {
            for warning in &outcome.warnings {
                output.warn(warning);
            }
            match outcome.ended {
                _ if ran.is_late => late(&mut output, session),
                Ended::TIMEOUT => {
                    let limit = script.limit.as_secs_f64();
                    let error =
                        format!("the script has taken {limit} s, and was ended with all that it had started");
                    end(&mut output, "timeout", outcome.exit_code, error);
                }
                Ended::INTERRUPTED => {
                    end(&mut output, "interrupted", outcome.exit_code, "the call was cancelled".to_owned());
                }
                _ => match (ran.told.exit_code, ran.told.failed) {
                    (Some(0), _) => output.status = "success",
                    (Some(code), _) => unsuccessful(&mut output, code),
                    (None, Some(why)) => {
                        end(&mut output, "error", NONE, format!("the script could not be begun: {why}"));
                    }
                    (None, None) if ran.told.begun => {
                        let error = "what started the script has ended before it, so that nobody knows what became of it";
                        end(&mut output, "error", NONE, error.to_owned());
                        output.hint = Some("a script must not end its parent process".to_owned());
                    }
                    (None, None) => {
                        never_begun(&mut output, script.language, outcome.exit_code, &ran.told.said, session);
                    }
                },
            }
        }
    }
    output
}

fn end(output: &mut Outcome, status: &'static str, exit_code: i32, error: String) {
    (output.status, output.exit_code, output.error) = (status, exit_code, Some(error));
}

/// Adds what the script has printed.
fn printed(output: &mut Outcome, Taken { kept, .. }: Taken) {
    output.output = kept.text;
    output.stdout_truncated = kept.omitted > 0;
    output.stdout_bytes_total = kept.total;
    output.stdout_bytes_omitted = kept.omitted;
    output.stdout_bytes_captured = kept.total - kept.omitted;
    for warning in &kept.warnings {
        output.warn(warning);
    }
    if kept.omitted > 0 {
        output.full_output_path = kept.path.map(|path| path.to_string_lossy().into_owned());
        output.warn("`output` has the beginning and the end of what was printed: let the script print less, or filter");
    }
}

fn unsuccessful(output: &mut Outcome, code: i32) {
    let error = match code {
        129..=192 => format!("the script was ended by signal {}", code - 128),
        _ => format!("the script ended with exit code {code}"),
    };
    let error = last_words(&output.stderr).map_or_else(|| error.clone(), |last| format!("{error}: {last}"));
    end(output, "error", code, error);
}

/// What stands before the reason in what node says of a rejection with something that is no error.
const REJECTED: &str = "The promise rejected with the reason ";

/// What node says last, of itself.
const OF_NODE: [&str; 2] = ["Node.js v", "(Use `node --trace-uncaught"];

/// Returns the line of the standard error that says best what was wrong: an exception's, or else the last.
fn last_words(stderr: &str) -> Option<String> {
    let names_error = |line: &&str| {
        let name = line.split([':', ' ']).next().unwrap_or_default();
        ((name.ends_with("Error") || name.ends_with("Exception")) && line.contains(':'))
            || line.contains("syntax error")
    };
    let is_frame = |line: &str| line.trim_start().starts_with("at ");
    let lines: Vec<&str> = stderr
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty() && !OF_NODE.iter().any(|said| line.starts_with(said)))
        .collect();
    let rejected = || lines.iter().find_map(|line| Some(line.split_once(REJECTED)?.1));
    // An error may have any name; where it was thrown stands below it.
    let above_frames = || {
        let above = lines.windows(2).find(|pair| is_frame(pair[0]) && !is_frame(pair[1]));
        above.map(|pair| pair[1])
    };
    let found = lines.iter().copied().find(names_error);
    let line = if let Some(reason) = rejected() {
        let reason = reason.trim_end_matches([' ', '{', ']']);
        format!("a promise was rejected with the reason {}", reason.trim_end_matches('.'))
    } else {
        found.or_else(above_frames).or_else(|| lines.first().copied())?.to_owned()
    };
    Some(line.trim().chars().take(LONGEST).collect())
}

fn late(output: &mut Outcome, session: &Session) {
    let error = format!(
        "the script was not begun within {} s on backend `{}`, which may not let a command read while it runs",
        START.as_secs(),
        session.entry().name()
    );
    end(output, "error", NONE, error);
    output.hint = Some(INSTEAD.to_owned());
}

/// What an agent can do without this tool.
const INSTEAD: &str = "put the code into a file by `write_file`, and run it by `terminal`";

/// The command has ended and nothing was heard of a script.
fn never_begun(output: &mut Outcome, language: Language, code: i32, said: &str, session: &Session) {
    let (backend, program) = (session.entry().name(), language.program());
    let last = said.lines().last().unwrap_or_default();
    let last: String = last.chars().take(LONGEST).collect();
    let said = if last.is_empty() { String::new() } else { format!(" (it says: {last})") };
    if NO_PROGRAM.contains(&code) {
        let error = format!(
            "the script was not run: backend `{backend}` has no `{program}` that can be started, which `{}` needs{said}",
            language.name()
        );
        end(output, "error", NONE, error);
        output.hint = Some(match language {
            Language::Bash => INSTEAD.to_owned(),
            _ => format!(
                "install `{program}` there by `terminal`, or write the script with `language`: \"bash\""
            ),
        });
    } else {
        let error = format!(
            "the script was not run: `{program}` on backend `{backend}` has ended with exit code {code}{said}"
        );
        end(output, "error", NONE, error);
    }
}

/// There is no outcome at all.
fn not_run(output: &mut Outcome, error: &Error, is_asked: bool, session: &Session) {
    let message = error.message();
    output.hint = error.hint().map(str::to_owned);
    match error.kind() {
        ErrorKind::CANCELLED => end(output, "interrupted", 130, message.to_owned()),
        // All that is asked for besides a plain command is that it can read.
        ErrorKind::UNSUPPORTED if is_asked => {
            let backend = session.entry().name();
            let error = format!(
                "backend `{backend}` cannot run scripts, since no command reads there while it runs: {message}"
            );
            end(output, "error", NONE, error);
            output.hint = Some(INSTEAD.to_owned());
        }
        _ => end(output, "error", NONE, message.to_owned()),
    }
    if error.may_have_started() {
        let unknown = "what became of the script is not known; look before you run it again";
        output.hint =
            Some(error.hint().map_or_else(|| unknown.to_owned(), |hint| format!("{unknown}; {hint}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_says_more_than_what_stands_behind_it() {
        for (stderr, words) in [
            ("Traceback:\n  File \"script.py\", line 1\nValueError: no\n", Some("ValueError: no")),
            ("x.js:1\nTypeError: no\n    at Error: x\n\nNode.js v20.0.0\n", Some("TypeError: no")),
            (
                "s: line 1: syntax error near `then'\ns: line 1: `if then'\n",
                Some("s: line 1: syntax error near `then'"),
            ),
            ("one\n  two \n\n", Some("two")),
            (
                "s.js:1\nthrow 5\n^\n5\n(Use `node --trace-uncaught ...` to show where)\n\nNode.js v20.0.0\n",
                Some("5"),
            ),
            (
                "s.js:1\nthrow x\n^\n\nOdd: no\n    at f (s.js:1:1)\n    at g {\n  a: 1\n}\n\nNode.js v20.0.0\n",
                Some("Odd: no"),
            ),
            (
                "node:internal\n\n[UnhandledPromiseRejection: This error originated. The promise rejected with the reason \"5\".] {\n  code: 'X'\n}\n\nNode.js v20.0.0\n",
                Some("a promise was rejected with the reason \"5\""),
            ),
            (" \n", None),
        ] {
            assert_eq!(last_words(stderr).as_deref(), words, "{stderr}");
        }
    }
}
