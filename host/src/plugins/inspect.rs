//! The first contact with a plugin's library, in a process of its own.
//!
//! Foreign code is likeliest to crash when it is first run, so that does not happen in the process that edits the user's
//! configuration: the same program runs once more, opens the library, and prints what it found.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::catalog::Catalog;
use super::error::{LoadError, Step};
use super::load::{Discovered, Pin};
use super::record::ProviderRecord;
use crate::home::Home;
use crate::signals::signal_name;

/// The hidden command that opens a library and prints what it found.
pub const INSPECT_COMMAND: &str = "plugin-inspect";

/// How long the library may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Asks the library of `found` about itself, in a process of its own.
pub(super) fn inspect(home: &Home, found: &Discovered, pin: &Pin) -> Result<Vec<ProviderRecord>, LoadError> {
    let name = &found.manifest.name;
    let failed = |reason: String| {
        LoadError::new(name, Step::Register, reason, "this is a fault of the plugin: tell its author")
    };
    let program =
        std::env::current_exe().map_err(|error| failed(format!("failed to find this program: {error}")))?;
    let mut command = Command::new(program);
    command.args([INSPECT_COMMAND, name, &pin.sha256]).env(crate::home::HOME_VARIABLE, home.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| failed(format!("failed to start a process to look at it: {error}")))?;
    let (sender, receiver) = mpsc::channel();
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let reader = thread::spawn(move || {
        let mut text = String::new();
        // What cannot be read is noticed when it does not parse.
        let _ = stdout.as_mut().map(|pipe| pipe.take(1 << 20).read_to_string(&mut text));
        // The waiter may have given up.
        let _ = sender.send(());
        text
    });
    let errors = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.as_mut().map(|pipe| pipe.take(1 << 20).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let in_time = receiver.recv_timeout(LIMIT).is_ok();
    if !in_time && let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may just have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status =
        child.wait().map_err(|error| failed(format!("lost the process that looked at it: {error}")))?;
    if !in_time {
        return Err(failed(format!("it did not answer within {} s", LIMIT.as_secs())));
    }
    let text = reader.join().unwrap_or_default();
    let answer: Option<Answer> = serde_json::from_str(&text).ok();
    match answer {
        Some(Answer::Providers(providers)) if status.success() => Ok(providers),
        Some(Answer::Failed { step, reason, hint }) => {
            Err(LoadError { plugin: name.clone(), step, reason, hint })
        }
        _ => {
            let mut reason = crash(status);
            let said = errors.join().unwrap_or_default();
            if let Some(line) = said.lines().rev().find(|line| !line.trim().is_empty()) {
                // Writing to a string cannot fail.
                let _ =
                    write!(reason, "; its last words: {}", line.trim().chars().take(200).collect::<String>());
            }
            Err(failed(reason))
        }
    }
}

fn crash(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_name(signal);
            format!("its library killed the process that looked at it first ({name})")
        }
        (None, Some(code)) => {
            format!("its library ended the process that looked at it first (exit code {code})")
        }
        (None, None) => "its library ended the process that looked at it first".to_owned(),
    }
}

/// What the inspecting process prints.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Providers(Vec<ProviderRecord>),
    Failed { step: Step, reason: String, hint: String },
}

/// Loads the plugin `name`, whose library must have this checksum, and returns what to print.
#[must_use]
pub fn inspect_here(home: &Home, catalog: &Catalog, name: &str, sha256: &str) -> String {
    let load = || -> Result<Vec<ProviderRecord>, LoadError> {
        let gone = || LoadError::new(name, Step::File, "its folder is gone", "try again");
        let found = catalog.get(name).and_then(|candidate| candidate.found.as_ref()).ok_or_else(gone)?;
        let verified = found.verify(None)?;
        if verified.pin().sha256 != sha256 {
            let reason = "its library changed while it was being enabled";
            return Err(LoadError::new(name, Step::Checksum, reason, "try again"));
        }
        let registered = verified.open()?.register(&home.plugin_data(name))?;
        let records = registered.iter().map(ProviderRecord::of).collect::<Result<_, _>>();
        records.map_err(|reason| {
            let reason = format!("it cannot say which variables are its secrets: {reason}");
            LoadError::new(name, Step::Register, reason, "this is a fault of the plugin: tell its author")
        })
    };
    let answer = match load() {
        Ok(providers) => Answer::Providers(providers),
        Err(LoadError { step, reason, hint, .. }) => Answer::Failed { step, reason, hint },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}
