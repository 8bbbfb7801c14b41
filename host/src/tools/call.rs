//! One call of a tool: who may stop it, and who hears of it while it runs.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::ask::{Asked, Asker, Question};
use crate::exec::Cancel;

/// Hears what a command prints, as it is printed.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// One call of a tool.
#[derive(Clone)]
pub struct Call {
    cancel: Arc<Cancel>,
    listener: Option<Listener>,
    is_scripts: bool,
    asker: Option<Arc<dyn Asker>>,
}

impl Call {
    /// Begins a call that nobody has cancelled, and nobody listens to.
    ///
    /// # Errors
    ///
    /// Fails if the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { cancel: Arc::new(Cancel::new()?), listener: None, is_scripts: false, asker: None })
    }

    /// Lets `listener` hear what a command of this call prints.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Lets `asker` ask the person behind the caller.
    #[must_use]
    pub fn with_asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Returns the same call without anybody who listens: for what is not the caller's own command.
    #[must_use]
    pub fn unheard(&self) -> Self {
        Self { listener: None, ..self.clone() }
    }

    /// Returns what cancels this call.
    #[must_use]
    pub fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// Returns whether the caller gave up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Becomes readable when the caller gives up.
    #[must_use]
    pub fn cancel_fd(&self) -> BorrowedFd<'_> {
        self.cancel.as_fd()
    }

    /// Returns whether anybody listens.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Returns the same call as one that a script makes: its answer is read by the script and by no agent.
    #[must_use]
    pub fn of_script(&self) -> Self {
        Self { listener: None, is_scripts: true, ..self.clone() }
    }

    /// Returns the same call as one that `cancel` cancels, and its caller only by that.
    #[must_use]
    pub fn cancelled_by(&self, cancel: &Arc<Cancel>) -> Self {
        Self { cancel: Arc::clone(cancel), ..self.clone() }
    }

    /// Returns whether a script made it, and not the agent.
    #[must_use]
    pub fn is_scripts(&self) -> bool {
        self.is_scripts
    }

    /// Returns whoever can ask the person behind the caller, if there is somebody.
    #[must_use]
    pub fn asker(&self) -> Option<&Arc<dyn Asker>> {
        self.asker.as_ref()
    }

    /// Asks the person behind the caller, who has `limit` to answer.
    #[must_use]
    pub fn ask(&self, question: &Question, limit: Duration) -> Asked {
        self.asker.as_ref().map_or(Asked::Nobody, |asker| asker.ask(question, limit, self.cancel_fd()))
    }

    /// Passes on some output.
    pub fn printed(&self, bytes: &[u8]) {
        if let Some(listener) = &self.listener {
            listener(bytes);
        }
    }
}
