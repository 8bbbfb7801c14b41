//! A cancellation that can be waited for.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Becomes readable when it is cancelled, and stays so.
#[derive(Debug)]
pub struct Cancel {
    reader: PipeReader,
    writer: PipeWriter,
    over: Arc<AtomicBool>,
}

impl Cancel {
    /// Makes one that nothing has cancelled.
    ///
    /// # Errors
    ///
    /// Fails if the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, over: Arc::default() })
    }

    /// Cancels it.
    pub fn cancel(&self) {
        // A full pipe is as readable as one with a byte in it.
        let _ = (&self.writer).write(&[1]);
    }

    /// Lets these signals cancel it instead of ending the process. One that our starter has told us to ignore, as `nohup`
    /// does, is ignored still.
    ///
    /// # Errors
    ///
    /// Fails if a signal cannot be caught.
    pub fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        let ignored = ignored_signals();
        for signal in signals.iter().filter(|signal| ignored & (1 << (**signal - 1)) == 0) {
            // Once the call is over, nothing stands between the signal and its usual effect.
            signal_hook::flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(&self.over))?;
            signal_hook::low_level::pipe::register(*signal, self.writer.try_clone()?)?;
        }
        Ok(())
    }

    /// Lets the next signal end the process again.
    pub fn over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Returns whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let mut fds = [PollFd::new(&self.reader, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// The descriptor that becomes readable.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// Returns the signals that this process ignores, a bit each. Unknown counts as none.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_cancelled() {
        let cancel = Cancel::new().unwrap();
        assert!(!cancel.is_cancelled());
        cancel.cancel();
        assert!(cancel.is_cancelled() && cancel.is_cancelled());
    }
}
