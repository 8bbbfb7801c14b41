//! A cancellation that can be waited for.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Becomes readable when it is cancelled, and stays so.
#[derive(Debug)]
pub struct Cancel {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Cancel {
    /// Makes one that nothing has cancelled.
    ///
    /// # Errors
    ///
    /// Fails if the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }

    /// Cancels it.
    pub fn cancel(&self) {
        // A full pipe is as readable as one with a byte in it.
        let _ = (&self.writer).write(&[1]);
    }

    /// Lets these signals cancel it instead of ending the process.
    ///
    /// # Errors
    ///
    /// Fails if a signal cannot be caught.
    pub fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, self.writer.try_clone()?)?;
        }
        Ok(())
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
