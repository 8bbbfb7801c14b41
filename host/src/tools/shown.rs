//! Text as an agent is shown it: without escape sequences, without what was written over, and without secrets.

use std::sync::Arc;

use super::session::Session;
use crate::exec::clean::{Clean, Options};
use crate::policy;
use crate::policy::redact::Secrets;

/// What is cleaned.
pub(super) const CLEAN: Options = Options { strip_ansi: true, collapse_cr: true };

/// Shows text to the agent of one session.
pub(super) struct Shown {
    secrets: Arc<Secrets>,
}

impl Shown {
    /// Knows what the agent of `session` is not to be told.
    pub(super) fn new(session: &Session) -> Self {
        let strip = policy::secrets::strip_list(&session.world().registry);
        Self { secrets: Arc::new(Secrets::new(&strip, std::env::vars_os())) }
    }

    /// What the agent is not to be told.
    pub(super) fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    /// Returns what a command has printed as it is shown.
    pub(super) fn output(&self, text: &str) -> String {
        let mut clean = Clean::new(CLEAN);
        let mut bytes = clean.take(text.as_bytes());
        bytes.extend(clean.finish());
        self.text(&String::from_utf8_lossy(&bytes))
    }

    /// Returns a text of ours, such as an error, as it is shown.
    pub(super) fn text(&self, text: &str) -> String {
        self.secrets.hide(text)
    }

    /// Returns texts of ours as they are shown.
    pub(super) fn texts<'a>(&self, texts: impl IntoIterator<Item = &'a String>) -> Vec<String> {
        texts.into_iter().map(|text| self.text(text)).collect()
    }
}
