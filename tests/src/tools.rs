//! Calls of tools, by each road that leads to them.
//!
//! An agent comes through MCP, a script through `hostel tool`, and what a tool does must not depend on that. So its tests call it by the
//! home, and are run once for each road.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::mcp_stdio::McpStdio;
use crate::{Home, finish};

/// The road that calls take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Road {
    /// `hostel tool`: a program for each call.
    #[default]
    Command,
    /// `hostel mcp`: a server for each task, from its first call to the end of the home.
    Mcp,
}

/// The road of a home, and what was built on it.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) road: Road,
    servers: Mutex<BTreeMap<String, McpStdio>>,
}

impl Home {
    /// Calls a tool in the task `default`.
    ///
    /// # Panics
    ///
    /// Panics if there is no result, or what stands around it does not tell a failed call from one that went well.
    #[track_caller]
    pub fn tool(&self, name: &str, arguments: &Value) -> Value {
        self.tool_of("default", name, arguments)
    }

    /// Calls a tool in a task.
    ///
    /// # Panics
    ///
    /// Panics as [`tool`](Self::tool) does.
    #[track_caller]
    pub fn tool_of(&self, task: &str, name: &str, arguments: &Value) -> Value {
        match self.calls.road {
            Road::Mcp => self.with_server(task, |server| server.call(name, arguments)),
            Road::Command => {
                let command = self.command("hostel", &["tool", name, "--task", task, "--json", "-"]);
                let ran = finish(command, arguments.to_string().as_bytes());
                let value = ran.json();
                assert_eq!(ran.code, i32::from(!value["error"].is_null()), "{ran:?}");
                value
            }
        }
    }

    /// Makes calls of a tool at the same moment, and returns their results in their order.
    ///
    /// # Panics
    ///
    /// Panics as [`tool`](Self::tool) does.
    #[track_caller]
    pub fn tool_at_once(&self, name: &str, calls: &[Value]) -> Vec<Value> {
        if self.calls.road == Road::Mcp {
            return self.with_server("default", |server| server.call_at_once(name, calls));
        }
        std::thread::scope(|scope| {
            let call = |arguments| scope.spawn(move || self.tool(name, arguments));
            let running: Vec<_> = calls.iter().map(call).collect();
            running.into_iter().map(|call| call.join().expect("a call ends")).collect()
        })
    }

    /// Does something with the server of a task.
    ///
    /// # Panics
    ///
    /// Panics if none can be started.
    #[track_caller]
    pub fn with_server<T>(&self, task: &str, does: impl FnOnce(&mut McpStdio) -> T) -> T {
        let mut servers = self.calls.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || McpStdio::begin(self.command("hostel", &["mcp", "--task", task]));
        does(servers.entry(task.to_owned()).or_insert_with(begin))
    }

    /// Ends the servers that there are: the next call finds a new one, which knows nothing of earlier calls and reads the configuration anew.
    pub fn hang_up(&self) {
        self.calls.servers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Makes two tests of each of these functions: one in which tools are called by `hostel tool`, and one in which they are called by MCP. A
/// function is given the [`Road`].
#[macro_export]
macro_rules! by_both_roads {
    ($($name:ident)+) => {
        $(
            mod $name {
                #[test]
                fn command() {
                    super::$name($crate::tools::Road::Command);
                }

                #[test]
                fn mcp() {
                    super::$name($crate::tools::Road::Mcp);
                }
            }
        )+
    };
}

/// Makes tests of each function as `on_every_backend!` does, in which tools are called by `hostel tool`, and further ones in which they are
/// called by MCP: on this machine, and for all plugins on one, since the roads meet long before there is a backend.
#[macro_export]
macro_rules! on_every_backend_by_both_roads {
    ($(fn $name:ident($home:ident) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                fn run($home: &$crate::tidy::TidyHome) $body

                fn on(backend: &str, isolation: &str, road: $crate::tools::Road) {
                    if let Some(home) = $crate::tidy::TidyHome::on(backend, isolation) {
                        run(&home.by(road));
                    }
                }

                $crate::on_every_backend_by_both_roads! { @
                    local "local" "process" Command
                    local_mcp "local" "process" Mcp
                    acmebox_process "acmebox" "process" Command
                    acmebox_process_mcp "acmebox" "process" Mcp
                    acmebox_in_process "acmebox" "in_process" Command
                    bubblewrap_process "bubblewrap" "process" Command
                    bubblewrap_in_process "bubblewrap" "in_process" Command
                }
            }
        )+
    };
    (@ $($test:ident $backend:literal $isolation:literal $road:ident)+) => {
        $(
            #[test]
            fn $test() {
                on($backend, $isolation, $crate::tools::Road::$road);
            }
        )+
    };
}
