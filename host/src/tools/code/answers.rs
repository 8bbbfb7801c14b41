//! The tools that a script calls, one after the other, through the door that every call goes through.

use std::io::{self, PipeWriter};
use std::sync::mpsc::Receiver;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::frames::Request;
use super::limits::CALLS;
use crate::tools::call::Call;
use crate::tools::catalog;
use crate::tools::session::Session;
use crate::tools::tool::Answer;

/// The tools that a script may call.
const TOOLS: [&str; 5] = ["terminal", "read_file", "write_file", "search_files", "patch"];

/// Arguments of `terminal` that mean something only in the background, where a script starts nothing.
const BACKGROUND: [&str; 7] =
    ["background", "pty", "stdin", "notify", "notify_on_complete", "watch_patterns", "check_interval"];

/// Answers the calls of one script.
pub(super) struct Answers<'a> {
    session: &'a Session,
    /// As which the calls are made. Who cancels it ends the answering.
    call: Call,
    token: &'a str,
    input: PipeWriter,
    made: u32,
}

impl<'a> Answers<'a> {
    /// Writes answers to `input`, for a launcher that knows them by `token`.
    pub(super) fn new(
        session: &'a Session,
        call: Call,
        token: &'a str,
        input: PipeWriter,
    ) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        Ok(Self { session, call, token, input, made: 0 })
    }

    /// Writes what the launcher reads first, and answers until there are no more calls, or nobody reads the answers. Returns how many
    /// were made. The input is closed then.
    pub(super) fn serve(mut self, first: &[u8], requests: Receiver<Request>) -> u32 {
        if self.write(first).is_err() {
            return self.made;
        }
        for Request { id, body } in requests {
            if self.call.is_cancelled() {
                break;
            }
            let answer = self.answer(&body);
            let failed = u8::from(answer.is_error());
            let text = BASE64.encode(answer.value.to_string());
            if self.write(format!("{} a {id} {failed} {text}\n", self.token).as_bytes()).is_err() {
                break;
            }
        }
        self.made
    }

    fn answer(&mut self, body: &[u8]) -> Answer {
        let (name, arguments) = match read(body) {
            Ok(call) => call,
            Err(message) => return refused(&message),
        };
        if self.made == CALLS {
            return refused(&format!(
                "a script may call {CALLS} tools, and this one has: do the rest in the script itself, or in another one"
            ));
        }
        self.made += 1;
        catalog::call(self.session, name, Value::Object(arguments), &self.call)
    }

    /// Writes all of it, unless the script is over before.
    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut fds = [
                PollFd::new(&self.input, PollFlags::OUT),
                PollFd::from_borrowed_fd(self.call.cancel_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) if !fds[1].revents().is_empty() => return Err(io::ErrorKind::Interrupted.into()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::write(&self.input, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn refused(message: &str) -> Answer {
    Answer { value: json!({ "error": message }) }
}

/// Reads which tool is called, and with what.
fn read(body: &[u8]) -> Result<(&'static str, Map<String, Value>), String> {
    let text = String::from_utf8_lossy(body);
    let (name, arguments) = text.split_once('\n').unwrap_or((&text, ""));
    let known = || TOOLS.map(|tool| format!("`{tool}`")).join(", ");
    let Some(name) = TOOLS.into_iter().find(|tool| *tool == name) else {
        return Err(format!("a script cannot call `{}`, only {}", name.escape_debug(), known()));
    };
    let mut arguments = match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) => return Err(format!("the arguments of `{name}` are no JSON object")),
        Err(error) => return Err(format!("the arguments of `{name}` are no JSON: {error}")),
    };
    if name == "terminal" {
        for argument in BACKGROUND {
            let given = arguments.remove(argument);
            if !matches!(given, None | Some(Value::Null | Value::Bool(false))) {
                return Err(format!(
                    "`{argument}` means nothing here: a script runs commands in the foreground only"
                ));
            }
        }
    }
    Ok((name, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_a_tool_that_scripts_have() {
        let (name, arguments) =
            read(b"terminal\n{\"command\": \"ls\", \"background\": false, \"pty\": null}").unwrap();
        assert_eq!((name, Value::Object(arguments)), ("terminal", json!({ "command": "ls" })));
        for (body, part) in [
            ("execute_code\n{}", "cannot call `execute_code`"),
            ("process\n{}", "only `terminal`"),
            ("", "cannot call ``"),
            ("patch", "no JSON"),
            ("patch\n[]", "no JSON object"),
            ("terminal\n{\"command\": \"x\", \"background\": true}", "`background`"),
            ("terminal\n{\"command\": \"x\", \"notify\": [\"a\"]}", "`notify`"),
        ] {
            let why = read(body.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
