//! Lets a client see what a command prints while it runs.
//!
//! Output comes in pieces of any size at any pace, on the thread of the call, and must hold up neither the command nor the
//! connection. So it is gathered here, and sent on a few times a second: all that has come since the last time. A
//! command that floods is cut: what is told on the way is for watching, and the result has its own limits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The most bytes of output in one message.
const LARGEST: usize = 16 * 1024;

/// The most bytes that wait to be sent. Of more the oldest are left out.
const WAITING: usize = 256 * 1024;

/// The least time between two messages.
const PACE: Duration = Duration::from_millis(50);

/// After how much silence a client is told that the call is still running: some take an answer that does not come in a minute
/// for lost.
const SILENCE: Duration = Duration::from_secs(15);

/// What a call has printed and its client has not seen.
#[derive(Default)]
pub(super) struct Output {
    held: Mutex<Held>,
    bell: Notify,
}

#[derive(Default)]
struct Held {
    bytes: VecDeque<u8>,
    /// How many bytes were left out in front of them.
    left_out: u64,
    /// Nothing more is to come.
    over: bool,
}

impl Output {
    /// Takes some output.
    pub(super) fn take(&self, bytes: &[u8]) {
        let mut held = self.held();
        held.bytes.extend(bytes);
        let over = held.bytes.len().saturating_sub(WAITING);
        if over > 0 {
            held.bytes.drain(..over);
            held.left_out += over as u64;
        }
        drop(held);
        self.bell.notify_one();
    }

    /// Returns the text of the next message, None if there is none yet, and whether nothing is left and nothing will come.
    fn next(&self) -> (Option<String>, bool) {
        let mut held = self.held();
        let over = held.over;
        let bytes = held.bytes.make_contiguous();
        let part = &bytes[..bytes.len().min(LARGEST)];
        let is_last = over && part.len() == bytes.len();
        let whole = part.len() - if is_last { 0 } else { unfinished(part) };
        let mut text = String::from_utf8_lossy(&part[..whole]).into_owned();
        held.bytes.drain(..whole);
        let left_out = std::mem::take(&mut held.left_out);
        if left_out > 0 {
            text.insert_str(0, &format!("[{left_out} bytes left out]\n"));
        }
        let done = over && held.bytes.is_empty();
        (Some(text).filter(|text| !text.is_empty()), done)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many bytes at the end are a character that is not all there yet.
pub(super) fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0).map_or(0, |back| back + 1);
    let character = &bytes[bytes.len() - last..];
    if std::str::from_utf8(character).is_err_and(|error| error.error_len().is_none()) { last } else { 0 }
}

/// Sends what a call prints to its client.
pub(super) struct Pump {
    output: Arc<Output>,
    task: JoinHandle<()>,
}

impl Pump {
    /// Begins to send.
    pub(super) fn start(output: &Arc<Output>, peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        output.held().over = false;
        let theirs = Arc::clone(output);
        Self {
            output: Arc::clone(output),
            task: tokio::spawn(async move { pump(&theirs, &peer, token).await }),
        }
    }

    /// Sends what is left, so that the result comes after it.
    pub(super) async fn finish(mut self) {
        self.output.held().over = true;
        self.output.bell.notify_one();
        // It ends by itself, or the client is gone.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pump(output: &Output, peer: &Peer<RoleServer>, token: ProgressToken) {
    let start = Instant::now();
    let (mut last, mut told) = (start, 0.0);
    loop {
        let (text, done) = output.next();
        if text.is_some() || last.elapsed() >= SILENCE {
            // The seconds that have gone by, and never the same twice.
            told = f64::max(told + 0.001, start.elapsed().as_secs_f64());
            let mut params = ProgressNotificationParam::new(token.clone(), told);
            params.message = text;
            last = Instant::now();
            if peer.notify_progress(params).await.is_err() {
                return;
            }
            if !output.held().over {
                sleep_until(last + PACE).await;
            }
        } else if !done {
            // Woken by output, the end, or the silence.
            let _ = timeout_at(last + SILENCE, output.bell.notified()).await;
        }
        if done {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(output: &Output) -> (Vec<String>, bool) {
        let mut texts = Vec::new();
        loop {
            match output.next() {
                (Some(text), done) => {
                    texts.push(text);
                    if done {
                        return (texts, true);
                    }
                }
                (None, done) => return (texts, done),
            }
        }
    }

    #[test]
    fn what_comes_in_between_is_one_message_and_characters_stay_whole() {
        let output = Output::default();
        output.take(b"a\n\xe2\x82");
        assert_eq!(all(&output), (vec!["a\n".to_owned()], false));
        output.take(b"\xac");
        output.take(b"b");
        assert_eq!(all(&output).0, ["€b"]);
        output.take(b"\xe2\x82");
        assert_eq!(all(&output).0, [""; 0]);
        output.held().over = true;
        assert_eq!(all(&output), (vec!["\u{fffd}".to_owned()], true));
    }

    #[test]
    fn much_is_cut_into_messages_between_characters() {
        let output = Output::default();
        let text = "€".repeat(10_000);
        output.take(b"\xff");
        output.take(text.as_bytes());
        output.held().over = true;
        let (texts, done) = all(&output);
        assert!(done && texts.iter().all(|text| text.len() <= LARGEST + 2));
        assert_eq!(texts.concat(), format!("\u{fffd}{text}"));
    }

    #[test]
    fn a_flood_loses_its_oldest_and_says_so() {
        let output = Output::default();
        output.take(&vec![b'a'; WAITING]);
        output.take(b"bcd");
        output.held().over = true;
        let (texts, _) = all(&output);
        assert!(texts[0].starts_with("[3 bytes left out]\naaa"));
        assert!(texts.last().unwrap().ends_with("abcd"));
    }
}
