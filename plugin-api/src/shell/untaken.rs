//! A command that a copy of the resident shell has been given, and has not taken yet.
//!
//! The copy was there before. Somebody may have stopped it, or killed it just now; and then nobody would read the command, and its caller
//! would wait for its whole time. So what the command has for its streams is kept until the copy has begun to read. If it has not
//! after a while, the command is taken away from it, which cannot be done to one that has begun, and another shell gets it.

use std::io::{self, PipeReader};
use std::time::{Duration, Instant};

use super::channel::Script;
use super::feed::Feed;
use super::launch::Streams;

/// How long a copy may take to begin. It takes some tens of microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is kept meanwhile.
pub(super) struct Untaken<'a> {
    script: &'a Script,
    streams: Streams,
    until: Instant,
}

/// How the waiting for the copy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It goes on.
    Still,
    /// The copy has begun to read.
    Taken,
    /// It has not, and cannot any more.
    InVain,
}

/// What a shell needs for a command beside that, and another for the same one.
pub(super) struct Again {
    pub(super) output: PipeReader,
    pub(super) feed: Option<Feed>,
    pub(super) streams: Streams,
}

impl<'a> Untaken<'a> {
    /// Begins to wait for a copy that was given `script` and `streams`.
    pub(super) fn new(script: &'a Script, streams: Streams) -> Self {
        Self { script, streams, until: Instant::now() + PATIENCE }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    pub(super) fn streams(self) -> Streams {
        self.streams
    }

    /// Looks how it stands, for a copy that may have `ended`. Fails if it can no longer be known whether anything was run.
    pub(super) fn waits(&self, ended: bool, now: Instant) -> io::Result<Waits> {
        if !self.script.is_untouched() {
            return Ok(Waits::Taken);
        }
        if !ended && now < self.until {
            return Ok(Waits::Still);
        }
        if self.script.withdraw() {
            return Ok(Waits::InVain);
        }
        Err(io::Error::other("it was begun at the moment at which it was to be given to another shell"))
    }
}
