//! An environment in the hands of a rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::limit::{Silent, limited};
use super::rule::Unmet;
use crate::{Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest};

/// An environment that is cleaned up at its end.
pub(super) struct Held {
    environment: Arc<dyn Environment>,
    limit: Duration,
    /// Whether `cleanup` has hung once, in this environment or in another one.
    stuck: Arc<AtomicBool>,
}

impl Held {
    pub(super) fn new(environment: Box<dyn Environment>, limit: Duration, stuck: Arc<AtomicBool>) -> Self {
        Self { environment: Arc::from(environment), limit, stuck }
    }

    pub(super) fn environment(&self) -> &dyn Environment {
        self.environment.as_ref()
    }

    /// Calls `cleanup`, and waits for it no longer than it may take.
    pub(super) fn cleanup(&self) -> Result<Result<(), Error>, Silent> {
        let environment = Arc::clone(&self.environment);
        let answer = limited(self.limit, move || environment.cleanup());
        if matches!(answer, Err(Silent::Hung(_))) {
            self.stuck.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Cleans up on the way of a rule that is not about it.
    pub(super) fn let_go(&self) -> Result<(), Unmet> {
        let unusable = |reason: String| Unmet::Skipped(format!("`cleanup` {reason}: see `life.cleanup`"));
        if self.stuck.load(Ordering::Relaxed) {
            return Err(unusable("does not come back".into()));
        }
        match self.cleanup() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(unusable(format!("fails with `{error}`"))),
            Err(silent) => Err(unusable(format!("gives no result ({silent})"))),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The provider's own destructor runs on that thread as well.
        let environment = std::mem::replace(&mut self.environment, Arc::new(Gone));
        let end = move || {
            // Whether it works is for a rule to say.
            let _ = environment.cleanup();
            drop(environment);
        };
        if self.stuck.load(Ordering::Relaxed) {
            // Once is enough to wait for one that does not come back.
            let _ = thread::Builder::new().name("conformance".into()).spawn(end);
        } else if matches!(limited(self.limit, end), Err(Silent::Hung(_))) {
            self.stuck.store(true, Ordering::Relaxed);
        }
    }
}

/// Stands where an environment was.
struct Gone;

impl Environment for Gone {
    fn execute(&self, _request: ExecRequest, _io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        Err(Error::new(ErrorKind::LOST, "the environment is gone").not_started())
    }

    fn cleanup(&self) -> Result<(), Error> {
        Ok(())
    }
}
