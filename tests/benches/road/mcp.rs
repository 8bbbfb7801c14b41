//! What an agent's call costs: `terminal` of `true` through `hostel mcp`, beside the same command made in a process of one's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use hostel::home::Home;
use hostel::{Host, Options};
use hostel_plugin_api::ExecRequest;
use hostel_tests::built;
use serde_json::{Value, json};

use super::{Quiet, Row, in_turns, quantile};

const TOKEN: &str = "bench-token-0123456789";

/// Calls before anything is measured: until commands run in copies of a shell that is there.
const WARMING_UP: usize = 20;

const ROUNDS: usize = 300;

pub(crate) fn calls() -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a folder");
    let mut stdio = Piped::begin(&dir.path().join("stdio"));
    let mut http = Http::begin(&dir.path().join("http"));
    let row = |way: &str, call: &mut dyn FnMut()| {
        let own = dir.path().join(format!("own-{way}"));
        let home = Home::at(own).expect("a home");
        let host = Host::open(Options { home: Some(home), backend: Some("local".into()) }).expect("a host");
        let io: hostel::environments::SharedIo = Arc::new(Quiet);
        let floor = || {
            let ran = host.execute("bench", ExecRequest::new("true"), &io).expect("it runs");
            assert_eq!(ran.exit_code, 0);
        };
        for _ in 0..WARMING_UP {
            floor();
            call();
        }
        let (floor, ours) = in_turns(ROUNDS, floor, call);
        let row = |percent, name: &str| Row {
            work: format!("`terminal` of `true` by {way}, {name} / `exec`"),
            floor: quantile(&floor, percent),
            ours: quantile(&ours, percent),
            goal: "",
        };
        vec![row(50, "median"), row(99, "p99")]
    };
    let by_stdio = row("stdio", &mut || stdio.call());
    let by_http = row("HTTP", &mut || http.call());
    by_stdio.into_iter().chain(by_http).collect()
}

fn initialize() -> Value {
    let client = json!({ "name": "bench", "version": "1" });
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client },
    })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

fn call_of(number: u64) -> Value {
    let params = json!({ "name": "terminal", "arguments": { "command": "true" } });
    json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
}

/// A server on pipes.
struct Piped {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Piped {
    fn begin(home: &std::path::Path) -> Self {
        let mut command = Command::new(built().join("hostel"));
        command.arg("mcp").env("HOSTEL_HOME", home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("output"));
        let mut server = Self { child, input, output, number: 0 };
        server.send(&initialize());
        let _ = server.answer();
        server.send(&initialized());
        server
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.as_mut().expect("input").write_all(line.as_bytes()).expect("it reads");
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("JSON")
    }

    fn call(&mut self) {
        self.number += 1;
        let number = self.number;
        self.send(&call_of(number));
        let answer = self.answer();
        assert_eq!(
            (&answer["id"], &answer["result"]["structuredContent"]["exit_code"]),
            (&json!(number), &json!(0))
        );
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A server on a socket, and one connection that is kept open.
struct Http {
    child: Child,
    connection: BufReader<TcpStream>,
    session: String,
    number: u64,
}

impl Http {
    fn begin(home: &std::path::Path) -> Self {
        let mut command = Command::new(built().join("hostel"));
        command
            .args(["mcp", "--http", "127.0.0.1:0"])
            .env("HOSTEL_HOME", home)
            .env("HOSTEL_MCP_TOKEN", TOKEN);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let _ =
            BufReader::new(child.stdout.take().expect("output")).read_line(&mut line).expect("an address");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let connection = TcpStream::connect(address.expect("an address")).expect("it listens");
        connection.set_nodelay(true).expect("an option");
        let mut server =
            Self { child, connection: BufReader::new(connection), session: String::new(), number: 0 };
        let _ = server.post(&initialize());
        let _ = server.post(&initialized());
        server
    }

    /// Posts a message, and returns the whole of the answer's body.
    fn post(&mut self, message: &Value) -> String {
        let body = message.to_string();
        let session = match self.session.as_str() {
            "" => String::new(),
            session => format!("Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-06-18\r\n"),
        };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.connection.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                assert!(line.is_empty() || line.contains(" 20"), "{line}");
                if line.is_empty() {
                    break;
                }
                continue;
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().expect("a number"),
                "transfer-encoding" => chunked = value == "chunked",
                "mcp-session-id" => value.clone_into(&mut self.session),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if !chunked {
            body.resize(length, 0);
            self.connection.read_exact(&mut body).expect("a body");
        }
        while chunked {
            let size = usize::from_str_radix(&self.line(), 16).expect("a size");
            let from = body.len();
            body.resize(from + size, 0);
            self.connection.read_exact(&mut body[from..]).expect("a chunk");
            let _ = self.line();
            chunked = size > 0;
        }
        String::from_utf8(body).expect("UTF-8")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.connection.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn call(&mut self) {
        self.number += 1;
        let answer = self.post(&call_of(self.number));
        assert!(answer.contains("\"exit_code\":0"), "{answer}");
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
