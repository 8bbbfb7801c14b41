//! The tool itself.

use std::time::Duration;

use super::background::Background;
use super::foreground::Command;
use super::input::Input;
use super::result::Outcome;
use super::{guidance, workdir};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::told::news;
use crate::tools::tool::{Effects, Failure, Tool};

/// The variable that says how many seconds a command in the foreground may be given.
const MAXIMUM: &str = "TERMINAL_MAX_FOREGROUND_TIMEOUT";

/// How many that are where the variable says nothing.
const USUAL_MAXIMUM: Duration = Duration::from_secs(600);

/// Runs shell commands.
pub(in crate::tools) struct Terminal;

impl Tool for Terminal {
    const NAME: &'static str = "terminal";
    const TITLE: &'static str = "Terminal";
    const DESCRIPTION: &'static str = "Runs a shell command in the session's environment, and returns what it printed (both \
        streams, in order) and its exit code. Directory, exported variables, functions and aliases last from one call to the \
        next. Standard input is empty, and there is no terminal.\n\
        Use it for builds, tests, git, packages and programs. To read, search and change files use `read_file`, `search_files`, \
        `patch` and `write_file` instead of `cat`, `grep`, `sed` and here-documents.\n\
        A command is ended when its `timeout` is over (exit code 124). Whatever runs until it is stopped, or longer than ten \
        minutes, needs `background: true`: that returns a `session_id` for the tool `process`, and with `notify` you are told of \
        its end, or of lines of its output, in the `notices` of a later result. `&`, `nohup`, `setsid` and `disown` are refused.\n\
        Of an output longer than 50,000 bytes the middle is left out, and `full_output_path` has all of it. A command that fails \
        is no error of the tool: read `exit_code`.";
    const EFFECTS: Effects =
        Effects { read_only: false, destructive: true, idempotent: false, open_world: true };
    type Input = Input;
    type Output = Outcome;

    fn run(session: &Session, input: Input, call: &Call) -> Outcome {
        let shown = Shown::new(session);
        let mut output = run(session, &input, call, &shown);
        output.redact(&shown);
        // Whoever gives up hears no result.
        if !call.is_cancelled() && !call.is_scripts() {
            output.notices = news(session, &shown);
        }
        output
    }

    fn failed(failure: Failure) -> Outcome {
        Outcome::failed("error", failure)
    }
}

fn run(session: &Session, input: &Input, call: &Call, shown: &Shown) -> Outcome {
    let limit = match check(input) {
        Ok(limit) => limit,
        Err((status, failure)) => return Outcome::failed(status, failure),
    };
    let command = &input.command;
    let maximum = maximum(std::env::var(MAXIMUM).ok().as_deref());
    // A script starts nothing in the background.
    let limit = limit.map(|limit| if call.is_scripts() { limit.min(maximum) } else { limit });
    let promoted = limit.filter(|limit| !input.background && *limit > maximum);
    let in_background = input.background || promoted.is_some();
    let mut warnings = Vec::new();
    input.without_effect(in_background, &mut warnings);
    let (notify, watch) = input.told(&mut warnings);
    warnings.extend(in_background.then(|| guidance::remark(command)).flatten());
    let mut output = if in_background {
        Background {
            command,
            workdir: input.workdir(),
            pty: input.pty,
            stdin: input.stdin,
            notify: notify || promoted.is_some(),
            watch,
            limit: promoted,
        }
        .start(session, call)
    } else {
        match guidance::refusal(command) {
            Some(failure) => Outcome::failed("error", failure),
            None => Command { text: command, workdir: input.workdir(), limit }.run(session, call, shown),
        }
    };
    if let (Some(limit), None) = (promoted, &output.error) {
        let (limit, maximum) = (limit.as_secs_f64(), maximum.as_secs_f64());
        output.status = Some("yielded_to_background");
        output.hint = Some(format!(
            "{limit} s are more than the {maximum} s that a command may take in the foreground, so it runs in the background, \
             at most {limit} s; `notices` will tell its end, and `process` has its output"
        ));
    }
    warnings.append(&mut output.warnings);
    output.warnings = warnings;
    output
}

/// Looks over what does not depend on the session, and returns the command's time if one was given.
fn check(input: &Input) -> Result<Option<Duration>, (&'static str, Failure)> {
    let wrong = |message: &str, hint: &str| Err(("error", Failure::new(message).with_hint(hint)));
    if input.command.trim().is_empty() {
        return wrong("`command` is empty", "give shell text to run");
    }
    if input.elevated {
        return wrong("`elevated` means nothing on this system", "put `sudo` in front of what needs it");
    }
    if input.pty && !input.background {
        return wrong("`pty` needs `background: true`", "call it again with both, and use `process` to type");
    }
    if let Some(failure) = input.workdir().and_then(workdir::refusal) {
        return Err(("blocked", failure));
    }
    input.limit().map_err(|failure| ("error", failure))
}

/// Reads how long a command in the foreground may be given. What cannot be read says nothing.
fn maximum(text: Option<&str>) -> Duration {
    let seconds = text.and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| *seconds > 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(USUAL_MAXIMUM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(input: &Input) -> (&'static str, String) {
        let (status, failure) = check(input).unwrap_err();
        (status, failure.message)
    }

    #[test]
    fn what_cannot_be_meant_is_refused_before_anything_runs() {
        let input = || Input { command: "x".into(), ..Input::default() };
        assert!(check(&input()).is_ok());
        for (input, status, named) in [
            (Input { command: " \n".into(), ..input() }, "error", "`command`"),
            (Input { elevated: true, ..input() }, "error", "`elevated`"),
            (Input { pty: true, ..input() }, "error", "`pty`"),
            (Input { workdir: Some("a;b".into()), ..input() }, "blocked", "`;`"),
            (Input { timeout: Some(-1.0), ..input() }, "error", "`timeout`"),
        ] {
            let (got, message) = refused(&input);
            assert!(got == status && message.contains(named), "{got}: {message}");
        }
    }

    #[test]
    fn the_maximum_is_read_or_usual() {
        assert_eq!(maximum(Some("5")), Duration::from_secs(5));
        for text in [None, Some(""), Some("soon"), Some("-1"), Some("0"), Some("inf")] {
            assert_eq!(maximum(text), USUAL_MAXIMUM, "{text:?}");
        }
    }
}
