//! `hostel tool`: one call of one tool, as an agent would make it.

use std::io::Read;

use clap::Args;
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::asking;
use super::failure::{FAILED, Failure};
use super::print::{Out, say};
use crate::embedded::Host;
use crate::tools::{self, AnyTool, Call};
use crate::world::Options;

/// The most that is read of arguments, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hostel tool --list\n  hostel tool --list --schema\n  hostel tool terminal --json '{\"command\": \"make\"}'\n  \
    hostel tool read_file --json '{\"path\": \"src/main.rs\", \"offset\": 10}' --task build\n  \
    printf '{\"path\": \"a.txt\"}' | hostel tool read_file --json -\n\n\
    What `approvals.tools` names is asked about on the terminal, or else waits for `hostel approvals`.\n\n\
    Exit codes: 0 done, 1 the call failed (the result's `error` says why), 2 wrong usage"
)]
pub(super) struct Tool {
    /// The tool
    #[arg(value_name = "NAME", required_unless_present = "list", conflicts_with = "list")]
    name: Option<String>,
    /// Its arguments, a JSON object; `-` reads them from standard input
    #[arg(long, value_name = "OBJECT", default_value = "{}")]
    json: String,
    /// Name the session in whose environment it acts
    #[arg(long, value_name = "NAME", default_value = "default")]
    task: String,
    /// Use this backend instead of `terminal.backend`
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// List the tools
    #[arg(long)]
    list: bool,
    /// Print each tool's description and JSON schemas
    #[arg(long, requires = "list")]
    schema: bool,
}

pub(super) fn run(arguments: &Tool, out: &mut Out) -> Result<u8, Failure> {
    match &arguments.name {
        None => list(arguments.schema, out),
        Some(name) => call(name, arguments, out),
    }
}

fn list(schema: bool, out: &mut Out) -> Result<u8, Failure> {
    if schema {
        let tools: Vec<Value> = tools::all().iter().map(described).collect();
        out.json(&tools)?;
        return Ok(0);
    }
    let mut table = vec![["TOOL", "WHAT IT IS FOR"].map(str::to_owned).to_vec()];
    table.extend(tools::all().iter().map(|tool| vec![tool.name.to_owned(), tool.title.to_owned()]));
    out.table(&table)?;
    Ok(0)
}

fn described(tool: &AnyTool) -> Value {
    let effects = tool.effects;
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema(),
        "output_schema": tool.output_schema(),
        "annotations": {
            "read_only": effects.read_only,
            "destructive": effects.destructive,
            "idempotent": effects.idempotent,
            "open_world": effects.open_world,
        },
    })
}

fn call(name: &str, arguments: &Tool, out: &mut Out) -> Result<u8, Failure> {
    if !tools::all().iter().any(|tool| tool.name == name) {
        return Err(Failure::new(format!("there is no tool `{}`", name.escape_debug()))
            .with_hint("`hostel tool --list` shows all"));
    }
    let object = object(&arguments.json)?;
    let host = Host::open(Options { home: None, backend: arguments.backend.clone() })?;
    for remark in &host.world().remarks {
        say("warning", remark);
    }
    let session = host.session(&arguments.task)?;
    let failed = |error: std::io::Error| Failure::new(format!("failed to start the call: {error}"));
    let mut call = Call::new().map_err(failed)?;
    if let Some(asker) = asking::asker() {
        call = call.with_asker(asker);
    }
    call.cancel().on_signals(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(failed)?;
    let answer = tools::call(&session, name, Value::Object(object), &call);
    call.cancel().over();
    for line in session.untold().into_iter().chain(host.close()) {
        say("warning", &line);
    }
    out.json(&answer.value)?;
    Ok(if answer.is_error() { FAILED } else { 0 })
}

/// Reads the arguments of a call.
fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut read = String::new();
    let text = if text == "-" {
        let taken = std::io::stdin().lock().take(LONGEST).read_to_string(&mut read);
        taken.map_err(|error| {
            Failure::new(format!("failed to read the arguments from standard input: {error}"))
                .with_hint("they are a JSON object in UTF-8")
        })?;
        read.as_str()
    } else {
        text
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::new("the arguments of a tool are a JSON object")
            .with_hint("such as `--json '{\"command\": \"ls\"}'`")),
        Err(error) => Err(Failure::new(format!("the arguments of the tool are no JSON: {error}"))
            .with_hint("put the object in single quotes, or pass it on standard input with `--json -`")),
    }
}
