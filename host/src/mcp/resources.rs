//! What a client can read beside results: the logs of background processes, and whole outputs of which a result held only a part.
//!
//! An address names a process or a file by a name that is looked at before it becomes part of a path, and what is read is
//! never more than half a megabyte: a log can be larger than what any client keeps, and some end their session at an answer over HTTP of
//! more than a megabyte. What counts is how long it is in JSON, where a character can be six.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rmcp::model::{ErrorData, MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde_json::{Value, json};

use super::progress::unfinished;
use super::session::Client;
use crate::processes::ProcessError;

/// The most bytes that are read at once, and that they are in JSON.
const LARGEST: u64 = 512 * 1024;

/// All addresses are text.
const TEXT: &str = "text/plain";

const PROCESS: &str = "hostel://process/";
const LOG: &str = "/log";
const OUTPUT: &str = "hostel://output/";
const OFFSET: &str = "?offset=";

/// What an address names.
#[derive(Debug, PartialEq, Eq)]
enum Address<'a> {
    /// The log of a process.
    Log(&'a str),
    /// A whole output.
    Output(&'a str),
}

/// Some bytes of something that is read.
struct Part {
    /// The bytes as text.
    text: String,
    /// The byte at which they begin. It is larger than what was asked for if that is not kept any more.
    offset: u64,
    /// The byte behind them.
    next: u64,
    /// Whether there is something behind them.
    more: bool,
}

/// Returns what `client` can read. May take a while.
///
/// # Errors
///
/// Fails if the processes cannot be listed.
pub(super) fn list(client: &Client) -> Result<Vec<Resource>, ErrorData> {
    let (backend, task) = (client.session.entry().name(), client.session.task());
    let views = client
        .session
        .processes()
        .list()
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let logs = views.iter().filter(|view| view.backend == backend && view.task == task).map(|view| {
        Resource::new(format!("{PROCESS}{}{LOG}", view.session_id), format!("{} log", view.session_id))
            .with_title(format!("Log of {}", view.session_id))
            .with_description(format!(
                "What `{}` has printed ({})",
                view.command.escape_debug(),
                view.status.as_str()
            ))
            .with_mime_type(TEXT)
    });
    let mut found: Vec<Resource> = logs.collect();
    for (name, size) in outputs(client) {
        let resource = Resource::new(format!("{OUTPUT}{name}"), name)
            .with_title("Whole output")
            .with_description(
                "All that a command has printed, of which its result holds the beginning and the end",
            )
            .with_mime_type(TEXT)
            .with_size(size);
        found.push(resource);
    }
    Ok(found)
}

/// Returns the names and sizes of the whole outputs of the client's task, the oldest first, whoever had the results.
fn outputs(client: &Client) -> Vec<(String, u64)> {
    let Ok(outputs) = client.session.outputs() else { return Vec::new() };
    let prefix = outputs.prefix();
    let entries = std::fs::read_dir(&outputs.dir).into_iter().flatten().flatten();
    let kept = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(&prefix))?;
        let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((meta.modified().ok()?, name, meta.len()))
    });
    let mut kept: Vec<_> = kept.collect();
    kept.sort_unstable();
    let older = kept.len().saturating_sub(MOST_OUTPUTS);
    kept.drain(older..).map(|(_, name, size)| (name, size)).collect()
}

/// How many outputs are listed.
const MOST_OUTPUTS: usize = 100;

/// Returns the forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{PROCESS}{{id}}{LOG}{{?offset}}"), "process log")
            .with_title("Log of a background process")
            .with_description("What a background process has printed, from byte `offset` on; at most 512 KiB at once")
            .with_mime_type(TEXT),
        ResourceTemplate::new(format!("{OUTPUT}{{name}}{{?offset}}"), "whole output")
            .with_title("Whole output")
            .with_description("The file that a result names in `full_output_path`, from byte `offset` on; at most 512 KiB at once")
            .with_mime_type(TEXT),
    ]
}

/// Reads what `uri` names. May take a while.
///
/// # Errors
///
/// Fails if it names nothing that `client` can read.
pub(super) fn read(client: &Client, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || {
        ErrorData::resource_not_found(
            format!("there is nothing at `{}`", uri.escape_debug()),
            Some(json!({ "uri": uri })),
        )
    };
    let (address, offset) = parse(uri).ok_or_else(unknown)?;
    let part = match address {
        Address::Log(id) => log(client, id, offset),
        Address::Output(name) => output_of(client, name, offset),
    };
    let part = part.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unknown(),
        _ => ErrorData::internal_error(format!("failed to read `{uri}`: {error}"), None),
    })?;
    let mut text = part.text;
    if part.more {
        let without = uri.split_once(OFFSET).map_or(uri, |(without, _)| without);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[cut here; more at {without}{OFFSET}{}]\n", part.next);
    }
    let mut meta = MetaObject::new();
    for (name, value) in [
        ("offset_bytes", json!(part.offset)),
        ("next_offset_bytes", json!(part.next)),
        ("cut", Value::Bool(part.more)),
    ] {
        meta.insert(format!("hostel/{name}"), value);
    }
    let contents = ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(TEXT.into()),
        text,
        meta: Some(meta),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Reads an address. None if it is none.
fn parse(uri: &str) -> Option<(Address<'_>, u64)> {
    let (path, offset) = match uri.split_once(OFFSET) {
        Some((path, offset)) => (path, offset.parse().ok()?),
        None => (uri, 0),
    };
    if let Some(id) = path.strip_prefix(PROCESS).and_then(|path| path.strip_suffix(LOG)) {
        // What is no name of a process is not found there.
        return Some((Address::Log(id), offset));
    }
    let name = path.strip_prefix(OUTPUT)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain);
    is_name.then_some((Address::Output(name), offset))
}

/// Reads the log of a process of the client's task.
fn log(client: &Client, id: &str, offset: u64) -> io::Result<Part> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let processes = client.session.processes();
    let failed = |error: ProcessError| match error {
        ProcessError::NotFound(_) => gone(),
        error => io::Error::other(error.to_string()),
    };
    let record = processes.get(id).map_err(failed)?;
    if record.backend != client.session.entry().name() || record.task != client.session.task() {
        return Err(gone());
    }
    let mut view = processes.log_bytes(id, offset, LARGEST).map_err(failed)?;
    let fit = fitting(&view.bytes);
    let cut = fit < view.bytes.len();
    if cut {
        view = processes.log_bytes(id, view.offset_bytes, fit as u64).map_err(failed)?;
    }
    let asked = view.next_offset_bytes - view.offset_bytes;
    Ok(Part {
        more: cut || (asked > 0 && asked + 4 > LARGEST),
        text: view.output,
        offset: view.offset_bytes,
        next: view.next_offset_bytes,
    })
}

/// Returns how many of these bytes can be told at once.
fn fitting(bytes: &[u8]) -> usize {
    let mut left = LARGEST;
    let told = |byte: &u8| match byte {
        b'\n' | b'\r' | b'\t' | b'"' | b'\\' => 2,
        0..0x20 => 6,
        0x20..0x80 => 1,
        // One of several of a character, or none of any, which is told by one of three bytes.
        0x80..=0xff => 3,
    };
    let fits = |byte: &&u8| left.checked_sub(told(byte)).map(|less| left = less).is_some();
    bytes.iter().take_while(fits).count()
}

/// Reads an output of the client's task.
fn output_of(client: &Client, name: &str, offset: u64) -> io::Result<Part> {
    let outputs = client.session.outputs().map_err(|error| io::Error::other(error.to_string()))?;
    // Whoever knows the name of another task's is not told that it is there.
    if !name.starts_with(&outputs.prefix()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    output(&outputs.dir, name, offset)
}

/// Reads a file of the folder `outputs`.
fn output(outputs: &Path, name: &str, offset: u64) -> io::Result<Part> {
    // Not a link to somewhere else, nor a pipe that waits for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, outputs.join(name), flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let offset = offset.min(meta.len());
    let most = (meta.len() - offset).min(LARGEST);
    let mut bytes = vec![0; usize::try_from(most).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    bytes.truncate(fitting(&bytes));
    let mut next = offset + bytes.len() as u64;
    if next < meta.len() {
        // A character that does not fit any more comes with the next part.
        let kept = bytes.len() - unfinished(&bytes);
        bytes.truncate(kept);
        next = offset + kept as u64;
    }
    Ok(Part { text: String::from_utf8_lossy(&bytes).into_owned(), offset, next, more: next < meta.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_nothing_else_is() {
        assert_eq!(parse("hostel://process/proc_01/log"), Some((Address::Log("proc_01"), 0)));
        assert_eq!(parse("hostel://output/out-aB3.log?offset=7"), Some((Address::Output("out-aB3.log"), 7)));
        for bad in [
            "hostel://output/",
            "hostel://output/../config.yaml",
            "hostel://output/a/b",
            "hostel://output/.env",
            "hostel://output/%2e%2e",
            "hostel://output/a?offset=-1",
            "hostel://output/a?offset=",
            "hostel://process/x",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_large_output_is_read_in_parts_between_characters() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("a{}{}", "€".repeat(400_000), "\u{1}\n\"".repeat(200_000));
        std::fs::write(dir.path().join("out-1.log"), &text).unwrap();
        let (mut read, mut next) = (String::new(), 0);
        loop {
            let part = output(dir.path(), "out-1.log", next).unwrap();
            assert!(
                serde_json::to_string(&part.text).unwrap().len() as u64 <= LARGEST + 2 && part.offset == next
            );
            read.push_str(&part.text);
            next = part.next;
            if !part.more {
                break;
            }
        }
        assert!(read == text);
        assert_eq!(output(dir.path(), "out-1.log", u64::MAX).unwrap().text, "");
    }

    #[test]
    fn only_files_of_the_folder_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = dir.path().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", outputs.join("out-link.log")).unwrap();
        std::fs::create_dir(outputs.join("out-dir.log")).unwrap();
        for name in ["out-link.log", "out-dir.log", "out-none.log"] {
            assert!(output(&outputs, name, 0).is_err(), "{name}");
        }
    }
}
