//! Runs small shell programs of ours in a session's environment.
//!
//! What a tool does in a sandbox it does by one of these, because a shell and the standard programs are all that every
//! sandbox has. The text is fixed: paths and patterns are variables, contents are standard input, so nothing of the caller's
//! is ever read as shell text. It runs in a fresh `sh`, so neither functions and aliases of the session nor its options
//! get in the way, and it changes nothing of what the session remembers.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hostel_plugin_api::{Ended, Error, ErrorKind, ExecIo, ExecRequest, Flow, Stdin};

use super::call::Call;
use super::session::Session;
use crate::environments::SharedIo;

/// Stands between what a place says when a shell starts and what the program prints.
const BEGINNING: &str = "\u{1}hostel:tool\u{2}";

/// One program and what it works on.
pub struct Script {
    text: &'static str,
    env: Vec<(String, String)>,
    stdin: Stdin,
    limit: Duration,
    most: usize,
    waits_for_login: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Ran {
    /// What it printed, both streams merged; cut after the limit.
    pub output: Vec<u8>,
    /// Whether something was cut. The program was then stopped.
    pub cut: bool,
    /// Its exit code.
    pub exit_code: i32,
    /// How it ended.
    pub ended: Ended,
}

impl Script {
    /// Makes a program of the shell text `text`, which any POSIX shell can read. It may take 60 s, and print 16 MiB.
    #[must_use]
    pub fn new(text: &'static str) -> Self {
        let (limit, most) = (Duration::from_secs(60), 16 * 1024 * 1024);
        Self { text, env: Vec::new(), stdin: Stdin::default(), limit, most, waits_for_login: true }
    }

    /// Lets it run although the session has not read its login files yet, which then are left to the first that wants them.
    #[must_use]
    pub fn without_login(mut self) -> Self {
        self.waits_for_login = false;
        self
    }

    /// Sets a variable. Names begin with `HOSTEL_`.
    #[must_use]
    pub fn var(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Gives it something to read.
    #[must_use]
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Stdin::Bytes(bytes);
        self
    }

    /// Says how long it may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Says how many bytes it may print before it is stopped.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Runs it where the session stands.
    ///
    /// # Errors
    ///
    /// Fails if it could not be run, ran out of time, or the caller gave up. A program that fails is no error here.
    pub fn run(self, session: &Session, call: &Call) -> Result<Ran, Error> {
        let ran = self.run_in_time(session, call)?;
        match ran.ended {
            Ended::TIMEOUT => Err(Error::new(ErrorKind::TIMEOUT, "it took too long in the environment")),
            _ => Ok(ran),
        }
    }

    /// As [`run`](Self::run), but also returns what was printed by a program whose time ran out.
    ///
    /// # Errors
    ///
    /// Fails if it could not be run, or the caller gave up.
    pub fn run_in_time(self, session: &Session, call: &Call) -> Result<Ran, Error> {
        session.prepare()?;
        let text = format!("printf '\\001hostel:tool\\002'\n{}", self.text);
        // `exec` with a backslash is no alias, and the shell that reads this is gone before ours begins. A session whose `PATH` leads nowhere keeps no
        // tool from working.
        let path = format!("\\command -v sh >/dev/null 2>&1 || export PATH=\"${{PATH-}}:{SYSTEM}\"");
        let command = format!("{path}; \\exec sh -c {}", crate::exec::in_quotes(&text));
        let mut request = ExecRequest::new(command);
        request.env = self.env;
        request.stdin = self.stdin;
        request.keep_nothing();
        if !self.waits_for_login {
            request.skip_login();
        }
        let sink = Arc::new(Sink {
            call: call.unheard(),
            deadline: Instant::now() + self.limit,
            most: self.most,
            taken: Mutex::default(),
        });
        let shared: SharedIo = Arc::<Sink>::clone(&sink);
        let mut outcome = session.execute(request, &shared)?;
        session.tell_later(std::mem::take(&mut outcome.warnings));
        drop(shared);
        let taken = std::mem::take(&mut *sink.taken.lock().unwrap_or_else(PoisonError::into_inner));
        if outcome.ended == Ended::INTERRUPTED && !taken.cut {
            return Err(Error::new(ErrorKind::CANCELLED, "the call was cancelled"));
        }
        let output = printed(taken.bytes);
        Ok(Ran { output, cut: taken.cut, exit_code: outcome.exit_code, ended: outcome.ended })
    }
}

/// Where the programs of every system are.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns what stands behind the beginning.
fn printed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = BEGINNING.as_bytes();
    if let Some(at) = bytes.windows(mark.len()).position(|window| window == mark) {
        bytes.drain(..at + mark.len());
    }
    bytes
}

#[derive(Default)]
struct Taken {
    bytes: Vec<u8>,
    cut: bool,
}

/// Collects what a program prints.
struct Sink {
    call: Call,
    deadline: Instant,
    most: usize,
    taken: Mutex<Taken>,
}

impl ExecIo for Sink {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (self.most + BEGINNING.len()).saturating_sub(taken.bytes.len());
        taken.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if bytes.len() > room {
            taken.cut = true;
            return Flow::Stop;
        }
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.call.cancel_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_beginning_is_not_the_programs() {
        assert_eq!(printed(b"welcome\n\x01hostel:tool\x02abc\n".to_vec()), b"abc\n");
        assert_eq!(printed(b"sh: not found\n".to_vec()), b"sh: not found\n");
    }
}
