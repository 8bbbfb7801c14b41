//! One call of a tool, from the side of the connection.
//!
//! The tool runs on a thread, for as long as its command does. The request that began it usually waits for its end, but
//! where a person has to be asked it may be answered before, and another request goes on with the call.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::elicit::{Ask, Elicit};
use super::progress::Output;
use super::runtime::CALLS;
use super::session::Client;
use crate::exec::Cancel;
use crate::tools::{self, Answer, Call};

/// Where calls wait of which there are too many at once.
static ROOM: Semaphore = Semaphore::const_new(CALLS);

/// A call that has begun.
pub(super) struct Running {
    thread: JoinHandle<Answer>,
    answer: Option<Answer>,
    asks: mpsc::UnboundedReceiver<Ask>,
    output: Arc<Output>,
    cancel: Arc<Cancel>,
}

/// What a call comes to next.
pub(super) enum Came {
    /// It has ended.
    Answer(Answer),
    /// It waits for a person.
    Ask(Ask),
}

impl Running {
    /// Begins a call. `can_ask` says whether its client can show a form, and `is_heard` whether anybody may want to see what it prints.
    ///
    /// # Errors
    ///
    /// Fails if the process has no descriptors left.
    pub(super) fn start(
        client: &Arc<Client>,
        name: &'static str,
        arguments: Value,
        can_ask: bool,
        is_heard: bool,
    ) -> io::Result<Self> {
        let output = Arc::<Output>::default();
        let (elicit, asks) = Elicit::new();
        let mut call = Call::new()?;
        if is_heard {
            let heard = Arc::clone(&output);
            call = call.with_listener(Arc::new(move |bytes| heard.take(bytes)));
        }
        if can_ask {
            call = call.with_asker(elicit);
        }
        let cancel = Arc::clone(call.cancel());
        // Counted from now on: it may have to wait for a thread.
        let flight = client.calls.begin(&cancel);
        let client = Arc::clone(client);
        let work = move || {
            let _flight = flight;
            if call.is_cancelled() {
                return failed("the call was cancelled before it began");
            }
            tools::call(&client.session, name, arguments, &call)
        };
        let thread = tokio::spawn(async move {
            // It is never closed.
            let _room = ROOM.acquire().await;
            answer(spawn_blocking(work).await)
        });
        Ok(Self { thread, answer: None, asks, output, cancel })
    }

    /// Waits for what comes next. Nothing is lost if it is not waited for to the end.
    pub(super) async fn next(&mut self) -> Came {
        if let Some(answer) = self.answer.take() {
            return Came::Answer(answer);
        }
        tokio::select! {
            biased;
            Some(ask) = self.asks.recv() => Came::Ask(ask),
            ended = &mut self.thread => Came::Answer(answer(ended)),
        }
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) {
        if self.answer.is_none() {
            self.answer = Some(answer((&mut self.thread).await));
        }
    }

    /// What it prints.
    pub(super) fn output(&self) -> &Arc<Output> {
        &self.output
    }

    /// What cancels it.
    pub(super) fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }
}

fn answer(ended: Result<Answer, JoinError>) -> Answer {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "a tool panicked");
        failed("the tool panicked, which is a fault of Hostel's; what it was doing may be done in part")
    })
}

fn failed(message: &str) -> Answer {
    Answer { value: json!({ "error": message }) }
}
