//! The road of a check: from a folder to a report.

use std::path::Path;
use std::sync::Arc;

use hostel_plugin_api::TerminalEnvironmentProvider;
use hostel_plugin_api::testing::{self, Report, Row, Verdict};
use serde_json::Value;

use super::super::load::{Discovered, Pin};
use super::super::signature::Signing;
use super::super::worker::{Limits, Plan, RemoteProvider, Worker};
use super::rules::Rules;
use super::subject::{self, SubjectError};
use crate::home::Home;

/// How a plugin is to be checked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether a crate is built as it is shipped.
    pub release: bool,
    /// Only rules whose id begins with this are tried.
    pub only: Option<String>,
    /// What stands for the user's `terminal.backends.NAME`.
    pub settings: Option<Value>,
    /// Is told of the folder that is made for the check, which nobody else knows of.
    pub on_room: Option<fn(&Path)>,
}

/// What was checked, and what came of it.
#[derive(Debug)]
pub struct Checked {
    /// The plugin's name, if it has one.
    pub plugin: Option<String>,
    /// A row for each rule.
    pub report: Report,
}

/// The limits of a worker that is checked: those that a host has where nothing is configured.
const LIMITS: Limits = Limits { memory: 2048, open_files: 1024 };

/// Checks the plugin at `path`: a folder that could be dropped in, or a crate, which is built. Each row is passed to `progress`
/// as soon as there is one.
///
/// # Errors
///
/// Fails if there is nothing to check there.
pub fn check(
    path: &Path,
    options: &Options,
    progress: &mut dyn FnMut(&Row),
) -> Result<Checked, SubjectError> {
    let subject = subject::find(path, options)?;
    let mut rules = Rules::new(options.only.as_deref(), progress);
    let plugin = examine(&subject, options, &mut rules);
    Ok(Checked { plugin, report: rules.report() })
}

fn examine(subject: &subject::Subject, options: &Options, rules: &mut Rules<'_>) -> Option<String> {
    let manifest = rules.manifest(&subject.folder)?;
    let name = manifest.name.clone();
    let found = Discovered { folder: subject.folder.clone(), manifest };
    let plan = rules.library(&found, &subject.home)?;
    let worker = Worker::new(plan.clone());
    let ready = rules.load(&worker)?;
    rules.permissions(&found, &ready);
    rules.attributes(&plan, &ready);
    rules.quiet(&plan, &ready);
    for registered in ready.providers {
        let provider: Arc<dyn TerminalEnvironmentProvider> =
            Arc::new(RemoteProvider::new(registered.name, Arc::clone(&worker)));
        let mut kit = testing::Options::default();
        kit.only.clone_from(&options.only);
        kit.process_of_provider = worker.process_id();
        kit.adopter_of_provider = worker.keeper_id();
        kit.state_dir = Some(subject.home.path().to_owned());
        if let Some(settings) = &options.settings {
            kit.config.clone_from(settings);
        }
        rules.provider(&provider, &kit);
    }
    rules.end(&worker);
    Some(name)
}

/// What is needed to start a worker for a plugin that nobody has enabled.
pub(super) fn plan(found: &Discovered, home: &Home, pin: Pin) -> Plan {
    Plan {
        found: found.clone(),
        pin: Some(pin),
        record: None,
        signing: Signing::default(),
        home: home.clone(),
        settings: Value::Null,
        secrets: found.manifest.secrets().collect(),
        limits: LIMITS,
        trap_network: false,
        watched: true,
    }
}

/// Makes a row.
pub(super) fn row(
    rule: &'static str,
    about: &str,
    verdict: Verdict,
    detail: impl Into<String>,
    reproduce: impl Into<String>,
) -> Row {
    Row { rule, about: about.to_owned(), verdict, detail: detail.into(), reproduce: reproduce.into() }
}
