//! Hostel inside another program.
//!
//! The command line, the MCP server and a program that uses this crate all come through [`Host::open`], so a program of yours
//! has the same backends, plugins, rules and tools, with the same settings.

use std::sync::Arc;

use hostel_plugin_api::{Error, ErrorKind, ExecOutcome, ExecRequest};

use crate::environments::cleanup::{Background, cleanup};
use crate::environments::idle::{Idle, Watch};
use crate::environments::{Environments, SharedIo};
use crate::processes::Processes;
use crate::registry::Entry;
use crate::tools::Session;
use crate::world::{OpenError, Options, World};

/// A home with its backends, and the environments that are live in this process.
///
/// Environments that are idle for `terminal.lifetime_seconds` are closed. [`close`](Self::close) lets all of them go, and so does
/// dropping the last clone of a host, but only `close` tells what could not be let go.
///
/// Plugins, and processes in the background, run in processes of their own, for which the program `hostel` must stand beside
/// yours or in `PATH`.
///
/// ```
/// use hostel::home::Home;
/// use hostel::tools::{self, Call};
/// use hostel::{Host, Options};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let home = Home::at(dir.path().join("home"))?;
/// let host = Host::open(Options { home: Some(home), backend: Some("local".into()) })?;
/// let session = host.session("build")?;
///
/// // What lasts between commands lasts between calls.
/// let call = Call::new()?;
/// let _ = tools::call(&session, "terminal", json!({ "command": "cd /tmp && export STEP=2" }), &call);
/// let answer = tools::call(&session, "terminal", json!({ "command": "echo $STEP; pwd" }), &call);
/// assert!(!answer.is_error());
/// assert_eq!(answer.value["output"], "2\n/tmp\n");
/// assert_eq!(answer.value["exit_code"], 0);
///
/// assert!(host.close().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    world: World,
    environments: Arc<Environments>,
    idle: Watch,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for line in self.environments.close() {
            tracing::warn!("{line}");
        }
    }
}

impl Host {
    /// Reads the home's configuration and manifests. Opens no plugin, and makes no environment.
    ///
    /// # Errors
    ///
    /// Fails if there is no home, or its configuration cannot be used. A broken plugin is no failure.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        Self::with_environments(options, Environments::default())
    }

    /// As [`open`](Self::open), with environments of a face's own making.
    pub(crate) fn with_environments(options: Options, environments: Environments) -> Result<Self, OpenError> {
        let world = World::open(options)?;
        let environments = Arc::new(environments);
        let lifetime = world.config.seconds("terminal.lifetime_seconds")?;
        let background = Box::new(Processes::new(world.home.clone()));
        let idle = Idle::watch(&environments, background, lifetime).map_err(OpenError::Reaper)?;
        Ok(Self(Arc::new(Inner { world, environments, idle })))
    }

    /// The home, the configuration and the backends.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// Begins a session of tools in the environment of `task` on the selected backend.
    ///
    /// Calls of tools that `approvals.tools` names need a person. A program that can ask one gives the session, or a single
    /// [`Call`](crate::tools::Call), whom to ask; without, such calls wait for `hostel approvals`.
    ///
    /// ```
    /// use std::os::fd::BorrowedFd;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// use hostel::home::Home;
    /// use hostel::tools::{self, Asked, Asker, Call, Choice, Question, Reply};
    /// use hostel::{Host, Options};
    /// use serde_json::json;
    ///
    /// struct Careful;
    ///
    /// impl Asker for Careful {
    ///     fn ask(&self, question: &Question, _: Duration, _: BorrowedFd<'_>) -> Asked {
    ///         let choice = if question.message.contains("rm ") { Choice::Deny } else { Choice::Once };
    ///         Asked::Answered(Reply { choice, reason: Some("nothing is removed here".into()) })
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::write(dir.path().join("config.yaml"), "approvals: {tools: [terminal]}\n")?;
    /// # let home = Home::at(dir.path().to_owned())?;
    /// let host = Host::open(Options { home: Some(home), backend: Some("local".into()) })?;
    /// let session = host.session("build")?.with_asker(Arc::new(Careful));
    /// let run = |command: &str| -> std::io::Result<_> {
    ///     Ok(tools::call(&session, "terminal", json!({ "command": command }), &Call::new()?).value)
    /// };
    /// assert_eq!(run("echo hi")?["output"], "hi\n");
    /// assert_eq!(run("rm -rf build")?["status"], "blocked");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if what is selected is unknown.
    pub fn session(&self, task: &str) -> Result<Session, Error> {
        Session::new(self.clone(), task)
    }

    /// Runs one command in the environment of `task` on the selected backend. Output goes to `io` as it comes.
    ///
    /// # Errors
    ///
    /// As [`Environments::execute`].
    pub fn execute(&self, task: &str, request: ExecRequest, io: &SharedIo) -> Result<ExecOutcome, Error> {
        self.execute_on(self.0.world.selected()?, task, request, io)
    }

    /// The background processes of the home.
    #[must_use]
    pub fn processes(&self) -> Processes {
        Processes::new(self.0.world.home.clone())
    }

    /// Lets all environments go, and waits 15 s at the most. Returns a line for each that could not.
    #[must_use]
    pub fn close(&self) -> Vec<String> {
        self.0.environments.close()
    }

    /// Lets the environment of `task` on `entry` go, unless a call or a background process is in it, and with `forget` removes all that
    /// is kept of it. Returns a line if that failed.
    pub(crate) fn close_task(&self, entry: &Entry, task: &str, forget: bool) -> Option<String> {
        let background = self.processes();
        if background.live(entry.name(), task) > 0 {
            // The reaper looks after it.
            return None;
        }
        let failed =
            |error: Error| format!("cleaning up task `{task}` on `{}` failed: {error}", entry.name());
        if let Some(Err(error)) = self.0.environments.close_one(entry.name(), task) {
            return Some(failed(error));
        }
        if !forget {
            return None;
        }
        match cleanup(&self.0.world, &background, entry.name(), task, false) {
            // Nothing was ever made.
            Err(error) if error.kind() == ErrorKind::NOT_FOUND => None,
            cleaned => cleaned.err().map(failed),
        }
    }

    /// Makes the environment of `task` on `entry` if there is none.
    pub(crate) fn prepare(&self, entry: &Entry, task: &str) -> Result<(), Error> {
        let Inner { world, environments, idle } = &*self.0;
        idle.made();
        environments.get(world, entry, task).map(drop)
    }

    /// As [`execute`](Self::execute), on a backend of the caller's choice.
    pub(crate) fn execute_on(
        &self,
        entry: &Entry,
        task: &str,
        request: ExecRequest,
        io: &SharedIo,
    ) -> Result<ExecOutcome, Error> {
        let Inner { world, environments, idle } = &*self.0;
        idle.made();
        environments.execute(world, entry, task, request, io)
    }
}
