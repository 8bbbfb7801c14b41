//! Asks the person behind a client, in a form that the client shows them.
//!
//! The question comes up on the thread of a call, which waits for the answer; the request that the call belongs to carries it to the
//! client. Up to the protocol of 2025-11-25 the server asks while the request is open. From that of 2026-07-28 on, the request
//! is answered with the question, and the client makes it once more with the answer. Both use the form that is made and read here.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, ErrorData, RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::tools::{Asked, Asker, Choice, Question, Reply};

/// The most characters of a person's reason.
const LONGEST_REASON: usize = 1000;

/// A question on its way to a client.
pub(super) struct Ask {
    /// What is asked.
    pub(super) question: Question,
    /// How long is left to answer it.
    pub(super) until: Instant,
    asked: Arc<Mutex<Asked>>,
    /// Wakes whoever waits, also when this is dropped without an answer.
    _waiting: PipeWriter,
}

impl Ask {
    /// Hands over the answer.
    pub(super) fn answer(self, reply: Reply) {
        let offered = reply.choice == Choice::Deny || self.question.choices.contains(&reply.choice);
        self.end(Asked::Answered(if offered { reply } else { Reply::deny() }));
    }

    /// Hands over what came of it.
    pub(super) fn settle(self, asked: Asked) {
        match asked {
            Asked::Answered(reply) => self.answer(reply),
            other => self.end(other),
        }
    }

    fn end(self, asked: Asked) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    }
}

/// Asks the client of one request.
pub(super) struct Elicit(mpsc::UnboundedSender<Ask>);

impl Elicit {
    /// Returns one, and where its questions come out.
    pub(super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Ask>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Asker for Elicit {
    fn ask(&self, question: &Question, limit: Duration, cancel: BorrowedFd<'_>) -> Asked {
        let (Some(until), Ok((answered, waiting))) = (Instant::now().checked_add(limit), io::pipe()) else {
            return Asked::Nobody;
        };
        let asked = Arc::new(Mutex::new(Asked::Unanswered));
        let ask = Ask { question: question.clone(), until, asked: Arc::clone(&asked), _waiting: waiting };
        if self.0.send(ask).is_err() {
            return Asked::Unanswered;
        }
        wait(answered.as_fd(), cancel, until);
        std::mem::replace(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner), Asked::Unanswered)
    }
}

/// Waits until one of the two is readable, or the time is up.
fn wait(answered: BorrowedFd<'_>, cancel: BorrowedFd<'_>, until: Instant) {
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(answered, PollFlags::IN),
            PollFd::from_borrowed_fd(cancel, PollFlags::IN),
        ];
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Returns whether a client can show forms.
pub(super) fn is_possible(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // Who names no kind has forms.
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks a client while its request is open. The question is withdrawn where the wait is given up.
pub(super) async fn ask(peer: &Peer<RoleServer>, ask: &Ask) -> Asked {
    let Ok(form) = form(&ask.question) else { return Asked::Nobody };
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(ask.until.saturating_duration_since(Instant::now()));
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let handle = match peer.send_request_with_option(request, options).await {
        Ok(handle) => handle,
        Err(error) => return unanswered(&error),
    };
    let mut open = Open(Some((peer.clone(), handle.id.clone())));
    let answer = handle.await_response().await;
    open.0 = None;
    match answer {
        Ok(ClientResult::ElicitResult(result)) => Asked::Answered(read(&result)),
        // It was an answer, but no yes.
        Ok(_) => Asked::Answered(Reply::deny()),
        Err(error) => unanswered(&error),
    }
}

fn unanswered(error: &ServiceError) -> Asked {
    tracing::debug!(%error, "the client did not answer a question");
    match error {
        // It says that it can ask, and cannot.
        ServiceError::McpError(_) => Asked::Nobody,
        _ => Asked::Unanswered,
    }
}

/// A question that a client has not answered.
struct Open(Option<(Peer<RoleServer>, RequestId)>);

impl Drop for Open {
    fn drop(&mut self) {
        let (Some((peer, id)), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        let over = CancelledNotificationParam::new(Some(id), Some("the call has ended".into()));
        // The client may be gone.
        runtime.spawn(async move { peer.notify_cancelled(over).await.ok() });
    }
}

/// Returns the form that asks `question`.
///
/// # Errors
///
/// Fails if the form is none, which would be our own fault.
pub(super) fn form(question: &Question) -> Result<ElicitRequestParams, ErrorData> {
    let mut choices = question.choices.clone();
    if !choices.contains(&Choice::Deny) {
        choices.push(Choice::Deny);
    }
    let names: Vec<&str> = choices.iter().map(|choice| choice.as_str()).collect();
    let meanings: Vec<String> =
        choices.iter().map(|choice| format!("{}: {}", choice.as_str(), meaning(*choice))).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "choice": {
                "type": "string",
                "title": "Allow it?",
                "description": meanings.join("; "),
                "enum": names,
            },
            "reason": {
                "type": "string",
                "title": "Reason",
                "description": "Told to the agent",
                "maxLength": LONGEST_REASON,
            },
        },
        "required": ["choice"],
    });
    let schema = serde_json::from_value::<ElicitationSchema>(schema)
        .map_err(|error| ErrorData::internal_error(format!("failed to make a form: {error}"), None))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.message.clone(),
        requested_schema: schema,
    })
}

/// Says what a choice means.
fn meaning(choice: Choice) -> &'static str {
    match choice {
        Choice::Once => "this time",
        Choice::Session => "until the session ends",
        Choice::Always => "from now on",
        Choice::Deny => "no",
    }
}

/// Reads a form that has come back. What is not clearly a yes is a no.
pub(super) fn read(result: &ElicitResult) -> Reply {
    let text = |name: &str| result.content.as_ref()?.get(name)?.as_str();
    let reason = text("reason").map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| reason.chars().take(LONGEST_REASON).collect());
    let accepted = result.action == ElicitationAction::Accept;
    let choice = text("choice").and_then(Choice::parse).filter(|_| accepted).unwrap_or(Choice::Deny);
    Reply { choice, reason }
}

/// As [`read`], for a form that comes back with a request.
pub(super) fn read_value(result: &Value) -> Reply {
    serde_json::from_value(result.clone()).map_or_else(|_| Reply::deny(), |result| read(&result))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::exec::Cancel;

    fn question() -> Question {
        Question { message: "run `rm`?".into(), choices: vec![Choice::Once, Choice::Session] }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let reply = |value: Value| read_value(&value).choice;
        assert_eq!(reply(json!({"action": "accept", "content": {"choice": "always"}})), Choice::Always);
        for no in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"choice": "yes"}}),
            json!({"action": "accept", "content": {"choice": true}}),
            json!({"action": "decline", "content": {"choice": "once"}}),
            json!({"action": "cancel"}),
            json!({"choice": "once"}),
            json!(null),
        ] {
            assert_eq!(reply(no.clone()), Choice::Deny, "{no}");
        }
        let denied =
            read_value(&json!({"action": "accept", "content": {"choice": "deny", "reason": " not now "}}));
        assert_eq!(denied.reason.as_deref(), Some("not now"));
    }

    #[test]
    fn the_form_offers_what_may_be_answered() {
        let form = serde_json::to_value(form(&question()).unwrap()).unwrap();
        assert_eq!(form["mode"], "form");
        assert_eq!(
            form["requestedSchema"]["properties"]["choice"]["enum"],
            json!(["once", "session", "deny"])
        );
        assert_eq!(form["requestedSchema"]["required"], json!(["choice"]));
        let about = &form["requestedSchema"]["properties"]["choice"]["description"];
        assert_eq!(about, "once: this time; session: until the session ends; deny: no");
    }

    #[test]
    fn who_waits_gets_the_answer_or_none() {
        let (elicit, mut asks) = Elicit::new();
        let cancel = Arc::new(Cancel::new().unwrap());
        let asking = |limit: Duration| {
            let (elicit, cancel) = (Arc::clone(&elicit), Arc::clone(&cancel));
            thread::spawn(move || elicit.ask(&question(), limit, cancel.as_fd()))
        };
        let long = Duration::from_secs(60);
        let reply = |choice| Reply { choice, reason: None };

        let waiting = asking(long);
        asks.blocking_recv().unwrap().answer(reply(Choice::Once));
        assert_eq!(waiting.join().unwrap(), Asked::Answered(reply(Choice::Once)));

        let waiting = asking(long);
        asks.blocking_recv().unwrap().settle(Asked::Answered(reply(Choice::Always)));
        assert_eq!(waiting.join().unwrap(), Asked::Answered(Reply::deny()), "it was not offered");

        let waiting = asking(long);
        asks.blocking_recv().unwrap().settle(Asked::Nobody);
        assert_eq!(waiting.join().unwrap(), Asked::Nobody);

        let waiting = asking(long);
        drop(asks.blocking_recv());
        assert_eq!(waiting.join().unwrap(), Asked::Unanswered);

        let waiting = asking(Duration::from_millis(20));
        let _unanswered = asks.blocking_recv();
        assert_eq!(waiting.join().unwrap(), Asked::Unanswered);

        let waiting = asking(long);
        let _unanswered = asks.blocking_recv();
        cancel.cancel();
        assert_eq!(waiting.join().unwrap(), Asked::Unanswered);
    }

    #[test]
    fn a_client_that_has_only_addresses_shows_no_forms() {
        let possible = |value: Value| is_possible(Some(&serde_json::from_value(value).unwrap()));
        assert!(possible(json!({"elicitation": {}})));
        assert!(possible(json!({"elicitation": {"form": {}, "url": {}}})));
        assert!(!possible(json!({"elicitation": {"url": {}}})));
        assert!(!possible(json!({})) && !is_possible(None));
    }
}
