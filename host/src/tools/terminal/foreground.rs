//! A command that is waited for.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecOutcome, ExecRequest};

use super::meaning::meaning;
use super::result::Outcome;
use super::retry::{again, passes};
use super::taking::{Taken, Taking};
use crate::config::ConfigError;
use crate::environments::SharedIo;
use crate::exec::{Collector, exit_code_of};
use crate::registry::Flags;
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::tool::Failure;

/// What stands behind the output of a command that was interrupted.
const INTERRUPTED: &str = "[Command interrupted]";

/// What `sudo` says where nobody can be asked for the password.
const SUDO_ASKS: [&str; 3] =
    ["sudo: a terminal is required", "sudo: a password is required", "sudo: no tty present"];

/// A command, and how it is to be run.
pub(super) struct Command<'a> {
    pub(super) text: &'a str,
    pub(super) workdir: Option<&'a str>,
    /// None for the default.
    pub(super) limit: Option<Duration>,
}

/// What came of one attempt.
struct Attempt {
    outcome: Result<ExecOutcome, Error>,
    taken: Option<Taken>,
    took: Duration,
}

impl Command<'_> {
    /// Runs the command to its end.
    pub(super) fn run(&self, session: &Session, call: &Call, shown: &Shown) -> Outcome {
        let config = &session.world().config;
        let limit = match self.limit.map_or_else(|| config.seconds("terminal.timeout"), Ok) {
            Ok(limit) => limit,
            Err(error) => return misconfigured(&error),
        };
        let most = match config.whole("tool_output.max_bytes") {
            Ok(most) => usize::try_from(most).unwrap_or(usize::MAX),
            Err(error) => return misconfigured(&error),
        };
        let attempt = again(
            session,
            call,
            || self.attempt(session, call, shown, (limit, most)),
            |attempt| attempt.outcome.as_ref().err(),
        );
        attempt.map_or_else(given_up, |attempt| self.told(session, attempt, limit))
    }

    /// Makes the environment and runs the command, once.
    fn attempt(
        &self,
        session: &Session,
        call: &Call,
        shown: &Shown,
        (limit, most): (Duration, usize),
    ) -> Attempt {
        let nothing = |error: Error| Attempt { outcome: Err(error), taken: None, took: Duration::ZERO };
        let outputs = match session.prepare().and_then(|()| session.outputs()) {
            Ok(outputs) => outputs,
            Err(error) => return nothing(error),
        };
        let start = Instant::now();
        let collector = Collector::new(most, outputs);
        let taking = Arc::new(Taking::new(call, start.checked_add(limit), collector, shown.secrets()));
        let mut request = ExecRequest::new(self.text);
        request.cwd = self.workdir.map(str::to_owned);
        let shared: SharedIo = Arc::<Taking>::clone(&taking);
        let outcome = session.execute(request, &shared);
        let took = start.elapsed();
        Attempt { outcome, taken: taking.finish(), took }
    }

    /// Tells what came of it.
    fn told(&self, session: &Session, attempt: Attempt, limit: Duration) -> Outcome {
        let Attempt { outcome, taken, took } = attempt;
        let mut output = Outcome::default();
        if let Some(taken) = taken {
            printed(&mut output, taken, session);
        }
        output.duration_seconds = Some((took.as_secs_f64() * 1000.0).round() / 1000.0);
        match outcome {
            Ok(outcome) => self.ended(session, &mut output, outcome, limit),
            Err(error) => failed(&mut output, &error),
        }
        output
    }

    fn ended(&self, session: &Session, output: &mut Outcome, outcome: ExecOutcome, limit: Duration) {
        let said = |key: &str| outcome.extra.get(key).is_some_and(|value| value == true);
        output.sudo_auth_failed = said("sudo_auth_failed");
        output.sudo_cache_cleared = said("sudo_cache_cleared");
        output.exit_code = outcome.exit_code;
        output.ended = (outcome.ended != Ended::EXITED).then(|| outcome.ended.as_str());
        output.environment_recreated = remembered(session).recreated() || said("environment_recreated");
        // The directory of one call says nothing of where the session stands.
        if self.workdir.is_none() {
            output.cwd = remembered(session).moved(outcome.cwd);
        }
        output.warnings.extend(outcome.warnings);
        match outcome.ended {
            Ended::TIMEOUT => {
                output.note(&format!("[Command timed out after {}s]", limit.as_secs_f64()));
                output.hint = Some(
                    "everything that it had started was ended; give it a larger `timeout`, or run it with \
                     `background: true`"
                        .into(),
                );
            }
            Ended::INTERRUPTED => output.note(INTERRUPTED),
            _ => {
                output.exit_code_meaning = meaning(self.text, outcome.exit_code, outcome.signal);
                let asks = SUDO_ASKS.iter().any(|asks| output.output.contains(asks));
                if outcome.exit_code != 0 && asks {
                    output.hint = Some(
                        "`sudo` has nobody to ask: a person can set `SUDO_PASSWORD` in Hostel's `.env`, or allow \
                         the command without a password"
                            .into(),
                    );
                }
            }
        }
    }
}

/// Adds what the command has printed.
fn printed(output: &mut Outcome, taken: Taken, session: &Session) {
    let Taken { kept, characters } = taken;
    let whereabouts = kept.whereabouts();
    output.output = kept.text;
    output.warnings.extend(kept.warnings);
    if kept.omitted == 0 {
        return;
    }
    output.output_total_chars = Some(characters);
    let shown = kept.total - kept.omitted;
    let mut note = format!("{shown} of {} bytes are shown: the beginning and the end", kept.total);
    if let Some((path, whereabouts)) = kept.path.zip(whereabouts) {
        let path = path.to_string_lossy().into_owned();
        let where_it_is = if runs_here(session) {
            ""
        } else {
            " on Hostel's own machine, which commands and `read_file` do not see (by MCP it is the resource `hostel://output/` with the file's name)"
        };
        note = format!("{note}; {whereabouts}{where_it_is}");
        output.full_output_path = Some(path);
    }
    output.truncation_note = Some(note);
}

/// Whether commands see the files of Hostel's own machine.
fn runs_here(session: &Session) -> bool {
    session.entry().provider().is_ok_and(|provider| {
        let flags = Flags::read(&provider);
        !flags.is_remote && !flags.is_container
    })
}

/// Adds why there is no exit code.
fn failed(output: &mut Outcome, error: &Error) {
    if error.kind() == ErrorKind::CANCELLED {
        output.exit_code = ExecOutcome::interrupted().exit_code;
        output.ended = Some(Ended::INTERRUPTED.as_str());
        output.note(INTERRUPTED);
    } else {
        output.exit_code = exit_code_of(error).unwrap_or(super::result::NONE);
    }
    output.status = Some(if passes(error) { "degraded" } else { "error" });
    output.error = Some(error.message().to_owned());
    output.hint = error.hint().map(str::to_owned);
    if error.may_have_started() {
        let unknown = "what became of the command is not known; look before you run it again";
        output.hint =
            Some(error.hint().map_or_else(|| unknown.to_owned(), |hint| format!("{unknown}; {hint}")));
    }
}

fn given_up() -> Outcome {
    let mut output = Outcome::default();
    failed(
        &mut output,
        &Error::new(ErrorKind::CANCELLED, "the call was cancelled before the command began").not_started(),
    );
    output
}

fn misconfigured(error: &ConfigError) -> Outcome {
    let failure = Failure::new(error.to_string());
    Outcome::failed("error", failure.with_hint("`hostel config check` shows what does not fit"))
}

fn remembered(session: &Session) -> std::sync::MutexGuard<'_, super::remembered::Remembered> {
    session.memory.terminal.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_whether_the_command_may_have_run() {
        let told = |error: Error| {
            let mut output = Outcome { output: "half".into(), ..Outcome::default() };
            failed(&mut output, &error);
            output
        };
        let lost = told(Error::new(ErrorKind::LOST, "gone").with_hint("see"));
        assert_eq!((lost.exit_code, lost.status, lost.error.as_deref()), (-1, Some("error"), Some("gone")));
        assert!(lost.output == "half" && lost.hint.unwrap().ends_with("run it again; see"));
        let away = told(Error::new(ErrorKind::UNAVAILABLE, "away").with_hint("see").not_started());
        assert_eq!((away.status, away.hint.as_deref()), (Some("degraded"), Some("see")));
        let over = told(Error::new(ErrorKind::CANCELLED, "over").not_started());
        assert_eq!((over.exit_code, over.output.as_str()), (130, "half\n[Command interrupted]"));
    }
}
