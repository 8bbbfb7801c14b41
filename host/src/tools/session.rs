//! One agent's session with the tools: where they act, and what they remember of each other.

use std::sync::{Arc, Mutex, PoisonError};

use hostel_plugin_api::{Error, ErrorKind, ExecOutcome, ExecRequest};

use super::ask::Asker;
use super::memory::Memory;
use crate::Host;
use crate::environments::SharedIo;
use crate::exec::Outputs;
use crate::policy::approvals::Rules;
use crate::processes::Processes;
use crate::registry::Entry;
use crate::world::World;

/// Where the tools of one agent act: one task on one backend.
pub struct Session {
    host: Host,
    entry: Arc<Entry>,
    processes: Processes,
    task: String,
    rules: Rules,
    asker: Option<Arc<dyn Asker>>,
    /// What the tools remember from one call to the next.
    pub(super) memory: Memory,
    /// What the environment has said in calls whose results do not tell it, such as that login files are broken.
    untold: Mutex<Vec<String>>,
}

impl Session {
    /// Begins a session in the environment of `task` on the selected backend. Nothing is made yet.
    pub(crate) fn new(host: Host, task: &str) -> Result<Self, Error> {
        let entry = Arc::clone(host.world().selected()?);
        let rules = Rules::read(&host.world().config)
            .map_err(|error| Error::new(ErrorKind::INVALID_REQUEST, error.to_string()).not_started())?;
        let (processes, task, memory) = (host.processes(), task.to_owned(), Memory::default());
        Ok(Self { host, entry, processes, task, rules, asker: None, memory, untold: Mutex::default() })
    }

    /// Lets `asker` ask the person behind the session, in calls that have nobody of their own to ask.
    #[must_use]
    pub fn with_asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Whoever can ask the person behind the session.
    pub(super) fn asker(&self) -> Option<&Arc<dyn Asker>> {
        self.asker.as_ref()
    }

    /// Which calls need a person.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The home, the configuration and the backends.
    #[must_use]
    pub fn world(&self) -> &World {
        self.host.world()
    }

    /// The backend on which the tools act.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The task in whose environment the tools act.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The background processes of the home.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Where whole outputs of the session's task are kept, and the limits on that.
    ///
    /// # Errors
    ///
    /// Fails if the configuration has a limit that does not fit.
    pub fn outputs(&self) -> Result<Outputs, Error> {
        Ok(self.world().outputs()?.of_task(self.entry.name(), &self.task))
    }

    /// Runs one command in the session's environment, making that if there is none. Its warnings are also those that nobody was told
    /// before.
    ///
    /// # Errors
    ///
    /// As [`Environments::execute`](crate::environments::Environments::execute).
    pub fn execute(&self, request: ExecRequest, io: &SharedIo) -> Result<ExecOutcome, Error> {
        let mut outcome = self.host.execute_on(&self.entry, &self.task, request, io)?;
        let mut untold = self.untold();
        untold.retain(|line| !outcome.warnings.contains(line));
        outcome.warnings.splice(0..0, untold);
        Ok(outcome)
    }

    /// Keeps the warnings of a call whose result tells none, for the next one that does.
    pub(super) fn tell_later(&self, mut warnings: Vec<String>) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.retain(|line| !untold.contains(line));
        untold.append(&mut warnings);
    }

    /// Takes the warnings that nobody was told, a line each.
    #[must_use]
    pub fn untold(&self) -> Vec<String> {
        std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the session's environment if there is none, so that its making does not eat up the time of a command.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot be used.
    pub fn prepare(&self) -> Result<(), Error> {
        self.host.prepare(&self.entry, &self.task)
    }
}
