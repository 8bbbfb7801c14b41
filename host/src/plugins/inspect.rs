//! The first contact with a plugin's library, in a process of its own.
//!
//! Foreign code is likeliest to crash when it is first run, so that does not happen in the process that edits the user's
//! configuration: the same program runs once more, opens the library, and prints what it found.

use std::fmt::Write as _;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::error::{LoadError, Step};
use super::load::{Discovered, Pin};
use super::manifest::{Manifest, ManifestError};
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
        LoadError::new(name, Step::Register, reason, "this is a bug in the plugin; report it to its author")
    };
    let run = || -> io::Result<(Option<ExitStatus>, String, String)> {
        // Files and not pipes: a pipe could be held open by what the library leaves behind.
        let mut answer = tempfile::NamedTempFile::new()?;
        let mut said = tempfile::tempfile()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(INSPECT_COMMAND).arg(&found.folder).arg(&pin.sha256).arg(answer.path());
        command.env(crate::home::HOME_VARIABLE, home.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?);
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let ended = ends_in_time(&child)?;
        // Whatever the library has left behind goes with it. The group may be gone already.
        let _ = kill_process_group(group, Signal::KILL);
        let status = child.wait()?;
        let (mut text, mut words) = (String::new(), Vec::new());
        answer.read_to_string(&mut text)?;
        said.rewind()?;
        said.take(1 << 20).read_to_end(&mut words)?;
        Ok((ended.then_some(status), text, String::from_utf8_lossy(&words).into_owned()))
    };
    let (status, text, said) = run().map_err(|error| {
        let reason = format!("failed to start a process to inspect it: {error}");
        LoadError::new(
            name,
            Step::Register,
            reason,
            "check `TMPDIR`, the free space, and the limits of this user",
        )
    })?;
    let Some(status) = status else {
        return Err(failed(format!("it did not answer within {} s", LIMIT.as_secs())));
    };
    let answer: Option<Answer> = serde_json::from_str(&text).ok();
    match answer {
        Some(Answer::Providers(providers)) if status.success() => Ok(providers),
        Some(Answer::Failed { step, reason, hint }) => {
            Err(LoadError { plugin: name.clone(), step, reason, hint })
        }
        _ => {
            let mut reason = crash(status);
            if let Some(line) = said.lines().rev().find(|line| !line.trim().is_empty()) {
                // Writing to a string cannot fail.
                let _ =
                    write!(reason, "; its last words: {}", line.trim().chars().take(200).collect::<String>());
            }
            Err(failed(reason))
        }
    }
}

/// Waits until the process has ended, or its time is up. Returns whether it has ended.
fn ends_in_time(child: &Child) -> io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let until = Instant::now() + LIMIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn crash(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_name(signal);
            format!("its library crashed while it was being inspected ({name})")
        }
        (None, Some(code)) => {
            format!("its library exited while it was being inspected (exit code {code})")
        }
        (None, None) => "its library exited while it was being inspected".to_owned(),
    }
}

/// What the inspecting process prints.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Providers(Vec<ProviderRecord>),
    Failed { step: Step, reason: String, hint: String },
}

/// Loads the plugin in `folder`, whose library must have this checksum, and returns what to print. `settings` gives the user's
/// for the plugin of a name.
#[must_use]
pub fn inspect_here(
    home: &Home,
    folder: &Path,
    sha256: &str,
    settings: impl Fn(&str) -> serde_json::Value,
) -> String {
    let load = || -> Result<Vec<ProviderRecord>, LoadError> {
        let gone = |error: ManifestError| {
            LoadError::new(&folder.to_string_lossy(), Step::File, error.to_string(), "try again")
        };
        let (manifest, _) = Manifest::read(folder).map_err(gone)?;
        let found = Discovered { folder: folder.to_owned(), manifest };
        let name = &found.manifest.name;
        let verified = found.verify(None)?;
        if verified.pin().sha256 != sha256 {
            let reason = "its library changed while it was being enabled";
            return Err(LoadError::new(name, Step::Checksum, reason, "try again"));
        }
        let registered = verified.open()?.register(found.surroundings(home, settings(name)))?;
        let records = registered.iter().map(ProviderRecord::of).collect::<Result<_, _>>();
        records.map_err(|reason| {
            let reason = format!("it cannot say which variables are its secrets: {reason}");
            LoadError::new(
                name,
                Step::Register,
                reason,
                "this is a bug in the plugin; report it to its author",
            )
        })
    };
    let answer = match load() {
        Ok(providers) => Answer::Providers(providers),
        Err(LoadError { step, reason, hint, .. }) => Answer::Failed { step, reason, hint },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}
