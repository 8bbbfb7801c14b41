//! Homes in which commands outlive the program that started them.
//!
//! A background process runs until somebody ends it, and a test that fails half-way must not leave it behind. So such a home ends
//! whatever still runs in it when it is dropped.

use std::ops::Deref;
use std::process::{Command, Stdio};

use rustix::process::Pid;
use serde_json::Value;

use crate::conversation::Conversation;
use crate::tools::Road;
use crate::{Home, Ran, strict};

/// A home whose processes and environments end with it.
pub struct TidyHome {
    home: Home,
    backend: String,
}

impl Deref for TidyHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Default for TidyHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TidyHome {
    /// Makes one in which commands run on this machine.
    #[must_use]
    pub fn new() -> Self {
        Self { home: Home::new(), backend: "local".to_owned() }
    }

    /// Makes one in which commands run where `backend` says, and plugins where `isolation` says. None, and a word on
    /// standard error, where that does not work here.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be set up, or does not work where everything is meant to.
    #[must_use]
    pub fn on(backend: &str, isolation: &str) -> Option<Self> {
        if backend == "bubblewrap" && !bubblewrap_works() {
            assert!(!strict(), "`bwrap` does not work here");
            eprintln!("skipped: `bwrap` is not installed or does not work here");
            return None;
        }
        let made = Self { home: Home::new().with("ACMEBOX_TOKEN", "demo"), backend: backend.to_owned() };
        if backend != "local" {
            made.add_plugin(backend, backend);
            let _ = made.hostel(&["plugins", "enable", backend, "--yes"]).expect(0);
            let _ = made.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
            let _ = made.hostel(&["config", "set", "terminal.backend", backend]).expect(0);
        }
        Some(made)
    }

    /// Sets a variable for every program that runs in this home.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.home.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Says by which road tools are called.
    #[must_use]
    pub fn by(mut self, road: Road) -> Self {
        self.home.calls.road = road;
        self
    }

    /// Returns where commands run.
    #[must_use]
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Starts a background process by `hostel process start` with these options, and returns its name.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[track_caller]
    #[must_use]
    pub fn start(&self, options: &[&str], command: &str) -> String {
        let words = [&["process", "start"], options, &["--", command]].concat();
        self.hostel(&words).expect(0).text().trim_end().to_owned()
    }

    /// Runs `hostel process`.
    #[must_use]
    pub fn process(&self, words: &[&str]) -> Ran {
        self.hostel(&[&["process"], words].concat())
    }

    /// Runs `hostel process --json`, and returns its object. The first word is the verb.
    #[must_use]
    pub fn process_json(&self, words: &[&str]) -> Value {
        let (verb, rest) = words.split_at(1);
        self.hostel(&[&["process"], verb, &["--json"], rest].concat()).json()
    }

    /// Returns the background processes that there are.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be listed.
    #[must_use]
    pub fn processes(&self) -> Vec<Value> {
        self.process_json(&["list"])["processes"].as_array().expect("a list").clone()
    }

    /// Follows the output of a background process.
    #[must_use]
    pub fn follow(&self, id: &str) -> Conversation {
        Conversation::begin(self.command("hostel", &["process", "logs", "--follow", id]))
    }

    /// Waits until a background process has printed this.
    ///
    /// # Panics
    ///
    /// Panics if it does not print it.
    #[track_caller]
    pub fn hear(&self, id: &str, text: impl AsRef<[u8]>) {
        self.follow(id).hear(text);
    }

    /// Returns the number of a background process's keeper.
    ///
    /// # Panics
    ///
    /// Panics if there is no such process.
    #[track_caller]
    #[must_use]
    pub fn keeper(&self, id: &str) -> Pid {
        let pid = self.process_json(&["poll", id])["pid"].as_i64();
        let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        pid.expect("a running process has a keeper")
    }
}

impl Drop for TidyHome {
    fn drop(&mut self) {
        self.hang_up();
        // What cannot be ended must not hide why the test has failed.
        let run = |words: &[&str]| self.command("hostel", words).stderr(Stdio::null()).output();
        let Ok(list) = run(&["process", "list", "--json"]) else { return };
        let list: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
        for process in list["processes"].as_array().into_iter().flatten() {
            if let (Some("running"), Some(id)) = (process["status"].as_str(), process["session_id"].as_str())
            {
                let _ = run(&["process", "kill", id]);
            }
        }
        let _ = run(&["env", "cleanup", "--all", "--force"]);
    }
}

fn bubblewrap_works() -> bool {
    let tried = Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Makes a test of each function for each place where commands run: this machine, and the shipped plugins in processes of their
/// own and in the host's. The function is given a [`TidyHome`].
#[macro_export]
macro_rules! on_every_backend {
    ($(fn $name:ident($home:ident) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                fn run($home: &$crate::tidy::TidyHome) $body

                fn on(backend: &str, isolation: &str) {
                    if let Some(home) = $crate::tidy::TidyHome::on(backend, isolation) {
                        run(&home);
                    }
                }

                #[test]
                fn local() {
                    on("local", "process");
                }

                #[test]
                fn acmebox_process() {
                    on("acmebox", "process");
                }

                #[test]
                fn acmebox_in_process() {
                    on("acmebox", "in_process");
                }

                #[test]
                fn bubblewrap_process() {
                    on("bubblewrap", "process");
                }

                #[test]
                fn bubblewrap_in_process() {
                    on("bubblewrap", "in_process");
                }
            }
        )+
    };
}
