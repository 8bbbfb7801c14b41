//! A client of `hostel mcp` that can do one thing: call tools.
//!
//! That the server speaks the protocol as it is meant is shown with the official clients. What the tools do must hold by this road as well, for
//! every test of them, and that takes a client that starts at once and needs nothing but the server.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use serde_json::{Value, json};

use crate::conversation::Conversation;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(150);

/// A server of our own, over its standard input and output. It ends when this is dropped.
pub struct McpStdio {
    /// Is there until the end.
    talk: Option<Conversation>,
    requests: u64,
    /// Answers that came before they were waited for.
    early: BTreeMap<u64, Value>,
}

impl McpStdio {
    /// Starts the server, a command that was made ready, and begins.
    ///
    /// # Panics
    ///
    /// Panics if it does not start, or its answer is not as it should be.
    #[must_use]
    pub fn begin(command: Command) -> Self {
        let talk = Some(Conversation::begin(command));
        let mut made = Self { talk, requests: 0, early: BTreeMap::new() };
        let client = json!({ "name": "hostel-tests", "version": "1" });
        let first = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let answer = made.ask("initialize", &first);
        assert_eq!(answer["result"]["serverInfo"]["name"], "hostel", "{answer}");
        made.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        made
    }

    /// Makes a request, and returns the whole answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool, and returns its result.
    ///
    /// # Panics
    ///
    /// Panics if the answer is not what the protocol asks for.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        result(&answer)
    }

    /// Makes calls of a tool all at once, and returns their results in their order.
    ///
    /// # Panics
    ///
    /// Panics as [`call`](Self::call) does.
    #[track_caller]
    pub fn call_at_once(&mut self, tool: &str, calls: &[Value]) -> Vec<Value> {
        let params = calls.iter().map(|arguments| json!({ "name": tool, "arguments": arguments }));
        let ids: Vec<u64> = params.map(|params| self.send("tools/call", &params)).collect();
        ids.into_iter().map(|id| result(&self.answer(id))).collect()
    }

    /// Sends a line, whatever it is.
    ///
    /// # Panics
    ///
    /// Panics if the server reads no more.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        self.talk().say(&format!("{line}\n"));
    }

    /// Waits for the answer to the request `id`.
    ///
    /// # Panics
    ///
    /// Panics if it does not come.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.early.remove(&id) {
                return answer;
            }
            let line = self.talk().line(PATIENCE);
            let message: Value = serde_json::from_slice(&line)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)));
            // What has no number, or a method, is for whoever listens.
            if let (Some(id), None) = (message["id"].as_u64(), message.get("method")) {
                self.early.insert(id, message);
            }
        }
    }

    /// Returns the number of the server's process.
    #[must_use]
    pub fn pid(&mut self) -> Pid {
        self.talk().pid()
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    fn talk(&mut self) -> &mut Conversation {
        self.talk.as_mut().expect("it is there until the end")
    }
}

/// Takes the result of a tool out of an answer, which has it as an object and as text.
#[track_caller]
fn result(answer: &Value) -> Value {
    let result = &answer["result"];
    let value = &result["structuredContent"];
    assert!(value.is_object(), "{answer}");
    let text = result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok());
    assert_eq!(text.as_ref(), Some(value), "{answer}");
    assert_eq!(result["isError"].as_bool().unwrap_or(false), !value["error"].is_null(), "{answer}");
    value.clone()
}

impl Drop for McpStdio {
    fn drop(&mut self) {
        let Some(mut talk) = self.talk.take() else { return };
        if thread::panicking() {
            eprintln!("the server of MCP has said: {}", talk.said());
            return;
        }
        let ran = talk.finish();
        assert_eq!(ran.code, 0, "the server of MCP has ended badly: {}", ran.stderr);
    }
}
