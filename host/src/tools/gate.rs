//! Where a call waits for a person's yes, if it needs one.
//!
//! Every call of every tool comes through here, whichever face it came by and whether an agent or a script made it. The rules
//! (`policy/approvals`) say which calls need a person. One who is there is asked; where nobody is, the call is refused for now, and its answer
//! tells how it can be allowed.

use std::sync::PoisonError;

use serde_json::Value;

use super::ask::{Asked, Choice, Question, Reply};
use super::call::Call;
use super::session::Session;
use super::shown::Shown;
use super::tool::Failure;
use crate::policy::approvals::{Answer, Request, Store, Verdict, line};

/// The member of a result that says that a call was not allowed.
pub(super) const STATUS: &str = "status";

/// The member of a result that names the request to a person.
pub(super) const APPROVAL_ID: &str = "approval_id";

/// What the results of all tools may have, and what an agent is told of it.
pub(super) const MEMBERS: [(&str, &str); 2] = [
    (
        STATUS,
        "`blocked`: it was not allowed. `pending_approval`: a person must allow it first, and `error` says how.",
    ),
    (APPROVAL_ID, "With `pending_approval`: the request, as a person finds it with `hostel approvals`."),
];

/// What an agent is not to do about a no.
const NO_WAY_ROUND: &str = "do not try the same in another way or with another tool";

/// Why a call is not made.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: &'static str,
    pub(super) failure: Failure,
    pub(super) approval_id: Option<String>,
}

/// Returns once a call may be made.
///
/// # Errors
///
/// Fails with the reason if it may not.
pub(super) fn pass(
    session: &Session,
    tool: &'static str,
    arguments: &Value,
    call: &Call,
) -> Result<(), Refusal> {
    let concern = match session.rules().judge(tool) {
        Verdict::Pass => return Ok(()),
        Verdict::Refuse(concern) => {
            return Err(blocked(
                format!(
                    "`{tool}` may not be used: it needs a person's yes ({}), and nobody is asked since `approvals.mode` is `deny`",
                    concern.reason
                ),
                "go on without it, or tell the user",
            ));
        }
        Verdict::Ask(concern) => concern,
    };
    let allowed = || session.memory.allowed.lock().unwrap_or_else(PoisonError::into_inner);
    if allowed().contains(&concern.scope) {
        return Ok(());
    }
    let place = (session.entry().name(), session.task());
    let request = Request::new(place, tool, arguments, concern, Shown::new(session).secrets());
    let store = Store::of(&session.world().home);
    match store.consult(&request).map_err(|error| unusable(tool, &error))? {
        Answer::Yes => return Ok(()),
        Answer::No(reason) => return Err(refused(tool, reason.as_deref())),
        Answer::None => {}
    }
    let asked = ask(session, &request, call);
    if call.is_cancelled() {
        return Err(blocked(
            format!("this call of `{tool}` was cancelled while a person was asked, and nothing was done"),
            "call it again if it is still wanted",
        ));
    }
    let reply = match asked {
        Asked::Nobody => return Err(pend(&store, &request)),
        Asked::Unanswered => return Err(unanswered(session, tool)),
        Asked::Answered(reply) => reply,
    };
    let for_session = reply.choice == Choice::Session;
    let kept = for_session && asker_is_for_all_programs(session, call);
    // A yes must not fail for what only later calls would need.
    if let Err(error) = store.settle(&request, kept) {
        tracing::warn!(%error, "an answer could not be kept");
    }
    match reply {
        Reply { choice: Choice::Once, .. } => Ok(()),
        Reply { choice: Choice::Session, .. } => {
            allowed().insert(request.scope);
            Ok(())
        }
        // `always` was not offered, and what is not clearly a yes is a no.
        Reply { choice: Choice::Always | Choice::Deny, reason } => Err(refused(tool, reason.as_deref())),
    }
}

/// Asks whoever is behind the call, or else behind the session.
fn ask(session: &Session, request: &Request, call: &Call) -> Asked {
    let question =
        Question { message: request.question(), choices: vec![Choice::Once, Choice::Session, Choice::Deny] };
    let patience = session.rules().patience();
    match (call.asker(), session.asker()) {
        (None, Some(asker)) => asker.ask(&question, patience, call.cancel_fd()),
        _ => call.ask(&question, patience),
    }
}

fn asker_is_for_all_programs(session: &Session, call: &Call) -> bool {
    call.asker().or(session.asker()).is_some_and(|asker| asker.is_for_all_programs())
}

/// Keeps the request of a call that nobody can be asked about.
fn pend(store: &Store, request: &Request) -> Refusal {
    let tool = &request.tool;
    match store.ask(request) {
        Ok(id) => Refusal {
            status: "pending_approval",
            failure: Failure::new(format!(
                "this call of `{tool}` needs a person's yes, and nobody can be asked from here: ask the user to run \
                 `hostel approvals allow {id}`, then make the same call again, with the same arguments"
            ))
            .with_hint(format!("until then it is not made; {NO_WAY_ROUND}")),
            approval_id: Some(id.to_string()),
        },
        Err(error) => unusable(tool, &error),
    }
}

fn refused(tool: &str, reason: Option<&str>) -> Refusal {
    let reason = reason.map(line).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    blocked(
        format!("a person refused this call of `{tool}`{reason}; {NO_WAY_ROUND}"),
        "go on without it, or ask the user what to do instead",
    )
}

fn unanswered(session: &Session, tool: &str) -> Refusal {
    let seconds = session.rules().patience().as_secs_f64();
    blocked(
        format!(
            "nobody has answered whether this call of `{tool}` may be made (there are {seconds} s for that), which is a no; \
             {NO_WAY_ROUND}"
        ),
        "go on without it, or call it again when the user is there",
    )
}

fn unusable(tool: &str, error: &std::io::Error) -> Refusal {
    blocked(
        format!(
            "this call of `{tool}` needs a person's yes, and what is kept of that cannot be used: {error}"
        ),
        "tell the user: it is in `state/approvals` of Hostel's home",
    )
}

fn blocked(message: String, hint: &str) -> Refusal {
    Refusal { status: "blocked", failure: Failure::new(message).with_hint(hint), approval_id: None }
}
