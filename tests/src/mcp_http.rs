//! A client of `hostel mcp --http` that can do one thing: call tools, a connection for each request.
//!
//! What the protocol asks for is shown with the official clients. This one is for tests in which servers come, go, and stand in each other's way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::Ran;
use crate::conversation::Conversation;

/// How long a server has to come up, and an answer to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the servers' token is.
const TOKEN: &str = "tests-0123456789abcdef";

/// A server of our own, and a session with it. It is killed when this is dropped.
pub struct McpHttp {
    talk: Conversation,
    address: String,
    session: Option<String>,
    requests: u64,
}

impl McpHttp {
    /// Takes a command that was made ready, but for its token, waits until the server says where it is, and begins.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[track_caller]
    #[must_use]
    pub fn begin(mut command: Command) -> Self {
        command.env("HOSTEL_MCP_TOKEN", TOKEN);
        let mut talk = Conversation::begin(command);
        let until = Instant::now() + PATIENCE;
        let address = loop {
            let line = talk.line(until.saturating_duration_since(Instant::now()));
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split_once("/mcp").expect("a path").0.to_owned();
            }
        };
        let mut made = Self { talk, address, session: None, requests: 0 };
        let client = json!({ "name": "hostel-tests", "version": "1" });
        let first = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        assert_eq!(made.ask("initialize", &first)["result"]["serverInfo"]["name"], "hostel");
        made
    }

    /// Makes a request, and returns the whole answer.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let body = json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        let body = body.to_string();
        let session = self.session.as_ref().map(|name| format!("Mcp-Session-Id: {name}\r\n"));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n",
            self.address,
            session.unwrap_or_default(),
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.write_all(format!("{head}{body}").as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers");
        let (head, body) = parts(&answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(head.starts_with("http/1.1 200 "), "{text}");
        let named = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = self.session.take().or_else(|| named.map(str::to_owned));
        let message = body.lines().find_map(|line| line.strip_prefix("data: {"));
        let message = message.unwrap_or_else(|| panic!("{text}"));
        serde_json::from_str(&format!("{{{message}")).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Calls a tool, and returns its result.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let value = answer["result"]["structuredContent"].clone();
        assert!(value.is_object(), "{answer}");
        value
    }

    /// Returns where the server listens: an address and a port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the number of the server's process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.talk.pid()
    }

    /// Sends the server a signal that ends it, and waits for its end.
    ///
    /// # Panics
    ///
    /// Panics if it does not end.
    #[track_caller]
    #[must_use]
    pub fn end(self, signal: Signal) -> Ran {
        self.talk.signal(signal);
        self.talk.finish()
    }
}

/// Returns the head of an answer in small letters, and its body.
fn parts(answer: &[u8]) -> (String, String) {
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let (head, mut rest) = (String::from_utf8_lossy(&answer[..at]).to_lowercase(), &answer[at + 4..]);
    if !head.contains("transfer-encoding: chunked") {
        return (head, String::from_utf8_lossy(rest).into_owned());
    }
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..at]);
        let size = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = rest.get(at + 4 + size..).unwrap_or_default();
    }
    (head, String::from_utf8_lossy(&body).into_owned())
}
