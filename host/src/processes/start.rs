//! Starts a keeper, and hears from it whether the process has started.
//!
//! What is to be run may hold secrets, and everybody can read the arguments of a program. So the keeper gets them on a socket,
//! which it answers on; and where the process shall not outlive its starter, that socket is kept, since the kernel closes it
//! however the starter ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use hostel_plugin_api::shell::{Process, Spawn, outside_of_calls, spawn};
use hostel_plugin_api::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::control::line;
use super::error::ProcessError;
use super::keeper::PROCESS_KEEPER_COMMAND;
use super::record::{Lifetime, PtySize, Record};
use crate::home::Home;
use crate::plugins::worker::program;

/// The variable by which the processes of a call are known.
const CALL: &str = "HOSTEL_CALL";

/// What a keeper is called, for whoever lists processes.
const OWN_NAME: &str = "hostel";

/// The longest message: a command and its variables may be long.
const LONGEST_MESSAGE: u64 = 256 * 1024 * 1024;

/// What to start. It is not shown for debugging, since variables may be secrets.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct StartRequest {
    /// Shell text, whole and unchanged.
    pub command: String,
    /// Where to run it; None for what is selected.
    pub backend: Option<String>,
    /// In whose environment.
    pub task: String,
    /// Its directory; None for where the session stands.
    pub cwd: Option<String>,
    /// Its variables.
    pub env: Vec<(String, String)>,
    /// Whether it can be written to.
    pub stdin: bool,
    /// The size of its terminal; None for no terminal.
    pub pty: Option<PtySize>,
    /// What it does not outlive.
    pub lifetime: Lifetime,
    /// Seconds until its lease ends.
    pub lease_s: Option<f64>,
    /// Whether its end is to be told.
    pub notify: bool,
    /// Texts in its output that are to be told.
    pub watch: Vec<String>,
}

/// What a keeper is told.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) home: PathBuf,
    pub(super) request: StartRequest,
}

/// What a keeper answers.
#[derive(Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Report {
    Started { record: Box<Record>, warnings: Vec<String> },
    Failed { kind: u32, message: String, hint: Option<String>, may_have_started: bool },
}

impl From<&Error> for Report {
    fn from(error: &Error) -> Self {
        Self::Failed {
            kind: error.kind().0,
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
            may_have_started: error.may_have_started(),
        }
    }
}

/// Holds a process whose lifetime is [`Lifetime::Host`]: it is ended when this is dropped.
#[derive(Debug)]
pub struct HostLink(#[allow(dead_code, reason = "its closing is what it is for")] UnixStream);

/// A process that was started.
#[derive(Debug)]
pub struct Started {
    /// What is known of it.
    pub record: Record,
    /// What the user should know, a line each.
    pub warnings: Vec<String>,
    /// Keeps it, if its lifetime is [`Lifetime::Host`].
    pub link: Option<HostLink>,
}

/// Starts a process, unless `given_up` can be read before it has begun: then its keeper is left, which ends what it was about to start.
pub(super) fn start(
    home: &Home,
    request: &StartRequest,
    given_up: Option<BorrowedFd<'_>>,
) -> Result<Started, ProcessError> {
    let starting = |error: io::Error| ProcessError::io("failed to start a process", error);
    let mut link = start_keeper().map_err(starting)?;
    let order = Order { home: home.path().to_owned(), request: request.clone() };
    link.write_all(&line(&order)).map_err(starting)?;
    if !speaks(&link, given_up).map_err(starting)? {
        let message = "the call was cancelled before the process began";
        return Err(ProcessError::Start(Error::new(ErrorKind::CANCELLED, message).not_started()));
    }
    match hear(&link).map_err(starting)? {
        Report::Started { record, warnings } => {
            let link = (request.lifetime == Lifetime::Host).then_some(HostLink(link));
            Ok(Started { record: *record, warnings, link })
        }
        Report::Failed { kind, message, hint, may_have_started } => {
            let mut error = Error::new(ErrorKind(kind), message);
            if let Some(hint) = hint {
                error = error.with_hint(hint);
            }
            Err(ProcessError::Start(if may_have_started { error } else { error.not_started() }))
        }
    }
}

/// Waits for a keeper's answer. Returns whether it has come before `given_up` could be read.
fn speaks(link: &UnixStream, given_up: Option<BorrowedFd<'_>>) -> io::Result<bool> {
    let Some(given_up) = given_up else { return Ok(true) };
    loop {
        let mut fds = [PollFd::new(link, PollFlags::IN), PollFd::from_borrowed_fd(given_up, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(!fds[0].revents().is_empty()),
        }
    }
}

/// Reads a keeper's answer.
fn hear(link: &UnixStream) -> io::Result<Report> {
    receive(link)?.ok_or_else(|| io::Error::other("its keeper has ended without a word"))
}

/// Reads one line and what it says. None if the other side closes without one.
pub(super) fn receive<T: DeserializeOwned>(link: &UnixStream) -> io::Result<Option<T>> {
    let mut text = Vec::new();
    BufReader::new(link).take(LONGEST_MESSAGE).read_until(b'\n', &mut text)?;
    if text.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&text)?)) }
}

fn start_keeper() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let argv = [OWN_NAME.into(), PROCESS_KEEPER_COMMAND.into()];
    // Ours: a plugin's settings may be there.
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    // One that is started by a command is no part of it, and does not end with it.
    env.retain(|(name, _)| name != CALL);
    env.push((CALL.into(), OWN_NAME.into()));
    let outside = outside_of_calls();
    let keeper = spawn(&Spawn {
        program: &program()?,
        argv: &argv,
        env: &env,
        // Where we are: sessions of this machine begin there.
        cwd: Path::new("."),
        descriptors: vec![theirs.as_fd(), null.as_fd(), null.as_fd()],
        terminal: false,
        cgroup: outside.as_ref().map(AsFd::as_fd),
    })
    .map_err(|error| error.error)?;
    reap(keeper);
    Ok(ours)
}

/// Waits for a keeper, so that it does not stay a zombie as long as we live.
fn reap(keeper: Process) {
    let wait = move || waitid(WaitId::PidFd(keeper.pidfd.as_fd()), WaitIdOptions::EXITED);
    // Without a thread it stays one.
    let _ = thread::Builder::new().name("reap".into()).spawn(wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_all_that_the_caller_needs() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let error = Error::new(ErrorKind::QUOTA, "too many").with_hint("end one").not_started();
        theirs.write_all(&line(&Report::from(&error))).unwrap();
        let Report::Failed { kind, message, hint, may_have_started } = hear(&ours).unwrap() else {
            panic!("it was no failure")
        };
        assert_eq!((ErrorKind(kind), message.as_str()), (ErrorKind::QUOTA, "too many"));
        assert_eq!((hint.as_deref(), may_have_started), (Some("end one"), false));
        drop(theirs);
        assert!(hear(&ours).is_err());
    }

    #[test]
    fn an_order_is_one_line_whatever_it_holds() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let request = StartRequest {
            command: "a\nb".into(),
            env: vec![("A".into(), "\n".into())],
            ..Default::default()
        };
        theirs.write_all(&line(&Order { home: "/h".into(), request })).unwrap();
        let order: Order = receive(&ours).unwrap().unwrap();
        assert_eq!((order.request.command.as_str(), order.request.env.len()), ("a\nb", 1));
    }
}
