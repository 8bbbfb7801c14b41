//! One client, and what it works with.
//!
//! A client over standard input is the only one of its server. Over HTTP there are many: each session has a task of its own, so that two agents do
//! not change each other's directory, unless it names one.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hostel_plugin_api::Error;
use serde_json::Value;

use super::cancel::Calls;
use super::in_use::InUse;
use super::instructions::Instructions;
use crate::Host;
use crate::tools::Session;

/// How many outputs of a client are listed.
const MOST_OUTPUTS: usize = 100;

/// The member of a result that names the file with a whole output.
const OUTPUT_PATH: &str = "full_output_path";

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
    /// The files with whole outputs of its calls, the oldest first.
    outputs: Mutex<VecDeque<String>>,
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
            outputs: Mutex::default(),
        }))
    }

    /// The home, its backends and its environments.
    pub(super) fn host(&self) -> &Host {
        &self.host
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

    /// Notes the whole outputs that a result names.
    pub(super) fn keep_outputs(&self, result: &Value) {
        match result {
            Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        Some(path) if name == OUTPUT_PATH => self.keep_output(Path::new(path)),
                        Some(_) => {}
                        None => self.keep_outputs(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.keep_outputs(item)),
            _ => {}
        }
    }

    fn keep_output(&self, path: &Path) {
        let ours = path.parent() == Some(&self.host.world().home.outputs());
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| ours) else { return };
        let mut outputs = self.held();
        if outputs.len() == MOST_OUTPUTS {
            outputs.pop_front();
        }
        outputs.push_back(name.to_owned());
    }

    /// Returns the names of the files with whole outputs, the oldest first.
    pub(super) fn outputs(&self) -> Vec<String> {
        self.held().iter().cloned().collect()
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
