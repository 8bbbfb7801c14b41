//! Lets the reaper close the environments of this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Environments;
use super::cleanup::Background;
use super::reaper::{Key, Reapable, Reaper, Seen};

/// Environments, and who knows of the background processes in them.
pub struct Idle {
    environments: Arc<Environments>,
    background: Box<dyn Background + Send + Sync>,
}

impl Idle {
    /// Starts to close those of `environments` that nobody has used for `lifetime` and in which nothing runs in the background.
    ///
    /// # Errors
    ///
    /// Fails if there can be no further thread.
    pub fn watch(
        environments: &Arc<Environments>,
        background: Box<dyn Background + Send + Sync>,
        lifetime: Duration,
    ) -> io::Result<Watch> {
        let idle = Arc::new(Self { environments: Arc::clone(environments), background });
        let reaper = Reaper::start(&idle, lifetime)?;
        Ok(Watch { reaper, _idle: idle })
    }
}

/// Closes what is idle until it is dropped.
pub struct Watch {
    reaper: Reaper,
    _idle: Arc<Idle>,
}

impl Watch {
    /// Says that an environment may have been made.
    pub fn made(&self) {
        self.reaper.made();
    }
}

impl Reapable for Idle {
    fn seen(&self) -> Vec<Seen> {
        self.environments.seen()
    }

    fn has_background(&self, (backend, task): &Key) -> bool {
        self.background.live(backend, task) > 0
    }

    fn close_idle(&self, seen: &Seen) {
        if let Some(Err(error)) = self.environments.close_unused(seen) {
            let (backend, task) = &seen.key;
            tracing::warn!(backend, task, %error, "closing an idle environment failed");
        }
    }
}
