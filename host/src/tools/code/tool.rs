//! The tool itself.

use hostel_plugin_api::{Error, ErrorKind};

use super::input::Input;
use super::result::Outcome;
use super::running::{Ran, Script};
use super::told;
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::terminal::again;
use crate::tools::tool::{Effects, Failure, Tool};

/// Runs scripts.
pub(in crate::tools) struct ExecuteCode;

impl Tool for ExecuteCode {
    const NAME: &'static str = "execute_code";
    const TITLE: &'static str = "Run a script";
    const DESCRIPTION: &'static str = "Runs a script in the session's environment, where `terminal` runs its commands and in the same directory. The \
        script can call the other tools, so that many steps need one call, and only what it prints comes back.\n\
        Python (`from hostel_tools import terminal, read_file, write_file, search_files, patch`) and node \
        (`const { terminal } = require('hostel_tools')`) have functions with the tools' parameters, which return the result as a dict or object; a \
        call that fails raises nothing, look at its `error`. There are also `json_parse(text)`, `shell_quote(text)` and `retry(fn, max_attempts=3, delay=2)`. In \
        bash, `hostel_tools NAME JSON` prints the result as JSON. `read_file` returns lines as `N|text`.\n\
        Use it for three or more calls with logic between them: loops, filters, decisions. For one command use `terminal`.\n\
        Limits: 300 s, 50 calls (`terminal` in the foreground only), 50,000 bytes of standard output and 10,000 of standard error. Standard input is empty. Of the \
        variables only common ones are there (`PATH`, `HOME`, `LANG` …), none that looks like a secret. What the script changes in its own directory and variables is gone with it.";
    const EFFECTS: Effects =
        Effects { read_only: false, destructive: true, idempotent: false, open_world: true };
    type Input = Input;
    type Output = Outcome;

    fn run(session: &Session, input: Input, call: &Call) -> Outcome {
        let shown = Shown::new(session);
        let mut output = run(session, &input, call, &shown).unwrap_or_else(Outcome::failed);
        output.redact(&shown);
        output
    }

    fn failed(failure: Failure) -> Outcome {
        Outcome::failed(failure)
    }
}

fn run(session: &Session, input: &Input, call: &Call, shown: &Shown) -> Result<Outcome, Failure> {
    input.check()?;
    let mut warnings = Vec::new();
    let limit = input.limit(&mut warnings)?;
    let script = Script { language: input.language, text: &input.code, limit };
    let ran = again(session, call, || script.run(session, call, shown), |ran| ran.outcome.as_ref().err());
    let ran = ran.unwrap_or_else(|| {
        let message = "the call was cancelled before the script began";
        Ran::not(Error::new(ErrorKind::CANCELLED, message).not_started())
    });
    let mut output = told::outcome(script, ran, session);
    for warning in &warnings {
        output.warn(warning);
    }
    Ok(output)
}
