//! Output as an agent sees it while it comes: without escape sequences and secrets, which may lie across its pieces.

use std::sync::Arc;

use crate::exec::clean::{Clean, Options};
use crate::policy::redact::{Redactor, Secrets};

/// Shows output piece by piece. A line that is written over stays: nobody can wait for its last state who wants to see it change.
pub(super) struct Live {
    clean: Clean,
    redactor: Redactor,
}

impl Live {
    /// Knows what is not to be shown.
    pub(super) fn new(secrets: &Arc<Secrets>) -> Self {
        let strip = Options { strip_ansi: true, collapse_cr: false };
        Self { clean: Clean::new(strip), redactor: Redactor::new(Arc::clone(secrets)) }
    }

    /// Takes a piece, and returns what can be shown by now.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let clean = self.clean.take(bytes);
        self.redactor.take(&clean)
    }

    /// Returns what is left.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = self.clean.finish();
        let mut rest = self.redactor.take(&rest);
        rest.extend(self.redactor.finish());
        rest
    }
}
