//! `hostel process`.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::json;

use super::exec::variables;
use super::failure::{FAILED, Failure};
use super::print::{Out, say};
pub(super) use super::process_args::Process;
use super::process_args::{Ends, One, Start};
use super::process_log;
use crate::exec::{Size, exit_code_of, join};
use crate::home::Home;
use crate::processes::{Event, KillStatus, ProcessError, Processes, StartRequest, Started, View, WaitStatus};

/// Wrong usage.
const USAGE: u8 = 2;

/// Exit codes of `wait`: its own time was up, Hostel does not know how the process ended, a signal ended the waiting.
const TIMED_OUT: u8 = 124;
const UNKNOWN: u8 = 125;
const INTERRUPTED: u8 = 130;

/// The most of our input that is handed over at once.
const PIECE: usize = 64 * 1024;

impl From<ProcessError> for Failure {
    fn from(error: ProcessError) -> Self {
        let failure = Self::new(error.to_string()).with_code(code_of(&error));
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// Returns the exit code of a failure. One that the command would have had by `exec` is the same here.
fn code_of(error: &ProcessError) -> u8 {
    let own = match error {
        ProcessError::Start(error) => exit_code_of(error),
        _ => None,
    };
    own.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}

/// Runs the command, and returns the exit code.
pub(super) fn run(action: Process, out: &mut Out) -> Result<u8, Failure> {
    let processes = Processes::new(Home::find()?);
    let done = |text: String, value: serde_json::Value| Ok((text, value, 0));
    let (json, result) = match action {
        Process::Start(start) => {
            let json = start.json;
            let request = match request(start) {
                Ok(request) => request,
                Err(message) => {
                    say("error", &message);
                    return Ok(USAGE);
                }
            };
            (json, processes.start(&request).map(|begun| started(&begun)))
        }
        Process::List { task, json } => return list(&processes, task.as_deref(), json, out),
        Process::Logs(logs) => return process_log::run(&processes, &logs, out),
        Process::Wait { one, timeout } => return wait(&processes, &one, timeout, out),
        Process::Notices { task, keep, json } => {
            return notices(&processes, task.as_deref(), keep, json, out);
        }
        Process::Poll(one) => {
            let view = processes.poll(&one.id);
            (one.json, view.map(|view| (described(&view), json!(view), 0)))
        }
        Process::Kill(one) => {
            let killed = processes.kill(&one.id).map(|view| {
                let text = match view.status {
                    KillStatus::Killed => "killed",
                    KillStatus::AlreadyExited => "it had ended before",
                };
                (text.to_owned(), json!(view), 0)
            });
            (one.json, killed)
        }
        Process::Write { id, data, newline, close, json } => {
            let written = write(&processes, &id, data.as_deref(), newline, close);
            let told = |count: usize| {
                done(format!("{count} bytes written"), json!({"status": "ok", "bytes_written": count}))
            };
            (json, written.and_then(told))
        }
        Process::Resize { id, size, json } => {
            let resized = processes.resize(&id, size.into());
            let Size { rows, columns } = size;
            let told = json!({"status": "ok", "rows": rows, "columns": columns});
            (json, resized.and_then(|()| done("resized".to_owned(), told)))
        }
        Process::Signal { id, signal, json } => {
            let told = |count: usize| {
                done(format!("sent to {count} processes"), json!({"status": "ok", "processes": count}))
            };
            (json, processes.signal(&id, signal).and_then(told))
        }
        Process::Renew { one, lease } => {
            let renewed = processes.renew(&one.id, lease.map(|lease| lease.as_secs_f64()));
            let told = |until: f64| done("renewed".to_owned(), json!({"status": "ok", "lease_until": until}));
            (one.json, renewed.and_then(told))
        }
    };
    match result {
        Ok((_, value, code)) if json => {
            out.json(&value)?;
            Ok(code)
        }
        Ok((text, _, code)) => {
            out.line(&text)?;
            Ok(code)
        }
        Err(error) => fail(error, json, out),
    }
}

/// Tells a failure in the form that was asked for.
pub(super) fn fail(error: ProcessError, json: bool, out: &mut Out) -> Result<u8, Failure> {
    if !json {
        return Err(error.into());
    }
    let status = if matches!(error, ProcessError::NotFound(_)) { "not_found" } else { "error" };
    out.json(&json!({
        "status": status,
        "error": error.to_string(),
        "kind": error.kind(),
        "hint": error.hint(),
    }))?;
    Ok(code_of(&error))
}

/// Makes a request of the words that were given.
fn request(start: Start) -> Result<StartRequest, String> {
    let env = variables(&start.env)?;
    if start.lease.is_some() && start.lifetime != Ends::Lease {
        return Err("`--lease` is only for `--lifetime lease`".to_owned());
    }
    Ok(StartRequest {
        command: join(&start.command),
        backend: start.backend,
        task: start.task,
        cwd: start.cwd,
        env,
        stdin: start.stdin,
        pty: start.pty.then(|| start.size.unwrap_or_default().into()),
        lifetime: start.lifetime.into(),
        lease_s: start.lease.map(|lease| lease.as_secs_f64()),
        notify: start.notify,
        watch: start.watch,
    })
}

fn started(started: &Started) -> (String, serde_json::Value, u8) {
    for warning in &started.warnings {
        say("warning", warning);
    }
    let record = &started.record;
    let value = json!({
        "session_id": record.id,
        "pid": record.keeper.pid,
        "status": record.status,
        "command": record.command,
        "backend": record.backend,
        "task": record.task,
        "started_at": record.started_at,
        "lifetime": record.lifetime,
        "lease_until": record.lease_until,
        "warnings": started.warnings,
    });
    (record.id.to_string(), value, 0)
}

fn list(processes: &Processes, task: Option<&str>, json: bool, out: &mut Out) -> Result<u8, Failure> {
    let mut views = match processes.list() {
        Ok(views) => views,
        Err(error) => return fail(error, json, out),
    };
    views.retain(|view| task.is_none_or(|task| view.task == task));
    if json {
        out.json(&json!({ "processes": views }))?;
        return Ok(0);
    }
    let mut rows =
        vec![["ID", "STATUS", "SECONDS", "BACKEND", "TASK", "COMMAND"].map(str::to_owned).to_vec()];
    rows.extend(views.iter().map(|view| {
        let seconds = format!("{:.0}", view.uptime_seconds);
        let (id, command) = (view.session_id.to_string(), view.command.clone());
        vec![id, standing(view), seconds, view.backend.clone(), view.task.clone(), command]
    }));
    out.table(&rows)?;
    Ok(0)
}

/// Says where a process stands, in a word and its exit code.
fn standing(view: &View) -> String {
    let status = view.status.as_str();
    view.exit_code.map_or_else(|| status.to_owned(), |code| format!("{status} ({code})"))
}

fn described(view: &View) -> String {
    let View { session_id, uptime_seconds, backend, task, output_preview, .. } = view;
    let mut text =
        format!("{session_id}: {} after {uptime_seconds:.1} s, task `{task}` on `{backend}`", standing(view));
    if let Some(error) = &view.error {
        text = format!("{text}\nerror: {}", error.message);
    }
    for warning in &view.warnings {
        text = format!("{text}\nwarning: {warning}");
    }
    let preview = process_log::shown(output_preview.as_bytes());
    let preview = preview.trim_end_matches('\n');
    if preview.is_empty() { text } else { format!("{text}\n\n{preview}") }
}

fn wait(processes: &Processes, one: &One, timeout: Option<Duration>, out: &mut Out) -> Result<u8, Failure> {
    let cancel = process_log::cancel()?;
    let view = match processes.wait(&one.id, timeout, Some(cancel.as_fd())) {
        Ok(view) => view,
        Err(error) => return fail(error, one.json, out),
    };
    cancel.over();
    if one.json {
        out.json(&view)?;
    } else {
        out.bytes(process_log::shown(view.output.as_bytes()).as_bytes())?;
        if let Some(error) = &view.error {
            say("error", &error.message);
        }
    }
    Ok(match (view.status, view.exit_code) {
        (WaitStatus::Timeout, _) => TIMED_OUT,
        (WaitStatus::Interrupted, _) => INTERRUPTED,
        (WaitStatus::Exited, code) => code.and_then(|code| u8::try_from(code).ok()).unwrap_or(UNKNOWN),
    })
}

/// Hands over what is given, or our input piece by piece as it comes. Returns how much it was.
fn write(
    processes: &Processes,
    id: &str,
    data: Option<&str>,
    newline: bool,
    close: bool,
) -> Result<usize, ProcessError> {
    let mut count = 0;
    if let Some(data) = data {
        count += processes.write(id, data.as_bytes())?;
    } else {
        let mut buffer = vec![0; PIECE];
        loop {
            match io::stdin().read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => count += processes.write(id, &buffer[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(ProcessError::Io { doing: "failed to read standard input".into(), error });
                }
            }
        }
    }
    if newline {
        count += processes.write(id, b"\n")?;
    }
    if close {
        processes.close_stdin(id)?;
    }
    Ok(count)
}

fn notices(
    processes: &Processes,
    task: Option<&str>,
    keep: bool,
    json: bool,
    out: &mut Out,
) -> Result<u8, Failure> {
    let notices = match processes.notices(task, !keep) {
        Ok(notices) => notices,
        Err(error) => return fail(error, json, out),
    };
    if json {
        out.json(&json!({ "notices": notices }))?;
        return Ok(0);
    }
    for notice in &notices {
        let (what, text) = match &notice.event {
            Event::Completed { status, exit_code, output } => {
                let code = exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
                (format!("{}{code}", status.as_str()), output.as_str())
            }
            Event::Matched { suppressed, omitted, text, .. } => match suppressed + omitted {
                0 => ("matched".to_owned(), text.as_str()),
                more => (format!("matched; {more} lines more are not shown"), text.as_str()),
            },
            Event::Disabled { suppressed } => {
                (format!("matched too often and is no longer watched; {suppressed} lines were not told"), "")
            }
            Event::Silenced => ("too many matches; none are told for a while".to_owned(), ""),
        };
        out.line(&format!("{}: {what}", notice.session_id))?;
        out.bytes(process_log::shown(text.as_bytes()).as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            out.line("")?;
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_form_that_was_asked_for() {
        let error = || ProcessError::NotFound("x".into());
        assert_eq!(fail(error(), true, &mut Out::stdout()).unwrap(), 1);
        let failure = fail(error(), false, &mut Out::stdout()).unwrap_err();
        assert!(failure.message.contains("`x`") && failure.hint.is_some());
    }
}
