//! `hostel approvals`: a person's answers to what agents have asked for while nobody was there.

use clap::Subcommand;
use serde_json::{Value, json};

use super::failure::Failure;
use super::print::{Out, say, visible};
use crate::home::Home;
use crate::policy::approvals::{ApprovalId, Record, Standing, Store};

/// Every command that Hostel runs has this variable.
const CALL: &str = "HOSTEL_CALL";

/// The most characters of a command in the table.
const SHOWN: usize = 60;

#[derive(Debug, Subcommand)]
pub(super) enum Approvals {
    /// List what waits for an answer
    #[command(after_help = "Example:\n  hostel approvals list --json | jq -r '.[].command'")]
    List {
        /// List what was answered and still counts, too
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow what was asked for, which the agent then asks for again
    #[command(
        after_help = "Without `--session` it is for the same call, once, within a day. With it, it is for every call of the same tool in\n\
                            the same task on the same backend, until that environment is cleaned up or a day has passed;\n\
                            `hostel approvals deny ID` takes it back.\n\n\
                            Examples:\n  hostel approvals allow appr_0123456789ab\n  hostel approvals allow appr_0123456789ab --session"
    )]
    Allow {
        /// The request
        id: String,
        /// For the same call, once (the default)
        #[arg(long, conflicts_with = "session")]
        once: bool,
        /// For every call of its tool in its task
        #[arg(long)]
        session: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse what was asked for, for a day
    #[command(after_help = "Example:\n  hostel approvals deny appr_0123456789ab --reason 'use make clean'")]
    Deny {
        /// The request
        id: String,
        /// Tell this to the agent
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(action: Approvals, out: &mut Out) -> Result<u8, Failure> {
    let store = Store::of(&Home::find()?);
    match action {
        Approvals::List { all, json } => list(&store, all, json, out)?,
        Approvals::Allow { id, session, json, once: _ } => {
            if std::env::var_os(CALL).is_some_and(|call| !call.is_empty()) {
                return Err(Failure::new("a command that Hostel runs cannot allow what agents ask for")
                    .with_hint("run it in a terminal of your own"));
            }
            let standing = if session { Standing::Session } else { Standing::Once };
            answer(&store, &id, standing, None, json, out)?;
        }
        Approvals::Deny { id, reason, json } => {
            answer(&store, &id, Standing::Denied, reason.as_deref(), json, out)?;
        }
    }
    Ok(0)
}

fn list(store: &Store, all: bool, json: bool, out: &mut Out) -> Result<(), Failure> {
    let records = store.list().map_err(|error| unusable(&error))?;
    let records: Vec<Record> =
        records.into_iter().filter(|record| all || record.standing == Standing::Pending).collect();
    if json {
        let rows: Vec<Value> = records.iter().map(|record| shown(record, all)).collect();
        return Ok(out.json(&rows)?);
    }
    if records.is_empty() {
        say("note", "nothing waits for an answer");
        return Ok(());
    }
    let head = ["ID", "STATUS", "TOOL", "TASK", "BACKEND", "WHAT"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    table.extend(records.into_iter().map(|record| {
        let (request, status) = (record.request, record.standing.as_str().to_owned());
        let mut what: String = request.command.chars().take(SHOWN).collect();
        if what.len() < request.command.len() {
            what.push('…');
        }
        vec![record.id.to_string(), status, request.tool, request.task, request.backend, what]
    }));
    out.table(&table)?;
    Ok(())
}

fn answer(
    store: &Store,
    id: &str,
    standing: Standing,
    reason: Option<&str>,
    json: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let known = ApprovalId::parse(id).map(|id| store.answer(&id, standing, reason)).transpose();
    let Some(record) = known.map_err(|error| unusable(&error))?.flatten() else {
        return Err(Failure::new(format!("no request `{}` waits for an answer", id.escape_debug())).with_hint(
            "`hostel approvals list` shows all of this home; one that was used, or is older than a day, is gone",
        ));
    };
    if json {
        return Ok(out.json(&shown(&record, true))?);
    }
    let request = &record.request;
    let place = format!("in task `{}` on `{}`", request.task, request.backend);
    let done = match standing {
        Standing::Session => format!("allowed for the session: {} {place}", request.covers),
        Standing::Denied => format!("refused: this call of `{}` {place}", request.tool),
        Standing::Once | Standing::Pending => {
            format!("allowed once: this call of `{}` {place}", request.tool)
        }
    };
    out.line(&visible(&done))?;
    // Made visible when it was kept.
    for line in request.command.lines().chain(request.details.iter().flat_map(|detail| detail.lines())) {
        out.line(&format!("    {}", visible(line)))?;
    }
    Ok(())
}

/// Returns a request as JSON.
fn shown(record: &Record, with_standing: bool) -> Value {
    let request = &record.request;
    let mut row = json!({
        "id": record.id,
        "command": request.command,
        "reason": request.reason,
        "backend": request.backend,
        "task": request.task,
        "created": record.created,
    });
    if request.tool != "terminal" {
        row["tool"] = request.tool.as_str().into();
    }
    if !request.details.is_empty() {
        row["details"] = json!(request.details);
    }
    if with_standing {
        row["status"] = record.standing.as_str().into();
    }
    row
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to use what is kept of approvals: {error}"))
        .with_hint("it is in `state/approvals` of the home, which `hostel status` shows")
}
