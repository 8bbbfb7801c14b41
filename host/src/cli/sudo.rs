//! Asks whoever sits at our terminal for the password of `sudo`.

use std::io;
use std::time::Duration;

use super::question;
use crate::policy::sudo::{Ask, Sudo};

/// Returns what gives `sudo` its password, which can ask if somebody is there. Where the command reads our terminal, it would get
/// what is typed.
pub(super) fn sudo(command_reads: bool) -> Sudo {
    if command_reads || !question::somebody_is_there() {
        return Sudo::default();
    }
    Sudo::asking(Box::new(AtTerminal))
}

struct AtTerminal;

impl Ask for AtTerminal {
    fn ask(&self, question: &str, limit: Duration) -> io::Result<Option<String>> {
        match question::ask_within(question, true, Some(limit)) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            answer => answer.map(Some),
        }
    }
}
