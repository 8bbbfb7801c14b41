//! One call of a tool: who may stop it, and who hears of it while it runs.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::exec::Cancel;

/// Hears what a command prints, as it is printed.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// One call of a tool.
#[derive(Clone)]
pub struct Call {
    cancel: Arc<Cancel>,
    listener: Option<Listener>,
    is_scripts: bool,
}

impl Call {
    /// Begins a call that nobody has cancelled, and nobody listens to.
    ///
    /// # Errors
    ///
    /// Fails if the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { cancel: Arc::new(Cancel::new()?), listener: None, is_scripts: false })
    }

    /// Lets `listener` hear what a command of this call prints.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Returns the same call without anybody who listens: for what is not the caller's own command.
    #[must_use]
    pub fn unheard(&self) -> Self {
        Self { cancel: Arc::clone(&self.cancel), listener: None, is_scripts: self.is_scripts }
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
        Self { cancel: Arc::clone(&self.cancel), listener: None, is_scripts: true }
    }

    /// Returns whether a script made it, and not the agent.
    #[must_use]
    pub fn is_scripts(&self) -> bool {
        self.is_scripts
    }

    /// Passes on some output.
    pub fn printed(&self, bytes: &[u8]) {
        if let Some(listener) = &self.listener {
            listener(bytes);
        }
    }
}
