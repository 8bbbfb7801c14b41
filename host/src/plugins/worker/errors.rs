//! What a worker says on its standard output and standard error: into the log, and the last of it into the error if it crashes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{ioctl_fionread, retry_on_intr};

use super::masks::Masks;
use super::serve::lock;

/// Lines that are kept.
const LINES: usize = 8;
/// Bytes of one line that are read at a time: a secret that lies across the cut would be shown.
const LONGEST: u64 = 64 << 10;
/// Characters of the last words in a message.
const SHOWN: usize = 400;
/// How long the last words may take to arrive after a crash. A child that was left may hold the pipe.
const LAST: Duration = Duration::from_millis(200);

/// How long what was said before the end of a call may take into the log, when this process is about to end.
const REST: Duration = Duration::from_millis(100);

/// The collector.
pub(super) struct Errors {
    plugin: String,
    masks: Arc<Masks>,
    /// To see whether something stands in it.
    pipe: Option<PipeReader>,
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Default)]
struct Said {
    lines: VecDeque<String>,
    /// Something is taken from the pipe, or was and is no line yet.
    taking: bool,
    ended: bool,
}

impl Errors {
    /// Reads `pipe` on a thread of its own until it ends.
    pub(super) fn collect(plugin: &str, pipe: PipeReader, masks: Arc<Masks>) -> Arc<Self> {
        let errors = Arc::new(Self {
            plugin: plugin.to_owned(),
            masks,
            pipe: pipe.try_clone().ok(),
            said: Mutex::default(),
            changed: Condvar::new(),
        });
        let theirs = Arc::clone(&errors);
        // Without a thread the worker's words are lost, and nothing else.
        let _ = thread::Builder::new().name("worker-stderr".into()).spawn(move || theirs.read(pipe));
        errors
    }

    fn read(&self, pipe: PipeReader) {
        let mut pipe = BufReader::new(pipe);
        loop {
            if pipe.buffer().is_empty() {
                self.wait(pipe.get_ref());
            }
            let mut line = Vec::new();
            let read = pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                break;
            }
            let line = self.clean(&line);
            if line.is_empty() {
                continue;
            }
            tracing::info!(target: "plugin", plugin = self.plugin, "{line}");
            let mut said = lock(&self.said);
            if said.lines.len() == LINES {
                said.lines.pop_front();
            }
            said.lines.push_back(line);
        }
        lock(&self.said).ended = true;
        self.changed.notify_all();
    }

    /// Waits until something can be read. What is taken from the pipe after this is told to be on its way.
    fn wait(&self, pipe: &PipeReader) {
        lock(&self.said).taking = false;
        self.changed.notify_all();
        // An error shows again where it is read.
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(pipe, PollFlags::IN)], None));
        lock(&self.said).taking = true;
    }

    /// Waits a little until all that was said up to now stands in the log.
    pub(super) fn settle(&self) {
        let stands =
            || self.pipe.as_ref().is_some_and(|pipe| ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0));
        let on_its_way = |said: &mut Said| !said.ended && (said.taking || stands());
        // Who leaves a line unfinished is not waited for any longer.
        let _ = self.changed.wait_timeout_while(lock(&self.said), REST, on_its_way);
    }

    /// Makes a line fit to be shown.
    fn clean(&self, line: &[u8]) -> String {
        let text = self.masks.hide(&String::from_utf8_lossy(line));
        text.trim().chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
    }

    /// Returns the last lines as one, once the worker has ended.
    pub(super) fn last_words(&self) -> Option<String> {
        let said = lock(&self.said);
        let (said, _) = self
            .changed
            .wait_timeout_while(said, LAST, |said| !said.ended)
            .unwrap_or_else(PoisonError::into_inner);
        let text = said.lines.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        let skip = text.chars().count().saturating_sub(SHOWN);
        let text: String = text.chars().skip(skip).collect();
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_secrets_and_control_characters() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let errors = Errors::collect("p", reader, Arc::new(Masks::of(["s3cret".into(), "x".into()])));
        for number in 0..20 {
            writeln!(writer, "line {number}").unwrap();
        }
        write!(writer, "\n\u{1b}[31mtoken s3cret, x\n{}\n", "y".repeat(2000)).unwrap();
        drop(writer);
        let words = errors.last_words().unwrap();
        assert!(words.ends_with("yyyy") && words.chars().count() == SHOWN, "{words}");
        let lines = lock(&errors.said);
        assert_eq!(lines.lines.len(), LINES);
        assert!(lines.lines.iter().any(|line| line == " [31mtoken ***, x"), "{:?}", lines.lines);
    }

    #[test]
    fn what_was_said_is_settled_while_the_pipe_stays_open() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let errors = Errors::collect("p", reader, Arc::default());
        for number in 0..100 {
            writeln!(writer, "line {number}").unwrap();
            errors.settle();
            assert_eq!(lock(&errors.said).lines.back(), Some(&format!("line {number}")));
        }
    }
}
