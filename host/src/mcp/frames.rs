//! Messages on standard input and output, a line each.
//!
//! Reading and writing are done by a thread each: the descriptors may be shared with programs that expect them to block. A
//! line that is no message is answered with what is wrong with it, and is no reason to end. At the end of the input nothing more can be asked
//! for, but what was asked for may still be answered: so the end comes in steps, and the connection stays open until all calls
//! have ended.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::cancel::Calls;
use super::in_use::{InUse, REFUSAL};
use super::message::{parse, wrong};

/// The longest line, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How many messages wait in each direction.
const WAITING: usize = 64;

/// How long calls have to end by themselves once no more is asked for: whoever pipes in a few requests wants the answers. Clients
/// send a signal after as long.
const GRACE: Duration = Duration::from_secs(2);

/// How long what was said last has to be read once all is over.
const LAST: Duration = Duration::from_millis(500);

/// One message on its way out, and who hears whether it went.
struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

/// Both directions, and their end. Cheap to clone.
#[derive(Clone)]
pub(super) struct Frames {
    incoming: Arc<Mutex<mpsc::Receiver<ClientJsonRpcMessage>>>,
    outgoing: mpsc::Sender<Outgoing>,
    /// The requests that are not answered.
    asked: Arc<Asked>,
    /// The client does not ask for more, or cannot be answered.
    gone: CancellationToken,
    /// Nothing is said any more.
    quiet: CancellationToken,
    /// All calls have ended.
    over: CancellationToken,
}

impl Frames {
    /// Begins to read and write.
    ///
    /// # Errors
    ///
    /// Fails if there can be no further thread.
    pub(super) fn start(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (read, incoming) = mpsc::channel(WAITING);
        let (outgoing, write) = mpsc::channel(WAITING);
        let [gone, quiet, over] = std::array::from_fn(|_| CancellationToken::new());
        let (replies, asked) = (outgoing.downgrade(), Arc::<Asked>::default());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let noting = Arc::clone(&asked);
        thread("frames-in").spawn(move || reading(input, &read, &replies, &noting))?;
        let broken = gone.clone();
        thread("frames-out").spawn(move || writing(output, write, &broken))?;
        let incoming = Arc::new(Mutex::new(incoming));
        Ok(Self { incoming, outgoing, asked, gone, quiet, over })
    }

    /// Waits for the end of the input, a broken output, or `stop`, ends `calls`, and then the connection.
    pub(super) async fn end(self, stop: CancellationToken, calls: Arc<Calls>) {
        tokio::select! {
            () = self.gone.cancelled() => {
                tokio::select! {
                    () = self.asked.answered_within(GRACE) => {}
                    () = stop.cancelled() => {}
                }
                // A client that has left takes an answer to what it left behind for a fault.
                self.quiet.cancel();
            }
            () = stop.cancelled() => {}
        }
        calls.end().await;
        self.over.cancel();
    }
}

/// The requests that are not answered.
#[derive(Default)]
struct Asked {
    in_use: Arc<InUse>,
    open: std::sync::Mutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Asked {
    /// Notes what a message asks for, or takes back.
    ///
    /// # Errors
    ///
    /// Fails with the answer if its number is in use.
    fn note(&self, message: &mut ClientJsonRpcMessage) -> Result<(), Box<ServerJsonRpcMessage>> {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let Some(held) = self.in_use.take(&request.id, true) else {
                    return Err(wrong(ErrorCode::INVALID_REQUEST, REFUSAL, Some(request.id.clone())));
                };
                self.open().insert(request.id.clone());
                // It goes where the request goes, and is dropped with it.
                request.request.extensions_mut().insert(Arc::new(held));
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(taken_back) = &notification.notification
                    && let Some(id) = &taken_back.params.request_id
                {
                    self.over(id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes that a request was answered, or will never be.
    fn over(&self, id: &RequestId) {
        self.in_use.answered(id);
        self.open().remove(id);
        self.changed.notify_waiters();
    }

    /// Waits until all requests are answered, but no longer than `limit`.
    async fn answered_within(&self, limit: Duration) {
        let answered = async {
            loop {
                // Registered before it is looked, so that nothing falls in between.
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if self.open().is_empty() {
                    return;
                }
                changed.await;
            }
        };
        // What is not answered by then is cancelled.
        let _ = tokio::time::timeout(limit, answered).await;
    }

    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport<RoleServer> for Frames {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let Self { outgoing, asked, quiet, over, .. } = self.clone();
        async move {
            if quiet.is_cancelled() {
                return Ok(());
            }
            let answers = match &item {
                ServerJsonRpcMessage::Response(answer) => Some(answer.id.clone()),
                ServerJsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            // Before the client can have it, and use its number again.
            if let Some(id) = &answers {
                asked.in_use.answered(id);
            }
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let deliver = async {
                let (written, done) = oneshot::channel();
                outgoing.send(Outgoing { line: line(&item)?, written }).await.map_err(|_| gone())?;
                done.await.unwrap_or_else(|_| Err(gone()))
            };
            let given_up = async {
                over.cancelled().await;
                sleep(LAST).await;
            };
            let outcome = tokio::select! {
                outcome = deliver => outcome,
                () = given_up => Err(gone()),
            };
            if let Some(id) = answers {
                asked.over(&id);
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut incoming = self.incoming.lock().await;
        let message = tokio::select! {
            message = incoming.recv() => message,
            () = self.over.cancelled() => return None,
        };
        let Some(message) = message else {
            self.gone.cancel();
            self.over.cancelled().await;
            return None;
        };
        Some(message)
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads lines to the end.
fn reading(
    input: impl Read,
    read: &mpsc::Sender<ClientJsonRpcMessage>,
    replies: &mpsc::WeakSender<Outgoing>,
    asked: &Asked,
) {
    let mut input = BufReader::with_capacity(64 * 1024, input);
    loop {
        let wrong = match next(&mut input, LONGEST) {
            Ok(None) => return,
            Ok(Some(line)) => match parse(&line) {
                Ok(Some(mut message)) => match asked.note(&mut message) {
                    Ok(()) if read.blocking_send(message).is_err() => return,
                    Ok(()) => continue,
                    Err(wrong) => wrong,
                },
                Ok(None) => continue,
                Err(wrong) => wrong,
            },
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                wrong(ErrorCode::INVALID_REQUEST, format!("the message is longer than {LONGEST} bytes"), None)
            }
            Err(error) => {
                tracing::warn!(%error, "failed to read from the client");
                return;
            }
        };
        let (written, _) = oneshot::channel();
        if let (Ok(line), Some(replies)) = (line(&wrong), replies.upgrade())
            && replies.blocking_send(Outgoing { line, written }).is_err()
        {
            return;
        }
    }
}

/// Reads a line without its end. None at the end of the input, whose last line need not be ended. A line that is too long is passed over, and is an error.
fn next(input: &mut impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(longest).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == longest {
        while !input.fill_buf()?.is_empty() {
            let part = input.fill_buf()?;
            let (used, ended) =
                part.iter().position(|byte| *byte == b'\n').map_or((part.len(), false), |at| (at + 1, true));
            input.consume(used);
            if ended {
                break;
            }
        }
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(line))
}

/// Writes lines until nobody sends any, or nobody takes them.
fn writing(mut output: impl Write, mut write: mpsc::Receiver<Outgoing>, broken: &CancellationToken) {
    while let Some(Outgoing { line, written }) = write.blocking_recv() {
        let done = output.write_all(&line).and_then(|()| output.flush());
        if done.is_err() {
            broken.cancel();
        }
        // Who sent it may have been cancelled.
        let _ = written.send(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_out_and_too_long_ones_passed_over() {
        let mut input = BufReader::with_capacity(3, &b"ab\n\n0123456789\ncd\nef"[..]);
        assert_eq!(next(&mut input, 10).unwrap(), Some(b"ab\n".to_vec()));
        assert_eq!(next(&mut input, 10).unwrap(), Some(b"\n".to_vec()));
        assert_eq!(next(&mut input, 10).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(next(&mut input, 10).unwrap(), Some(b"cd\n".to_vec()));
        assert_eq!(next(&mut input, 10).unwrap(), Some(b"ef".to_vec()));
        assert_eq!(next(&mut input, 10).unwrap(), None);
    }
}
