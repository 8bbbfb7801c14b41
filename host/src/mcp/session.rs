//! One client, and what it works with.
//!
//! A client over standard input is the only one of its server. Over HTTP there are many: each session has a task of its own, so that two agents do
//! not change each other's directory, unless it names one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostel_plugin_api::Error;

use super::cancel::Calls;
use super::in_use::InUse;
use super::instructions::Instructions;
use crate::Host;
use crate::tools::Session;

/// What one client works with.
pub(super) struct Client {
    host: Host,
    /// Whether its task was named for it, and for nobody else.
    is_alone: bool,
    /// Where its tools act.
    pub(super) session: Session,
    /// What it is told at the beginning.
    pub(super) instructions: Instructions,
    /// Its calls in flight.
    pub(super) calls: Arc<Calls>,
    /// The numbers of its requests over HTTP.
    pub(super) in_use: Arc<InUse>,
    /// Its session has ended, and its calls with it.
    ended: AtomicBool,
}

impl Client {
    /// Begins to work in the environment of `task`. Nothing is made yet.
    ///
    /// # Errors
    ///
    /// Fails if the selected backend is unknown.
    pub(super) fn new(host: &Host, task: &str) -> Result<Arc<Self>, Error> {
        Self::made(host, task, false)
    }

    /// Begins to work in an environment of its own, which goes with it. `task` must be nobody else's.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(super) fn alone(host: &Host, task: &str) -> Result<Arc<Self>, Error> {
        Self::made(host, task, true)
    }

    fn made(host: &Host, task: &str, is_alone: bool) -> Result<Arc<Self>, Error> {
        let session = host.session(task)?;
        Ok(Arc::new(Self {
            host: host.clone(),
            is_alone,
            session,
            instructions: Instructions::default(),
            calls: Calls::new(),
            in_use: Arc::default(),
            ended: AtomicBool::new(false),
        }))
    }

    /// Ends its calls, which are then answered with an error, since their session is over.
    pub(super) async fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.calls.end().await;
    }

    /// Whether its session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Lets its environment go, unless a background process is in it. Nothing is kept of one that is nobody else's. Returns a line if
    /// that failed.
    pub(super) fn let_go(&self) -> Option<String> {
        self.host.close_task(self.session.entry(), self.session.task(), self.is_alone)
    }
}
