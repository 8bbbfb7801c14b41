//! `hostel mcp`.

use std::time::Duration;

use clap::Args;

use super::args::seconds;
use super::failure::Failure;
use super::print::{Out, say};
use crate::Host;
use crate::mcp::http::{self, HttpError, Listening};
use crate::mcp::stdio::{self, StdioError};
use crate::world::Options;

/// The task of a client over standard input that names none.
const TASK: &str = "default";

#[derive(Debug, Args)]
#[command(
    after_help = "Without `--http` it speaks to the program that has started it, on standard input and output, and ends with its input.\n\n\
    Over HTTP, clients show a token: that in `HOSTEL_MCP_TOKEN`, or else that in the file which is named at the start. Each session\n\
    has a task of its own, unless `--task` or the header `Hostel-Task` names one.\n\n\
    Examples:\n  hostel mcp\n  hostel mcp --backend acmebox --task build\n  hostel mcp --http 127.0.0.1:7677\n\n\
    Exit codes: 0 the client has left or a signal came, 1 failed, 2 wrong usage"
)]
pub(super) struct Mcp {
    /// Listen at this address and port, or this port of this machine alone
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<String>,
    /// Name the session in whose environment the tools act (default: `default`; over HTTP: one for each session)
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// Use this backend instead of `terminal.backend`
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Let clients name the server so (besides `localhost` and addresses)
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// End a session after so long without a request, a stream or a call
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "1800", requires = "http")]
    idle: Duration,
}

/// Serves until the client, or a signal, ends it.
pub(super) fn run(arguments: Mcp, out: &mut Out) -> Result<u8, Failure> {
    let host = Host::open(Options { home: None, backend: arguments.backend })?;
    for remark in &host.world().remarks {
        say("warning", remark);
    }
    match arguments.http {
        None => stdio::serve(&host, arguments.task.as_deref().unwrap_or(TASK))?,
        Some(listen) => {
            let options = http::Options {
                listen,
                task: arguments.task,
                names: arguments.allow_host,
                idle: arguments.idle,
            };
            http::serve(&host, options, |listening| announce(listening, out))?;
        }
    }
    for line in host.close() {
        say("warning", &line);
    }
    Ok(0)
}

fn announce(listening: &Listening, out: &mut Out) {
    // For programs that let the port be chosen. Where nobody reads it, it is not needed.
    let _ = out.line(&listening.url);
    match &listening.token {
        Some(path) => say("note", &format!("clients show the token in `{}`", path.display())),
        None => say("note", "clients show the token in `HOSTEL_MCP_TOKEN`"),
    }
    if listening.is_public {
        say("warning", "other machines can reach it, and what is said is not encrypted");
    }
}

impl From<StdioError> for Failure {
    fn from(error: StdioError) -> Self {
        match error {
            StdioError::Backend(error) => error.into(),
            error @ StdioError::Io(_) => Self::new(error.to_string()),
        }
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        use crate::mcp::http::TokenError;
        let hint = match &error {
            HttpError::Backend(error) => return error.clone().into(),
            HttpError::Listen(..) => "choose another address with `--http`; with port 0 a free one is taken",
            HttpError::Token(TokenError::Open(_)) => "make another token: remove the file, and start again",
            HttpError::Token(TokenError::Empty(_) | TokenError::Short(_)) => {
                "remove it, and one is made; or make one with `openssl rand -hex 32`"
            }
            HttpError::Token(TokenError::Io(..)) => "check the permissions of its folder and the free space",
            HttpError::Io(_) => return Self::new(error.to_string()),
        };
        Self::new(error.to_string()).with_hint(hint)
    }
}
