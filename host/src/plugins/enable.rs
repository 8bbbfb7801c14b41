//! Enabling a plugin: its files are checked and pinned, and its library is asked about itself in a process of its own.
//!
//! The first contact with foreign code is the most likely to crash, so it does not happen in the process that edits the
//! user's configuration: the same program runs once more, opens the library, and prints what it found.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hostel_plugin_api::shell::StripList;
use rustix::process::{Pid, Signal, kill_process_group};

use super::catalog::{Candidate, Catalog};
use super::error::{LoadError, Step};
use super::load::{Discovered, Pin};
use super::record::{ProviderRecord, Record};
use crate::config::{ConfigFile, FileError, Key, KeyError};
use crate::home::Home;

/// The hidden command that opens a library and prints what it found.
pub const INSPECT_COMMAND: &str = "plugin-inspect";

/// How long the library may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Why a plugin was not enabled or disabled.
#[derive(Debug, thiserror::Error)]
pub enum EnableError {
    /// No folder has it.
    #[error("there is no plugin `{0}`")]
    Unknown(String),
    /// Its folder cannot be used.
    #[error("plugin `{0}` cannot be enabled: {1}")]
    Problem(String, String),
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What was found could not be written down.
    #[error("failed to write `{0}`: {1}; nothing was changed")]
    Record(std::path::PathBuf, std::io::Error),
    /// The configuration could not be changed.
    #[error(transparent)]
    Config(#[from] FileError),
    /// Never happens: the keys are constants.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Lets `name` be loaded: pins its library, and puts it on the list.
///
/// # Errors
///
/// Fails with nothing changed if the plugin cannot be loaded.
pub fn enable<'a>(home: &Home, catalog: &'a Catalog, name: &str) -> Result<&'a Candidate, EnableError> {
    let candidate = catalog.get(name).ok_or_else(|| EnableError::Unknown(name.to_owned()))?;
    if let Some(problem) = &candidate.problem {
        return Err(EnableError::Problem(name.to_owned(), problem.reason().to_owned()));
    }
    let Some(found) = &candidate.found else { return Err(EnableError::Unknown(name.to_owned())) };
    let verified = found.verify(None)?;
    let providers = inspect(home, found, verified.pin())?;
    let record =
        Record { pin: verified.pin().clone(), api_version: verified.api_version().to_owned(), providers };
    let before = Record::load(home, name);
    record.save(home, name).map_err(|(path, error)| EnableError::Record(path, error))?;
    let listed = || -> Result<(), EnableError> {
        ConfigFile::change_list(home, &Key::parse("plugins.enabled")?, |list| {
            if !list.iter().any(|listed| listed == name) {
                list.push(name.to_owned());
            }
        })?;
        ConfigFile::change_list(home, &Key::parse("plugins.disabled")?, |list| {
            list.retain(|listed| listed != name);
        })?;
        Ok(())
    };
    match listed() {
        Ok(()) => Ok(candidate),
        Err(error) => {
            match before {
                Some(before) => drop(before.save(home, name)),
                None => Record::remove(home, name),
            }
            Err(error)
        }
    }
}

/// Takes `name` off the list. Returns whether it was on it.
///
/// # Errors
///
/// Fails with nothing changed if there is neither a folder nor a listing of that name, or the configuration cannot be written.
pub fn disable(home: &Home, catalog: &Catalog, name: &str) -> Result<bool, EnableError> {
    if catalog.get(name).is_none() && !catalog.missing.iter().any(|missing| missing == name) {
        return Err(EnableError::Unknown(name.to_owned()));
    }
    let changed = ConfigFile::change_list(home, &Key::parse("plugins.enabled")?, |list| {
        list.retain(|listed| listed != name);
    })?;
    Record::remove(home, name);
    Ok(changed)
}

/// Asks the library of `found` about itself, in a process of its own.
fn inspect(home: &Home, found: &Discovered, pin: &Pin) -> Result<Vec<ProviderRecord>, LoadError> {
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
            let name = crate::exec::signal_name(signal);
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
            return Err(LoadError::new(
                name,
                Step::Checksum,
                "its library changed while it was being enabled",
                "try again",
            ));
        }
        let registered = verified.open()?.register(&home.plugin_data(name))?;
        if let Some(bad) = registered
            .iter()
            .filter_map(|one| one.strip_env.as_ref().ok())
            .flatten()
            .find(|key| !StripList::is_valid(key))
        {
            tracing::warn!(
                "`{}` cannot be the name of a variable to strip; it is passed over",
                bad.escape_debug()
            );
        }
        Ok(registered.iter().map(ProviderRecord::of).collect())
    };
    let answer = match load() {
        Ok(providers) => Answer::Providers(providers),
        Err(LoadError { step, reason, hint, .. }) => Answer::Failed { step, reason, hint },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}
