//! What a command is given to read, where that is bytes and no descriptor.

use std::io::{self, PipeWriter, Write};

/// Bytes on their way to the command.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) pipe: PipeWriter,
    pub(super) bytes: Vec<u8>,
    pub(super) sent: usize,
}

impl Feed {
    /// Sends what the pipe takes. Returns itself as long as there is more.
    pub(super) fn send(mut self) -> Option<Self> {
        match self.pipe.write(&self.bytes[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) if is_passing(&error) => {}
            // A command that does not read its input is no failure.
            Err(_) => return None,
        }
        (self.sent < self.bytes.len()).then_some(self)
    }
}

/// Returns whether a failure says nothing but that it is to be tried again.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
