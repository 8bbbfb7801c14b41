//! Takes the output of a command in the foreground: the part that is shown, and what is heard as it comes.
//!
//! Escape sequences and secrets are taken out before anything is kept. Both may stand where an output is cut, and half a secret is
//! still one; and the file that holds the whole output is read by agents too.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hostel_plugin_api::{ExecIo, Flow};

use super::tidy::Tidy;
use crate::exec::{Collector, Kept};
use crate::policy::redact::{Redactor, Secrets};
use crate::tools::call::Call;
use crate::tools::live::Live;

/// The caller's side of a command.
pub(in crate::tools) struct Taking {
    call: Call,
    deadline: Option<Instant>,
    /// None once the call is over: a provider that did not come back may still write.
    sinks: Mutex<Option<Sinks>>,
}

struct Sinks {
    tidy: Tidy,
    redactor: Redactor,
    collector: Collector,
    characters: u64,
    live: Option<Live>,
}

/// What was taken.
pub(in crate::tools) struct Taken {
    /// What is shown, and where the whole is.
    pub(in crate::tools) kept: Kept,
    /// How many characters the whole has.
    pub(in crate::tools) characters: u64,
}

impl Taking {
    /// Takes the output of a command of `call` that must have ended at `deadline`.
    pub(in crate::tools) fn new(
        call: &Call,
        deadline: Option<Instant>,
        collector: Collector,
        secrets: &Arc<Secrets>,
    ) -> Self {
        let live = call.is_heard().then(|| Live::new(secrets));
        let redactor = Redactor::new(Arc::clone(secrets));
        let sinks = Sinks { tidy: Tidy::default(), redactor, collector, characters: 0, live };
        Self { call: call.clone(), deadline, sinks: Mutex::new(Some(sinks)) }
    }

    /// Ends the taking. None if that was done before.
    pub(in crate::tools) fn finish(&self) -> Option<Taken> {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if let Some(live) = &mut sinks.live {
            let rest = live.finish();
            if !rest.is_empty() {
                self.call.printed(&rest);
            }
        }
        let rest = sinks.tidy.finish();
        let mut rest = sinks.redactor.take(&rest);
        rest.extend(sinks.redactor.finish());
        sinks.keep(&rest);
        Some(Taken { kept: sinks.collector.finish(), characters: sinks.characters })
    }
}

impl Sinks {
    fn keep(&mut self, bytes: &[u8]) {
        let begins_one = |byte: &&u8| **byte & 0xc0 != 0x80;
        self.characters += bytes.iter().filter(begins_one).count() as u64;
        self.collector.take(bytes);
    }
}

impl ExecIo for Taking {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sinks) = &mut *sinks else { return Flow::Stop };
        if let Some(live) = &mut sinks.live {
            let shown = live.take(bytes);
            if !shown.is_empty() {
                self.call.printed(&shown);
            }
        }
        let tidy = sinks.tidy.take(bytes);
        let shown = sinks.redactor.take(&tidy);
        sinks.keep(&shown);
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.call.cancel_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use hostel_plugin_api::shell::StripList;

    use super::*;
    use crate::exec::Outputs;

    fn secrets() -> Arc<Secrets> {
        let strip = StripList::new(["TOKEN".to_owned()]);
        Arc::new(Secrets::new(&strip, [(OsString::from("TOKEN"), OsString::from("tok-12345678"))]))
    }

    #[test]
    fn neither_sequences_nor_secrets_come_through_wherever_it_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let text = "\x1b[32mone\x1b[0m tok-12345678 10 %\r20 % two tok-123\x1b[m45678\n".repeat(20);
        for size in [1, 3, 1000] {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let theirs = Arc::clone(&heard);
            let listener = Arc::new(move |bytes: &[u8]| theirs.lock().unwrap().extend_from_slice(bytes));
            let call = Call::new().unwrap().with_listener(listener);
            let collector = Collector::new(100, Outputs::in_dir(dir.path().to_owned()));
            let taking = Taking::new(&call, None, collector, &secrets());
            for piece in text.as_bytes().chunks(size) {
                assert_eq!(taking.output(piece), Flow::Continue);
            }
            let taken = taking.finish().unwrap();
            let whole = std::fs::read_to_string(taken.kept.path.unwrap()).unwrap();
            assert_eq!(whole, "20 % two [redacted TOKEN]\n".repeat(20));
            assert_eq!(taken.characters, whole.len() as u64);
            let heard = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
            for text in [&taken.kept.text, &heard] {
                assert!(!text.contains('\x1b') && !text.contains("tok-1"), "{text}");
            }
            assert!(heard.contains("10 %\r20 %"), "{heard}");
            assert!(taking.finish().is_none() && taking.output(b"late") == Flow::Stop);
        }
    }
}
