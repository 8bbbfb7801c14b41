//! A program that is spoken with while it runs.
//!
//! What a test does next often depends on how far a command is, and the surest sign of that is what it prints. So a test waits
//! for a text before it types, sends a signal, or looks; and one that never comes is a failure, not a test that hangs.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::Ran;
use crate::marked::PATIENCE;

/// A program that runs, with its input and output in our hands. It is killed when this is dropped.
pub struct Conversation {
    child: Child,
    stderr: File,
    begun: Instant,
    heard: Vec<u8>,
    /// Where what was not waited for yet begins.
    next: usize,
}

impl Conversation {
    /// Starts a program.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    #[must_use]
    pub fn begin(mut command: Command) -> Self {
        // In a file, whose end nobody can hold open.
        let stderr = tempfile::tempfile().expect("a temporary file");
        let theirs = stderr.try_clone().expect("a descriptor");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(theirs).spawn();
        let child = child.expect("a program starts");
        Self { child, stderr, begun: Instant::now(), heard: Vec::new(), next: 0 }
    }

    /// Waits until it has printed this, after what was waited for before.
    ///
    /// # Panics
    ///
    /// Panics if it ends before, or does not print it.
    #[track_caller]
    pub fn hear(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let until = Instant::now() + PATIENCE;
        loop {
            let fresh = &self.heard[self.next..];
            if let Some(at) = fresh.windows(text.len()).position(|window| window == text) {
                self.next += at + text.len();
                return;
            }
            let came = self.read(until);
            assert!(
                came == Some(true),
                "{:?} did not come: {:?}",
                String::from_utf8_lossy(text),
                self.text()
            );
        }
    }

    /// Waits for the next line that was not waited for yet, but no longer than `limit`, and returns it without its end.
    ///
    /// # Panics
    ///
    /// Panics if it ends before, or does not print one.
    #[track_caller]
    pub fn line(&mut self, limit: Duration) -> Vec<u8> {
        let until = Instant::now() + limit;
        let mut seen = self.next;
        loop {
            if let Some(at) = self.heard[seen..].iter().position(|byte| *byte == b'\n') {
                let line = self.heard[self.next..seen + at].to_vec();
                self.next = seen + at + 1;
                return line;
            }
            seen = self.heard.len();
            let came = self.read(until);
            assert!(came == Some(true), "no line came ({came:?}): {:?} {}", self.text(), self.said());
        }
    }

    /// Returns what it has said on standard error so far.
    ///
    /// # Panics
    ///
    /// Panics if that cannot be read.
    #[must_use]
    pub fn said(&mut self) -> String {
        let mut stderr = Vec::new();
        self.stderr.rewind().expect("a file has a beginning");
        self.stderr.read_to_end(&mut stderr).expect("a file can be read");
        String::from_utf8_lossy(&stderr).into_owned()
    }

    /// Gives it something to read.
    ///
    /// # Panics
    ///
    /// Panics if it reads no more.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is open until the end");
        stdin.write_all(text.as_bytes()).expect("it reads");
    }

    /// Returns its number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// Panics if it is gone.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Returns all that it has printed so far.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    /// Ends its input, and waits for its end.
    ///
    /// # Panics
    ///
    /// Panics if it does not end.
    #[track_caller]
    #[must_use]
    pub fn finish(mut self) -> Ran {
        drop(self.child.stdin.take());
        let until = Instant::now() + PATIENCE;
        loop {
            match self.read(until) {
                Some(true) => {}
                Some(false) => break,
                None => panic!("it does not end: {:?}", self.text()),
            }
        }
        let status = self.child.wait().expect("a program ends");
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: std::mem::take(&mut self.heard),
            stderr: self.said(),
            took: self.begun.elapsed(),
        }
    }

    /// Reads on. Returns whether something came; None if the time is up.
    fn read(&mut self, until: Instant) -> Option<bool> {
        let stdout = self.child.stdout.as_mut().expect("it is open until the end");
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(stdout, PollFlags::IN)], left.as_ref()) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
        let mut buffer = [0; 16 * 1024];
        let count = stdout.read(&mut buffer).expect("a pipe can be read");
        self.heard.extend_from_slice(&buffer[..count]);
        Some(count > 0)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // It may have ended, and then neither does anything.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
