//! Destroys the environment that a task has left, whichever process of the host made it.
//!
//! The process that made it is mostly gone, and with it the object that could destroy the sandbox. The provider still finds it
//! by the task id: so the environment is made once more, as one that is not to last, and is let go at once. Background
//! processes in it are ended before, and a call in flight is no reason to wait but one to refuse: it may be anybody's.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use hostel_plugin_api::shell::end_calls;
use hostel_plugin_api::{Error, ErrorKind};
use serde::Serialize;

use super::call_id::calls_of;
use super::create::{Purpose, request};
use super::ledger::{Claim, Ledger};
use super::live::CLEANUP_LIMIT;
use crate::policy::approvals::Store;
use crate::registry::Entry;
use crate::world::World;

/// How long a provider may look for what there is to clean up.
const FINDING: Duration = Duration::from_secs(30);

/// The hint to those whose cleanup was refused.
const BY_FORCE: &str = "`--force` cleans up all the same";

/// The background processes in environments, which stand on a floor above this one.
pub trait Background {
    /// Returns how many are alive in the environment of `task` on `backend`.
    fn live(&self, backend: &str, task: &str) -> usize;

    /// Ends those in the environment of `task` on `backend` that live no longer than it.
    ///
    /// # Errors
    ///
    /// Fails if one of them could not be ended.
    fn end(&self, backend: &str, task: &str) -> Result<Stopped, Error>;
}

/// What became of an environment's background processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// The ids of those that were ended.
    pub ended: Vec<String>,
    /// The ids of those that were left, since they are to outlive the environment.
    pub left: Vec<String>,
}

/// What a cleanup has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// The ids of the background processes that were ended.
    pub ended: Vec<String>,
    /// The ids of the detached ones that were left, without their environment.
    pub left: Vec<String>,
    /// What the user should know all the same, a line each.
    pub warnings: Vec<String>,
}

/// Destroys the environment of `task` on `backend`, and removes all that is kept of it. One that is live in this very process
/// has to be let go by its holder before.
///
/// With `force`, calls in flight and detached processes do not matter, and where the backend cannot do it, or is gone, only
/// what is kept here is removed.
///
/// # Errors
///
/// Fails, and keeps the environment, if there is none, it is in use, or its backend cannot clean it up. Background processes
/// may have been ended by then.
pub fn cleanup(
    world: &World,
    background: &dyn Background,
    backend: &str,
    task: &str,
    force: bool,
) -> Result<Report, Error> {
    let about = |error: Error| {
        error.with_context(format_args!("cleaning up task `{}` on `{backend}`", task.escape_debug()))
    };
    let mut report = Report { task: task.to_owned(), backend: backend.to_owned(), ..Report::default() };
    let ledger = Ledger::new(&world.home);
    let claim = claim(&ledger, backend, task, force).map_err(about)?;
    let id = ledger.id(backend, task);
    let entry = world.backend(backend).map_err(by_force);
    let entry = tolerate(entry, force, &mut report).map_err(about)?;
    let stopped = tolerate(background.end(backend, task).map_err(by_force), force, &mut report);
    let stopped = stopped.map_err(about)?.unwrap_or_default();
    if !stopped.left.is_empty() && !force {
        return Err(about(detached(&stopped.left)));
    }
    (report.ended, report.left) = (stopped.ended, stopped.left);
    // What its commands have left behind; on another machine, that is the provider's.
    let end_left = || {
        if let Some(id) = &id {
            let _ = end_calls(&calls_of(id));
        }
    };
    // A call in flight must not be ended before its session is gone, or it would go on with whatever comes next.
    if claim.is_some() {
        end_left();
    }
    if let Some(entry) = entry {
        let destroyed = destroy(world, entry, task, &mut report.warnings).map_err(by_force);
        tolerate(destroyed, force, &mut report).map_err(about)?;
    }
    if claim.is_none() {
        end_left();
    }
    // What was allowed was allowed in this environment, and not in the next one of its task.
    let forgotten = Store::of(&world.home).forget(backend, task);
    let forgotten =
        forgotten.map_err(|error| by_force(Error::io("failed to remove what was allowed in it", &error)));
    tolerate(forgotten, force, &mut report).map_err(about)?;
    let removed = match claim {
        Some(claim) => claim.remove(),
        None => ledger.remove_by_force(backend, task),
    };
    removed.map_err(|error| {
        let dir = world.home.task(backend, task);
        let error = Error::io(format_args!("failed to remove `{}`", dir.display()), &error);
        about(error.with_hint("see who owns what is in it, and remove it by hand"))
    })?;
    Ok(report)
}

/// Keeps calls off. None where somebody uses it, and that is not to matter.
fn claim(ledger: &Ledger, backend: &str, task: &str, force: bool) -> Result<Option<Claim>, Error> {
    match ledger.claim(backend, task) {
        Ok(None) if !force => {
            let error = Error::new(ErrorKind::INVALID_REQUEST, "a call is in flight in it");
            Err(error.with_hint(format!("wait for its end; {BY_FORCE}")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let error = Error::new(ErrorKind::NOT_FOUND, "there is no such environment");
            Err(error.with_hint("`hostel env list` shows all"))
        }
        claimed => claimed.map_err(|error| Error::io("failed to claim it", &error)),
    }
}

/// Turns a failure into a warning where it is not to matter.
fn tolerate<T>(done: Result<T, Error>, force: bool, report: &mut Report) -> Result<Option<T>, Error> {
    match done {
        Err(error) if force => {
            report.warnings.push(error.message().to_owned());
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Adds to an error's hint that there is another way.
fn by_force(error: Error) -> Error {
    let way = "`--force` removes what Hostel keeps of it, and leaves what the backend may have";
    let hint = error.hint().map_or_else(|| way.to_owned(), |hint| format!("{hint}; {way}"));
    error.with_hint(hint)
}

fn detached(left: &[String]) -> Error {
    let ids: Vec<String> = left.iter().map(|id| format!("`{id}`")).collect();
    let message = format!("detached background processes are alive in it: {}", ids.join(", "));
    let hint = format!("end them with `hostel process kill ID`; {BY_FORCE}");
    Error::new(ErrorKind::INVALID_REQUEST, message).with_hint(hint)
}

/// Lets the provider find and destroy what there is. It may never come back, so it does so on a thread that can be left behind.
fn destroy(world: &World, entry: &Entry, task: &str, warnings: &mut Vec<String>) -> Result<(), Error> {
    let (provider, request) = request(world, entry, task, Purpose::Cleanup)?;
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let (found, environment) = match provider.create_environment(request) {
            Ok(environment) => (Ok(()), Some(environment)),
            Err(error) => (Err(error), None),
        };
        // The waiter may have gone, but what was found has to be destroyed all the same.
        let _ = sender.send(found);
        if let Some(environment) = environment {
            let _ = sender.send(environment.cleanup());
        }
    };
    thread::Builder::new()
        .name("cleanup".into())
        .spawn(work)
        .map_err(|error| Error::io("failed to start a thread", &error))?;
    match step(&receiver, FINDING, "find what there is to clean up") {
        Err(error) if error.kind() == ErrorKind::NOT_FOUND => {
            warnings.push(format!("the backend has nothing to clean up: {}", error.message()));
            Ok(())
        }
        Err(error) => Err(error),
        Ok(()) => step(&receiver, CLEANUP_LIMIT, "clean up"),
    }
}

/// Waits for one step of the provider's.
fn step(receiver: &Receiver<Result<(), Error>>, limit: Duration, doing: &str) -> Result<(), Error> {
    receiver.recv_timeout(limit).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                let message = format!("the backend did not {doing} within {} s", limit.as_secs());
                Error::new(ErrorKind::TIMEOUT, message)
            }
            RecvTimeoutError::Disconnected => {
                Error::new(ErrorKind::PANICKED, format!("the backend panicked when it was to {doing}"))
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use hostel_plugin_api::{
        CreateEnvironment, Environment, ExecIo, ExecOutcome, ExecRequest, TerminalEnvironmentProvider,
    };

    use super::*;
    use crate::home::Home;
    use crate::registry::Origin;
    use crate::world::Options;

    type Log = Arc<Mutex<Vec<String>>>;

    /// Writes down what it is asked for.
    struct Fake(Log);

    impl TerminalEnvironmentProvider for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn is_available(&self) -> bool {
            true
        }

        fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
            if request.task_id == "empty" {
                return Err(Error::new(ErrorKind::NOT_FOUND, "no sandbox"));
            }
            let CreateEnvironment { task_id, persistent, extra, .. } = request;
            self.0.lock().unwrap().push(format!("made {task_id} {persistent} {:?}", extra.get("purpose")));
            Ok(Box::new(Fake(Arc::clone(&self.0))))
        }
    }

    impl Environment for Fake {
        fn execute(&self, _: ExecRequest, _: &dyn ExecIo) -> Result<ExecOutcome, Error> {
            Err(Error::new(ErrorKind::UNSUPPORTED, "nothing runs here"))
        }

        fn cleanup(&self) -> Result<(), Error> {
            self.0.lock().unwrap().push("cleaned up".into());
            Ok(())
        }
    }

    /// Has the same answer for all.
    struct Processes(Stopped);

    impl Background for Processes {
        fn live(&self, _: &str, _: &str) -> usize {
            self.0.left.len()
        }

        fn end(&self, _: &str, _: &str) -> Result<Stopped, Error> {
            Ok(self.0.clone())
        }
    }

    const NONE: Processes = Processes(Stopped { ended: Vec::new(), left: Vec::new() });

    fn world() -> (tempfile::TempDir, World, Log) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let mut world = World::open(Options { home: Some(home), backend: None }).unwrap();
        let log = Log::default();
        let provider: crate::registry::Provider = Arc::new(Fake(Arc::clone(&log)));
        let source = move || Ok(Arc::clone(&provider));
        world.registry.add(Entry::new("fake", Origin::Plugin("fake".into()), source)).unwrap();
        (dir, world, log)
    }

    #[test]
    fn it_is_made_once_more_to_be_destroyed() {
        let (_dir, world, log) = world();
        let error = cleanup(&world, &NONE, "fake", "t", true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NOT_FOUND);
        Ledger::new(&world.home).open("fake", "t").unwrap();
        let processes = Processes(Stopped { ended: vec!["proc_1".into()], left: Vec::new() });
        let report = cleanup(&world, &processes, "fake", "t", false).unwrap();
        assert_eq!((report.ended, report.warnings), (vec!["proc_1".to_owned()], vec![]));
        assert_eq!(*log.lock().unwrap(), ["made t false Some(String(\"cleanup\"))", "cleaned up"]);
        assert!(!world.home.task("fake", "t").exists());
    }

    #[test]
    fn a_call_in_flight_and_detached_processes_keep_it() {
        let (_dir, world, log) = world();
        let known = Ledger::new(&world.home).open("fake", "t").unwrap();
        let in_use = known.begin().unwrap();
        let error = cleanup(&world, &NONE, "fake", "t", false).unwrap_err();
        assert!(error.message().contains("`t` on `fake`") && error.hint().unwrap().contains("--force"));
        drop(in_use);
        let processes = Processes(Stopped { ended: Vec::new(), left: vec!["proc_1".into()] });
        let error = cleanup(&world, &processes, "fake", "t", false).unwrap_err();
        assert!(error.message().contains("`proc_1`"), "{error}");
        assert!(log.lock().unwrap().is_empty() && world.home.task("fake", "t").exists());
        let in_use = known.begin().unwrap();
        assert_eq!(cleanup(&world, &processes, "fake", "t", true).unwrap().left, ["proc_1"]);
        assert!(in_use.is_some() && !world.home.task("fake", "t").exists());
    }

    #[test]
    fn of_a_backend_that_is_gone_only_the_folder_can_be_removed() {
        let (_dir, world, _) = world();
        Ledger::new(&world.home).open("gone", "t").unwrap();
        let error = cleanup(&world, &NONE, "gone", "t", false).unwrap_err();
        assert!(error.message().contains("no backend `gone`") && error.hint().unwrap().contains("--force"));
        let report = cleanup(&world, &NONE, "gone", "t", true).unwrap();
        assert_eq!(report.warnings.len(), 1);
        assert!(!world.home.task("gone", "t").exists());
    }

    #[test]
    fn that_there_is_nothing_any_more_is_no_failure() {
        let (_dir, world, _) = world();
        Ledger::new(&world.home).open("fake", "empty").unwrap();
        let report = cleanup(&world, &NONE, "fake", "empty", false).unwrap();
        assert!(report.warnings[0].contains("no sandbox") && !world.home.task("fake", "empty").exists());
    }
}
