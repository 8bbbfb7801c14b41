//! Where the password for `sudo` comes from.
//!
//! An agent has nobody to type it, so it can be configured. A person can be asked, but not for each command: what they
//! answered is kept for the task until `sudo` refuses it or the process ends, and nowhere but in memory. Nobody is asked where
//! `sudo` needs no password, which only `sudo` itself can tell.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostel_plugin_api::{Error, ErrorKind, ExecRequest};

use super::call::Place;
use super::secret::Secret;
use super::watch::SharedIo;
use crate::dotenv;
use crate::environments::Aside;
use crate::home::Home;

/// The variable that holds the password, in Hostel's environment or in `.env`.
pub(super) const VARIABLE: &str = "SUDO_PASSWORD";

/// How long a person is waited for.
const PATIENCE: Duration = Duration::from_secs(45);

/// How long `sudo` may take to say whether it needs a password.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// The exit code of a shell that has not found a program.
const NOT_FOUND: i32 = 127;

/// A person who can be asked.
pub trait Ask: Send + Sync {
    /// Asks for one line, which is not shown while it is typed. None if nobody has answered within `limit`.
    ///
    /// # Errors
    ///
    /// Fails with [`io::ErrorKind::Interrupted`] if the person wants the command not to run at all.
    fn ask(&self, question: &str, limit: Duration) -> io::Result<Option<String>>;
}

/// A password, and whether it was configured: what a person typed can be forgotten.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) password: Arc<Secret>,
    pub(super) configured: bool,
}

/// What was answered so far, and who can be asked.
#[derive(Default)]
pub(super) struct Answers {
    ask: Option<Box<dyn Ask>>,
    /// By backend and task.
    known: Mutex<HashMap<(String, String), Arc<Secret>>>,
    /// Held while a person is asked: two questions at once on one terminal cannot be answered.
    asking: Mutex<()>,
}

impl Answers {
    pub(super) fn of(ask: Box<dyn Ask>) -> Self {
        Self { ask: Some(ask), ..Self::default() }
    }

    /// Finds the password for a call. None where there is none, or none is needed.
    pub(super) fn find(
        &self,
        place: &Place<'_>,
        request: &ExecRequest,
        io: &SharedIo,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Found>, Error> {
        if let Some(secret) = configured(own(), place.home, warnings) {
            return Ok(Some(Found { password: Arc::new(secret), configured: true }));
        }
        let Some(ask) = &self.ask else { return Ok(None) };
        if let Some(found) = self.known(place) {
            return Ok(Some(found));
        }
        if needs_none(place, request, io) {
            return Ok(None);
        }
        let _asking = lock(&self.asking);
        // Somebody else may have asked meanwhile.
        if let Some(found) = self.known(place) {
            return Ok(Some(found));
        }
        let question = format!(
            "password for `sudo` in task `{}` on `{}` (empty to go on without): ",
            place.task, place.backend
        );
        match ask.ask(&question, PATIENCE) {
            Ok(Some(answer)) if !answer.is_empty() => {
                let password = Arc::new(Secret::first_line(answer));
                lock(&self.known).insert(key(place.backend, place.task), Arc::clone(&password));
                Ok(Some(Found { password, configured: false }))
            }
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                let message = "the question for the password of `sudo` was interrupted";
                Err(Error::new(ErrorKind::CANCELLED, message).not_started())
            }
            Err(error) => {
                warnings.push(format!("the password for `sudo` could not be asked for: {error}"));
                Ok(None)
            }
        }
    }

    /// Forgets a password that was refused. Returns whether it was still known.
    pub(super) fn forget(&self, backend: &str, task: &str, refused: &Arc<Secret>) -> bool {
        let mut known = lock(&self.known);
        let key = key(backend, task);
        // A person may have typed another one by now.
        let same = known.get(&key).is_some_and(|present| Arc::ptr_eq(present, refused));
        same && known.remove(&key).is_some()
    }

    fn known(&self, place: &Place<'_>) -> Option<Found> {
        let password = lock(&self.known).get(&key(place.backend, place.task)).cloned()?;
        Some(Found { password, configured: false })
    }
}

/// The tests have the variable of whoever runs them.
fn own() -> Option<OsString> {
    if cfg!(test) { None } else { std::env::var_os(VARIABLE) }
}

/// Returns the password that is configured; it may be empty. `own` is what stands in Hostel's environment.
fn configured(own: Option<OsString>, home: &Home, warnings: &mut Vec<String>) -> Option<Secret> {
    if let Some(own) = own {
        return Some(Secret::first_line(own.into_vec()));
    }
    match dotenv::load(home) {
        Ok(variables) => variables.get(VARIABLE).map(Secret::first_line),
        Err(error) => {
            warnings.push(format!("`{VARIABLE}` was not looked up in `.env`: {error}"));
            None
        }
    }
}

/// Asks `sudo` whether it would ask. It needs no password either where there is no `sudo`.
fn needs_none(place: &Place<'_>, request: &ExecRequest, io: &SharedIo) -> bool {
    let mut probe = ExecRequest::new("sudo -n true");
    probe.env.clone_from(&request.env);
    probe.call_id = format!("{}_sudo", request.call_id);
    // So that it leaves the session as it is.
    probe.run_in_background();
    // They may take longer than this may.
    probe.skip_login();
    let probe_io = Aside::within(PROBE_LIMIT, Arc::clone(io));
    matches!((place.run)(probe, &probe_io), Some(0 | NOT_FOUND))
}

fn key(backend: &str, task: &str) -> (String, String) {
    (backend.to_owned(), task.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_environment_comes_before_the_file_and_an_empty_password_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        let find = |own: Option<&str>| {
            let mut warnings = Vec::new();
            let secret = configured(own.map(OsString::from), &home, &mut warnings);
            (secret.map(|secret| String::from_utf8(secret.bytes().to_vec()).unwrap()), warnings.join("\n"))
        };
        assert_eq!(find(None), (None, String::new()));
        assert_eq!(find(Some("")), (Some(String::new()), String::new()));
        let file = dir.path().join(".env");
        fs::write(&file, "SUDO_PASSWORD='from file'\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(None), (Some("from file".into()), String::new()));
        assert_eq!(find(Some("own")), (Some("own".into()), String::new()));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let (none, warning) = find(None);
        assert!(none.is_none() && warning.contains(".env") && !warning.contains("from file"), "{warning}");
    }
}
