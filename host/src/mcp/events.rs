//! Keeps what was sent to clients for a while, so that whoever loses a connection can go on where it was.
//!
//! The library names each event by us, and asks for those behind one that a client has seen. What is kept is bounded: the streams
//! that nothing has happened on for longest go first. A client that comes back too late gets nothing, and must ask again.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{
    EventStore, EventStoreError, EventStream, ServerSseMessage,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// The most bytes that are kept, as counted in JSON.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The most streams that are kept.
const MOST_STREAMS: usize = 4096;

/// How many events wait for a client that reads slowly.
const WAITING: usize = 16;

/// What was sent.
#[derive(Default)]
pub(super) struct Events(Mutex<Streams>);

#[derive(Default)]
struct Streams {
    kept: HashMap<String, Arc<Kept>>,
    bytes: usize,
}

/// One stream.
struct Kept {
    sent: Mutex<Sent>,
    changed: Notify,
}

struct Sent {
    events: VecDeque<ServerSseMessage>,
    bytes: usize,
    /// The answer was sent: nothing comes after it.
    done: bool,
    /// It is not kept any more.
    gone: bool,
    last: Instant,
}

impl Streams {
    /// Drops the streams on which nothing has happened for longest, until what is left is not too much. One stays.
    fn prune(&mut self) {
        while (self.bytes > MOST_BYTES || self.kept.len() > MOST_STREAMS) && self.kept.len() > 1 {
            let oldest =
                self.kept.iter().min_by_key(|(_, kept)| kept.sent().last).map(|(name, _)| name.clone());
            let Some(kept) = oldest.and_then(|name| self.kept.remove(&name)) else { return };
            let mut sent = kept.sent();
            self.bytes = self.bytes.saturating_sub(sent.bytes);
            sent.gone = true;
            drop(sent);
            kept.changed.notify_waiters();
        }
    }
}

impl Kept {
    fn new() -> Arc<Self> {
        let (events, last) = (VecDeque::new(), Instant::now());
        Arc::new(Self {
            sent: Mutex::new(Sent { events, bytes: 0, done: false, gone: false, last }),
            changed: Notify::new(),
        })
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl EventStore for Events {
    async fn store_event(&self, stream: &str, event: &ServerSseMessage) -> Result<String, EventStoreError> {
        let mut event = event.clone();
        let size = event
            .message
            .as_ref()
            .map_or(Ok(0), |message| serde_json::to_vec(message).map(|json| json.len()))?;
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.bytes += size;
        let kept = Arc::clone(streams.kept.entry(stream.to_owned()).or_insert_with(Kept::new));
        let mut sent = kept.sent();
        let name = format!("{stream}/{}", sent.events.len());
        event.event_id = Some(name.clone());
        sent.done = matches!(
            event.message.as_deref(),
            Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
        );
        sent.events.push_back(event);
        sent.bytes += size;
        sent.last = Instant::now();
        drop(sent);
        kept.changed.notify_waiters();
        streams.prune();
        Ok(name)
    }

    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let position =
            last.rsplit_once('/').and_then(|(stream, index)| Some((stream, index.parse::<usize>().ok()?)));
        let (stream, index) = position.ok_or("it is no event of this server's")?;
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Arc::clone(streams.kept.get(stream).ok_or("what came after it is not kept any more")?);
        drop(streams);
        let (sender, receiver) = mpsc::channel(WAITING);
        tokio::spawn(async move { follow(&kept, index + 1, &sender).await });
        Ok(Box::pin(Followed(receiver)))
    }
}

/// Sends the events from number `next` on, until the last, or nobody takes them.
async fn follow(kept: &Kept, mut next: usize, sender: &mpsc::Sender<ServerSseMessage>) {
    loop {
        // Registered before it is looked, so that nothing falls in between.
        let mut changed = std::pin::pin!(kept.changed.notified());
        changed.as_mut().enable();
        let (event, over) = {
            let sent = kept.sent();
            (sent.events.get(next).cloned(), sent.done || sent.gone)
        };
        match event {
            Some(event) => {
                if sender.send(event).await.is_err() {
                    return;
                }
                next += 1;
            }
            None if over => return,
            None => tokio::select! {
                () = changed => {}
                () = sender.closed() => return,
            },
        }
    }
}

/// The events that come out.
struct Followed(mpsc::Receiver<ServerSseMessage>);

impl Stream for Followed {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use rmcp::model::{EmptyResult, RequestId, ServerResult};

    use super::*;

    fn answer() -> ServerSseMessage {
        let result = ServerResult::EmptyResult(EmptyResult {});
        ServerSseMessage::from_message(ServerJsonRpcMessage::response(result, RequestId::Number(1)))
    }

    async fn next(stream: &mut EventStream) -> Option<String> {
        poll_fn(|context| stream.as_mut().poll_next(context)).await.and_then(|event| event.event_id)
    }

    #[test]
    fn who_comes_back_gets_the_rest_and_what_is_yet_to_come() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let events = Events::default();
            let retry = ServerSseMessage::retry(Duration::from_secs(1));
            let first = events.store_event("a", &retry).await.unwrap();
            let other = events.store_event("b", &retry).await.unwrap();
            let second = events.store_event("a", &retry).await.unwrap();
            let mut stream = events.replay_events_after(&first).await.unwrap();
            assert_eq!(next(&mut stream).await, Some(second));
            let last = events.store_event("a", &answer()).await.unwrap();
            assert_eq!(next(&mut stream).await, Some(last.clone()));
            assert_eq!(next(&mut stream).await, None);
            assert_eq!(next(&mut events.replay_events_after(&last).await.unwrap()).await, None);
            assert!(first != other && events.replay_events_after("0").await.is_err());
            assert!(events.replay_events_after("c/0").await.is_err());
        });
    }

    #[test]
    fn what_nothing_has_happened_on_for_longest_goes() {
        let mut streams = Streams::default();
        for number in 0..=MOST_STREAMS {
            let kept = Kept::new();
            kept.sent().last = Instant::now() - Duration::from_secs(number as u64 % 7);
            streams.kept.insert(number.to_string(), kept);
        }
        streams.prune();
        assert_eq!(streams.kept.len(), MOST_STREAMS);
        assert!(!streams.kept.values().any(|kept| kept.sent().gone));
    }
}
