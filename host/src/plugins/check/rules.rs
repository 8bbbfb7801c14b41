//! The rules that only a host can try.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::TerminalEnvironmentProvider;
use hostel_plugin_api::testing::{self, Report, Row, Verdict};

use super::super::load::Discovered;
use super::super::manifest::Manifest;
use super::super::worker::{Plan, Ready, RemoteProvider, Worker};
use super::examine::{plan, row};
use crate::home::Home;
use crate::registry::{Flags, Provider};

/// How long what a worker has started may outlive it.
const PARTING: Duration = Duration::from_secs(5);

/// The rows so far, and whom to tell of each.
pub(super) struct Rules<'a> {
    only: Option<String>,
    progress: &'a mut dyn FnMut(&Row),
    report: Report,
}

impl<'a> Rules<'a> {
    pub(super) fn new(only: Option<&str>, progress: &'a mut dyn FnMut(&Row)) -> Self {
        Self { only: only.map(str::to_owned), progress, report: Report::default() }
    }

    pub(super) fn report(self) -> Report {
        self.report
    }

    fn add(&mut self, row: Row) {
        // What fails is told in any case: without it nothing else could be tried.
        let wanted = self.only.as_deref().is_none_or(|prefix| row.rule.starts_with(prefix));
        if wanted || row.verdict == Verdict::Failed {
            (self.progress)(&row);
            self.report.rows.push(row);
        }
    }

    /// Reads the manifest.
    pub(super) fn manifest(&mut self, folder: &Path) -> Option<Manifest> {
        let reproduce = "hostel plugins list";
        let about = "`plugin.yaml` holds what a host must know, in the right form";
        match Manifest::read(folder) {
            Ok((manifest, warnings)) => {
                self.add(row("manifest.read", about, Verdict::Passed, "", reproduce));
                let about = "every key of `plugin.yaml` is one that a host reads";
                let verdict = if warnings.is_empty() { Verdict::Passed } else { Verdict::Failed };
                self.add(row("manifest.keys", about, verdict, warnings.join("; "), reproduce));
                Some(manifest)
            }
            Err(error) => {
                self.add(row("manifest.read", about, Verdict::Failed, error.to_string(), reproduce));
                None
            }
        }
    }

    /// Looks at the library's file, and at the others.
    pub(super) fn library(&mut self, found: &Discovered, home: &Home) -> Option<Plan> {
        let about = "the library is a plugin of this interface, and nobody else may write to its files";
        let reproduce = format!("hostel plugins show {}", found.manifest.name);
        let checked = found.verify(None).and_then(|verified| {
            super::super::granted::files(found)?;
            Ok(verified)
        });
        match checked {
            Ok(verified) => {
                let detail = format!("built for interface {}", verified.api_version());
                self.add(row("library.file", about, Verdict::Passed, detail, reproduce));
                Some(plan(found, home, verified.pin().clone()))
            }
            Err(error) => {
                let detail = format!("{error}; {}", error.hint);
                self.add(row("library.file", about, Verdict::Failed, detail, reproduce));
                None
            }
        }
    }

    /// Loads it, under the permissions that its manifest asks for.
    pub(super) fn load(&mut self, worker: &Worker) -> Option<Ready> {
        let about = "the library loads, and registers what its manifest provides";
        let reproduce = format!("hostel plugins enable {}", worker.plugin());
        match worker.start() {
            Ok(ready) => {
                let names: Vec<&str> =
                    ready.providers.iter().map(|provider| provider.name.as_str()).collect();
                self.add(row("library.load", about, Verdict::Passed, names.join(", "), reproduce));
                Some(ready)
            }
            Err(error) => {
                let detail = format!("{error}; {}", error.hint);
                self.add(row("library.load", about, Verdict::Failed, detail, reproduce));
                None
            }
        }
    }

    /// Says how far it is held to its permissions.
    pub(super) fn permissions(&mut self, found: &Discovered, ready: &Ready) {
        let about = "it works within the permissions that its manifest asks for";
        let words = found.manifest.permissions.words().join(", ");
        let reproduce = format!("hostel plugins show {}", found.manifest.name);
        let (verdict, detail) = if ready.unenforced.is_empty() {
            (Verdict::Passed, words)
        } else {
            (Verdict::Skipped, format!("{words}; {}", ready.unenforced.join("; ")))
        };
        self.add(row("library.permissions", about, verdict, detail, reproduce));
    }

    /// Asks for every attribute in a worker that dies of the first socket.
    pub(super) fn quiet(&mut self, plan: &Plan, ready: &Ready) {
        let about = "neither `register` nor an attribute opens a network connection";
        let worker = Worker::new(Plan { trap_network: true, ..plan.clone() });
        let verdict = worker.start().map_err(|error| error.to_string()).and_then(|_| {
            for registered in &ready.providers {
                let provider: Provider =
                    Arc::new(RemoteProvider::new(registered.name.clone(), Arc::clone(&worker)));
                let _ = (Flags::read(&provider), provider.probe(), provider.is_available());
                let _ = (provider.doctor_checks(), provider.setup_instructions(), provider.config_schema());
                let _ = (provider.display_name(), provider.description());
            }
            // The next question starts another.
            match worker.crashes() {
                0 => Ok(()),
                _ => Err("its process was killed when it made a socket, or crashed by itself".into()),
            }
        });
        let (verdict, detail) = match verdict {
            Ok(()) => (Verdict::Passed, String::new()),
            Err(reason) => (Verdict::Failed, reason),
        };
        let reproduce = "strace -f -e trace=network hostel backends";
        self.add(row("attributes.network", about, verdict, detail, reproduce));
    }

    /// Holds a provider to the rules of the interface.
    pub(super) fn provider(
        &mut self,
        provider: &Arc<dyn TerminalEnvironmentProvider>,
        kit: &testing::Options,
    ) {
        let report = testing::check_with(provider, kit, self.progress);
        self.report.rows.extend(report.rows);
    }

    /// Ends the worker, and sees whether anything of it stays.
    pub(super) fn end(&mut self, worker: Arc<Worker>) {
        let about = "the worker ends when it is told to, and leaves no process";
        let reproduce = "pgrep -f plugin-";
        let crashes = worker.crashes();
        let (verdict, detail) = if crashes > 0 {
            (Verdict::Failed, format!("its worker crashed {crashes} times"))
        } else {
            let id = worker.process_id();
            drop(worker);
            // What has ended and waits for its parent counts as gone.
            let alive = || {
                let stat = id.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok());
                stat.is_some_and(|stat| !stat.contains(") Z "))
            };
            let until = Instant::now() + PARTING;
            while alive() && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            if alive() {
                (Verdict::Failed, "it was still there after 5 s".to_owned())
            } else {
                (Verdict::Passed, String::new())
            }
        };
        self.add(row("library.end", about, verdict, detail, reproduce));
    }
}
