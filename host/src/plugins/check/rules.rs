//! The rules that only a host can try.

use std::path::Path;
use std::sync::Arc;

use hostel_plugin_api::testing::{self, Report, Row, Verdict};
use hostel_plugin_api::{Error, ErrorKind, TerminalEnvironmentProvider};

use super::super::load::Discovered;
use super::super::manifest::Manifest;
use super::super::worker::message::Attribute;
use super::super::worker::{Plan, Ready, RemoteProvider, UNSEEN, Worker};
use super::examine::{plan, row};
use crate::home::Home;

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

    /// Asks for every attribute, where a host would put a default in the place of one that fails.
    pub(super) fn attributes(&mut self, plan: &Plan, ready: &Ready) {
        let about = "no attribute panics, or ends its process";
        let mut worker = Worker::new(plan.clone());
        let mut failed = Vec::new();
        for (name, attribute) in questions(ready) {
            if let Err(error) = ask(&worker, name, attribute) {
                failed.push(format!("`{}` of `{name}`: {error}", attribute.name()));
                // Too many ends of one worker, and the others would not be asked.
                worker = Worker::new(plan.clone());
            }
        }
        let verdict = if failed.is_empty() { Verdict::Passed } else { Verdict::Failed };
        let reproduce = "hostel --verbose backends";
        self.add(row("attributes.panics", about, verdict, failed.join("; "), reproduce));
    }

    /// Asks for every attribute in a worker that dies of the first socket that it, or a program of its, makes for another machine.
    pub(super) fn quiet(&mut self, plan: &Plan, ready: &Ready) {
        let about = "neither `register` nor an attribute opens a network connection";
        let (verdict, detail) = match called_out(plan, ready) {
            Ok(remark) => (Verdict::Passed, remark),
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
    pub(super) fn end(&mut self, worker: &Worker) {
        let about = "the worker ends when it is told to, and leaves no process";
        let reproduce = "ps -e -o pid,ppid,args   # after a command, below `hostel plugin-worker`";
        let crashes = worker.crashes();
        let ended = super::left::end(worker);
        let (verdict, detail) = match (crashes, ended) {
            (0, Ok(())) => (Verdict::Passed, String::new()),
            (0, Err(left)) => (Verdict::Failed, left),
            (crashes, Ok(())) => (Verdict::Failed, format!("its worker crashed {crashes} times")),
            (crashes, Err(left)) => (Verdict::Failed, format!("its worker crashed {crashes} times; {left}")),
        };
        self.add(row("library.end", about, verdict, detail, reproduce));
    }
}

/// Every attribute of every provider, which is named before it.
fn questions(ready: &Ready) -> impl Iterator<Item = (&str, Attribute)> {
    let names = ready.providers.iter().map(|provider| provider.name.as_str());
    names.flat_map(|name| Attribute::ALL.map(|attribute| (name, attribute)))
}

fn ask(worker: &Arc<Worker>, name: &str, attribute: Attribute) -> Result<(), Error> {
    RemoteProvider::new(name.to_owned(), Arc::clone(worker)).try_attribute(attribute)
}

/// Says who calls out, if somebody does, and else how far that was looked at, if not all was.
fn called_out(plan: &Plan, ready: &Ready) -> Result<String, String> {
    let plan = Plan { trap_network: true, ..plan.clone() };
    let mut worker = Worker::new(plan.clone());
    let started = worker.start().map_err(|error| error.to_string())?;
    for (name, attribute) in questions(ready) {
        let crashed = || "its process was killed when a socket was made, or crashed by itself".to_owned();
        match ask(&worker, name, attribute) {
            Err(error) if error.kind() == ErrorKind::CRASHED => {
                return Err(format!("`{}` of `{name}`: {error}", attribute.name()));
            }
            // It was killed for that, which is for another rule to say.
            Err(error) if error.kind() == ErrorKind::TIMEOUT => worker = Worker::new(plan.clone()),
            // The question before may have left it to a thread.
            _ if worker.crashes() > 0 => return Err(crashed()),
            _ => {}
        }
    }
    Ok(started.unenforced.into_iter().find(|line| line == UNSEEN).unwrap_or_default())
}
