//! The conformance kit: a sound provider passes, and each wrong one fails the rule that it breaks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment, StripList};
use hostel_plugin_api::testing::{Options, Report, Verdict, check, check_with};
use hostel_plugin_api::{
    CreateEnvironment, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Probe, Stdin,
    TerminalEnvironmentProvider,
};

/// What a provider does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    BadName,
    CancellationIgnored,
    CleanupHangs,
    CodeChanged,
    DeadlineIgnored,
    DescriptorLeaked,
    ExtrasRefused,
    NotAvailable,
    OutputHeldBack,
    PanicInAttribute,
    ProcessLeaked,
    SecretsShown,
    SlowProbe,
    StateShared,
    StdinSwallowed,
    StopIgnored,
    ThreadLeaked,
}

type Session = ShellEnvironment<LocalTransport>;
type Shared = Arc<Mutex<Option<Arc<Session>>>>;

struct Provider {
    fault: Fault,
    shared: Shared,
}

impl TerminalEnvironmentProvider for Provider {
    fn name(&self) -> &'static str {
        if self.fault == Fault::BadName { "Bad Name" } else { "goodbox" }
    }

    fn is_available(&self) -> bool {
        self.fault != Fault::NotAvailable
    }

    fn description(&self) -> String {
        assert_ne!(self.fault, Fault::PanicInAttribute, "asked to");
        "Run commands in a folder of a test's".into()
    }

    fn probe(&self) -> Probe {
        if self.fault == Fault::SlowProbe {
            thread::sleep(Duration::from_millis(900));
        }
        if self.is_available() { Probe::ready("") } else { Probe::needs_setup("the box is shut") }
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn is_container(&self) -> bool {
        false
    }

    fn strip_env_keys(&self) -> Vec<String> {
        vec!["GOODBOX_TOKEN".into()]
    }

    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        if self.fault == Fault::ExtrasRefused && !request.extra.is_empty() {
            return Err(Error::new(ErrorKind::INVALID_REQUEST, "this is news").not_started());
        }
        if self.fault == Fault::ThreadLeaked {
            thread::spawn(|| thread::sleep(Duration::from_secs(600)));
        }
        let here = request.host_cwd.clone().unwrap_or_else(|| "/".into());
        let mut options = SessionOptions::new(&request, std::env::vars_os().collect(), Path::new(&here));
        if self.fault == Fault::SecretsShown {
            options.strip = StripList::default();
        }
        let session = if self.fault == Fault::StateShared {
            options.state_dir = None;
            let mut shared = self.shared.lock().unwrap();
            let session = match shared.take() {
                Some(session) => session,
                None => Arc::new(Session::new(LocalTransport, options)?),
            };
            *shared = Some(Arc::clone(&session));
            session
        } else {
            Arc::new(Session::new(LocalTransport, options)?)
        };
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Place { fault: self.fault, keep: request.persistent, session, shared }))
    }
}

struct Place {
    fault: Fault,
    keep: bool,
    session: Arc<Session>,
    shared: Shared,
}

impl Environment for Place {
    fn execute(&self, mut request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        match self.fault {
            Fault::StdinSwallowed if matches!(request.stdin, Stdin::Bytes(_)) => {
                request.stdin = Stdin::Empty;
            }
            Fault::DescriptorLeaked => std::mem::forget(std::fs::File::open("/dev/null").unwrap()),
            Fault::ProcessLeaked => {
                request.command = format!("(sleep 30 </dev/null >/dev/null 2>&1 &)\n{}", request.command);
            }
            _ => {}
        }
        let wrapped = Wrapped { fault: self.fault, io, held: Mutex::default() };
        let mut outcome = self.session.execute(request, &wrapped)?;
        io.output(&wrapped.held.into_inner().unwrap());
        if self.fault == Fault::CodeChanged && outcome.exit_code == 7 {
            outcome.exit_code = 1;
        }
        Ok(outcome)
    }

    fn cleanup(&self) -> Result<(), Error> {
        if self.fault == Fault::CleanupHangs {
            thread::sleep(Duration::from_secs(600));
        }
        if !self.keep {
            *self.shared.lock().unwrap() = None;
        }
        self.session.cleanup()
    }

    fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), Error> {
        self.session.write_file(path, contents)
    }
}

/// Stands between a session and its caller, and keeps something from one of them.
struct Wrapped<'a> {
    fault: Fault,
    io: &'a dyn ExecIo,
    held: Mutex<Vec<u8>>,
}

impl ExecIo for Wrapped<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        if self.fault == Fault::OutputHeldBack {
            self.held.lock().unwrap().extend_from_slice(bytes);
            return Flow::Continue;
        }
        let flow = self.io.output(bytes);
        if self.fault == Fault::StopIgnored { Flow::Continue } else { flow }
    }

    fn cancelled(&self) -> bool {
        self.fault != Fault::CancellationIgnored && self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd().filter(|_| self.fault != Fault::CancellationIgnored)
    }

    fn deadline(&self) -> Option<Instant> {
        self.io.deadline().filter(|_| self.fault != Fault::DeadlineIgnored)
    }
}

/// What is counted of the process is counted while no other test runs.
static PROCESS: RwLock<()> = RwLock::new(());

fn provider(fault: Fault) -> Arc<dyn TerminalEnvironmentProvider> {
    Arc::new(Provider { fault, shared: Shared::default() })
}

fn report(fault: Fault, only: &str) -> Report {
    let mut options = Options::default();
    options.only = Some(only.into());
    options.probe_limit = Duration::from_millis(500);
    options.deadline = Duration::from_millis(500);
    options.slack = Duration::from_secs(2);
    options.cleanup_limit = Duration::from_secs(2);
    check(&provider(fault), &options)
}

/// Holds the provider with `fault` to failing exactly the rules `broken` among those that begin with `only`.
fn fails(fault: Fault, only: &str, broken: &[&str]) {
    let report = report(fault, only);
    let failed: Vec<&str> = report.failed().map(|row| row.rule).collect();
    assert_eq!(failed, broken, "{fault:?}\n{report}");
    assert!(!report.passed());
    for row in report.failed() {
        assert!(!row.detail.is_empty() && !row.reproduce.contains("BACKEND"), "{row}");
    }
}

fn fails_beside_others(fault: Fault, only: &str, broken: &[&str]) {
    let _beside = PROCESS.read();
    fails(fault, only, broken);
}

fn fails_alone(fault: Fault, only: &str, broken: &[&str]) {
    let _alone = PROCESS.write();
    fails(fault, only, broken);
}

#[test]
fn a_sound_provider_passes_every_rule_in_time() {
    let _alone = PROCESS.write();
    let start = Instant::now();
    let mut rules = Vec::new();
    let report = check_with(&provider(Fault::None), &Options::default(), &mut |row| rules.push(row.rule));
    report.assert();
    assert!(report.rows.len() > 40 && report.skipped().next().is_none(), "{report}");
    assert_eq!(rules, report.rows.iter().map(|row| row.rule).collect::<Vec<_>>());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"][0]["rule"], "attributes.answer");
    assert_eq!(json["rows"][0]["verdict"], "passed");
}

#[test]
fn a_provider_that_is_not_available_is_not_made_to_run_anything() {
    let _beside = PROCESS.read();
    let report = report(Fault::NotAvailable, "");
    report.assert();
    let skipped: Vec<_> = report.skipped().collect();
    assert!(skipped.len() > 25 && report.rows.len() > skipped.len(), "{report}");
    for row in skipped {
        assert_eq!(row.verdict, Verdict::Skipped);
        assert!(row.detail.contains("the box is shut"), "{row}");
    }
}

#[test]
fn what_a_provider_says_of_itself_is_judged() {
    fails_beside_others(Fault::BadName, "attributes.", &["attributes.name"]);
    fails_beside_others(Fault::PanicInAttribute, "attributes.", &["attributes.answer"]);
    fails_beside_others(Fault::SlowProbe, "attributes.", &["attributes.answer"]);
}

#[test]
fn how_commands_run_is_judged() {
    fails_beside_others(Fault::CodeChanged, "exec.", &["exec.exit-code"]);
    fails_beside_others(Fault::StdinSwallowed, "exec.", &["exec.stdin"]);
    fails_beside_others(Fault::OutputHeldBack, "exec.", &["exec.streaming"]);
    fails_beside_others(Fault::ExtrasRefused, "create.", &["create.unknown-extras"]);
}

#[test]
fn secrets_that_are_shown_are_found() {
    fails_beside_others(Fault::SecretsShown, "secrets.", &["secrets.inherited", "secrets.request"]);
}

#[test]
fn how_environments_stand_beside_one_another_and_end_is_judged() {
    fails_beside_others(Fault::StateShared, "life.", &["life.apart"]);
    fails_beside_others(Fault::CleanupHangs, "life.", &["life.cleanup"]);
}

#[test]
fn a_provider_that_ignores_the_deadline_does_not_hang_the_kit() {
    fails_beside_others(Fault::DeadlineIgnored, "ends.", &["ends.timeout", "ends.stubborn"]);
}

#[test]
fn a_provider_that_ignores_its_caller_does_not_hang_the_kit() {
    fails_beside_others(Fault::CancellationIgnored, "ends.", &["ends.cancel"]);
    fails_beside_others(Fault::StopIgnored, "ends.", &["ends.stop"]);
}

#[test]
fn what_is_left_behind_is_found() {
    fails_alone(Fault::DescriptorLeaked, "leaks.", &["leaks.descriptors"]);
    fails_alone(Fault::ThreadLeaked, "leaks.", &["leaks.threads"]);
    fails_alone(Fault::ProcessLeaked, "leaks.", &["leaks.processes"]);
}

#[test]
fn the_table_says_what_is_wrong_and_how_to_see_it() {
    let _beside = PROCESS.read();
    let table = report(Fault::CodeChanged, "exec.exit-code").to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("FAILED   exec.exit-code"), "{table}");
    assert!(lines[1].contains("`exit 7` gave exit code 1"), "{table}");
    assert!(lines[2].contains("to see it: hostel exec --backend goodbox -- 'exit 7'"), "{table}");
    assert_eq!(lines[3], "0 passed, 1 failed, 0 skipped");
}
