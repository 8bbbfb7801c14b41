//! What the rules stand on: the provider, and environments made of it.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::Value;

use super::held::Held;
use super::leaks::Growth;
use super::limit::{Silent, limited, lock};
use super::options::Options;
use super::recorder::Recorder;
use super::rule::{Unmet, hold, shown, skipped, told};
use crate::shell::{end_call, end_calls};
use crate::{CreateEnvironment, Error, ExecOutcome, ExecRequest, ProbeStatus, TerminalEnvironmentProvider};

/// What is tried.
pub(super) type Provider = dyn TerminalEnvironmentProvider;

/// How long a command of the kit may take that takes no time by itself.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// How long `check_requirements` may take, which may be slower than an attribute.
const REQUIREMENTS_LIMIT: Duration = Duration::from_secs(30);

/// After so many rules without an answer no further command is tried.
const PATIENCE: u32 = 3;

/// The provider under test, and what the rules share.
pub(super) struct Bench {
    pub(super) options: Options,
    /// Begins every name that the kit gives away, so that none was there before.
    pub(super) mark: String,
    /// What was counted for the rules about leaks.
    pub(super) growth: Mutex<Option<Result<Growth, Unmet>>>,
    provider: Arc<Provider>,
    scratch: tempfile::TempDir,
    tasks: PathBuf,
    host_cwd: PathBuf,
    shared: Mutex<Option<Arc<Held>>>,
    running: Mutex<BTreeSet<String>>,
    silent: Mutex<BTreeSet<&'static str>>,
    count: AtomicU32,
    hung: AtomicU32,
    barren: AtomicBool,
    stuck: Arc<AtomicBool>,
    ready: OnceLock<Result<Value, String>>,
}

impl Bench {
    pub(super) fn new(provider: &Arc<Provider>, options: &Options) -> io::Result<Self> {
        let mark = format!("kit{:016x}", random());
        let mut scratch = tempfile::Builder::new();
        let scratch = scratch.prefix("hostel-kit-");
        // Where the caller has a place of its own, that goes with it.
        let scratch = match &options.state_dir {
            Some(dir) => scratch.tempdir_in(dir)?,
            None => scratch.tempdir()?,
        };
        // As deep as with a host: a provider may look for the host's home above its own folder.
        let home = options.state_dir.clone().unwrap_or_else(|| scratch.path().join("home"));
        let tasks = home.join("state/tasks").join(&mark);
        let host_cwd = scratch.path().join("here");
        for folder in [&tasks, &host_cwd] {
            make_private(folder)?;
        }
        Ok(Self {
            options: options.clone(),
            mark,
            growth: Mutex::default(),
            provider: Arc::clone(provider),
            scratch,
            tasks,
            host_cwd,
            shared: Mutex::default(),
            running: Mutex::default(),
            silent: Mutex::default(),
            count: AtomicU32::new(0),
            hung: AtomicU32::new(0),
            barren: AtomicBool::new(false),
            stuck: Arc::default(),
            ready: OnceLock::new(),
        })
    }

    /// Asks the provider something that takes no time.
    pub(super) fn question<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Provider) -> T + Send + 'static,
    ) -> Result<T, Silent> {
        let provider = Arc::clone(&self.provider);
        let limit = self.options.probe_limit * 2 + Duration::from_secs(1);
        limited(limit, move || question(provider.as_ref()))
    }

    /// Checks the provider's requirements with `config`, which may take longer.
    pub(super) fn requirements(&self, config: Value) -> Result<Result<(), Error>, Silent> {
        let provider = Arc::clone(&self.provider);
        limited(REQUIREMENTS_LIMIT, move || provider.check_requirements(&config))
    }

    /// Asks for the attribute `what`, of which one rule says that it must answer: where it does not, others are skipped.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Provider) -> T + Send + 'static,
    ) -> Result<T, Unmet> {
        let known = lock(&self.silent).contains(what);
        let answer = if known { None } else { self.question(question).ok() };
        answer.ok_or_else(|| {
            self.silence(what);
            Unmet::Skipped(format!("`{what}` gives no answer: see `attributes.answer`"))
        })
    }

    /// Keeps in mind that `what` gives no answer.
    pub(super) fn silence(&self, what: &'static str) {
        lock(&self.silent).insert(what);
    }

    /// Returns the resolved settings if the provider can be used, and else why not.
    fn ready(&self) -> &Result<Value, String> {
        self.ready.get_or_init(|| self.look().map_err(Unmet::into_reason))
    }

    fn look(&self) -> Result<Value, Unmet> {
        let probe = self.ask("probe", TerminalEnvironmentProvider::probe)?;
        if probe.status != ProbeStatus::READY {
            return skipped(format!("`probe` says `{}`: {}", probe.status.as_str(), probe.detail));
        }
        if !self.ask("is_available", TerminalEnvironmentProvider::is_available)? {
            return skipped("`is_available` returns false");
        }
        let config = self.options.config.clone();
        let resolved = match self.question(move |provider| provider.resolve_config(config)) {
            Ok(Ok(resolved)) => resolved,
            Ok(Err(error)) => return skipped(told("`resolve_config`", &error)),
            Err(silent) => return skipped(format!("`resolve_config`: {silent}")),
        };
        match self.requirements(resolved.clone()) {
            Ok(Ok(())) => Ok(resolved),
            Ok(Err(error)) => skipped(told("`check_requirements`", &error)),
            Err(silent) => skipped(format!("`check_requirements`: {silent}")),
        }
    }

    /// Returns why no command can be tried, if that is so.
    pub(super) fn closed(&self) -> Option<String> {
        if self.hung.load(Ordering::Relaxed) >= PATIENCE {
            return Some(format!("{PATIENCE} rules before it had no answer"));
        }
        if self.barren.load(Ordering::Relaxed) {
            return Some("there is no environment: `create_environment` failed before".into());
        }
        self.ready().as_ref().err().cloned()
    }

    /// Returns whether commands run on this machine, where `/proc` may show them.
    pub(super) fn is_local(&self) -> Result<bool, Unmet> {
        Ok(!self.ask("is_remote", TerminalEnvironmentProvider::is_remote)?)
    }

    /// Makes the request for an environment of the kit's own task `task`, as a host would.
    pub(super) fn request(&self, task: &str) -> Result<CreateEnvironment, Unmet> {
        let config = self.ready().clone().map_err(Unmet::Skipped)?;
        let folder = self.tasks.join(task);
        make_private(&folder).map_err(|error| {
            Unmet::Skipped(format!("the kit failed to make `{}`: {error}", folder.display()))
        })?;
        let among_host_files =
            self.is_local()? && !self.ask("is_container", TerminalEnvironmentProvider::is_container)?;
        let default = self.ask("default_cwd", TerminalEnvironmentProvider::default_cwd)?;
        let mut strip_env = self.ask("strip_env_keys", TerminalEnvironmentProvider::strip_env_keys)?;
        strip_env.extend(self.options.strip_env.iter().cloned());
        Ok(CreateEnvironment {
            task_id: format!("{}-{task}", self.mark),
            cwd: self.options.cwd.clone().or_else(|| default.filter(|_| !among_host_files)),
            timeout: Duration::from_secs(60),
            host_cwd: among_host_files.then(|| self.host_cwd.to_string_lossy().into_owned()),
            config,
            state_dir: Some(folder.to_string_lossy().into_owned()),
            strip_env,
            ..CreateEnvironment::default()
        })
    }

    pub(super) fn create(&self, request: CreateEnvironment) -> Result<Held, Unmet> {
        let made = self.provider.create_environment(request);
        let made = made.map_err(|error| Unmet::Broken(told("`create_environment`", &error)))?;
        Ok(Held::new(made, self.options.cleanup_limit, Arc::clone(&self.stuck)))
    }

    /// Makes an environment of its own for the task `task`.
    pub(super) fn create_for(&self, task: &str) -> Result<Held, Unmet> {
        self.create(self.request(task)?)
    }

    /// Returns the environment in which all rules run that leave it as it was.
    pub(super) fn shared(&self) -> Result<Arc<Held>, Unmet> {
        if let Some(held) = lock(&self.shared).as_ref() {
            return Ok(Arc::clone(held));
        }
        // One that was left behind may still be cleaning up its own folder.
        let made = self.create_for(&format!("shared{}", self.number()));
        if let Err(Unmet::Broken(_)) = &made {
            self.barren.store(true, Ordering::Relaxed);
        }
        let held = Arc::new(made?);
        *lock(&self.shared) = Some(Arc::clone(&held));
        Ok(held)
    }

    /// Makes one call, and keeps its id as long as it runs.
    pub(super) fn attempt(
        &self,
        held: &Held,
        mut request: ExecRequest,
        recorder: &Recorder,
    ) -> Result<Ran, Error> {
        let call_id = format!("{}_{}", self.mark, self.number());
        request.call_id.clone_from(&call_id);
        lock(&self.running).insert(call_id.clone());
        let start = Instant::now();
        let answer = held.environment().execute(request, recorder);
        let took = start.elapsed();
        lock(&self.running).remove(&call_id);
        let first = recorder.first_output().map(|at| at.saturating_duration_since(start));
        Ok(Ran { outcome: answer?, output: recorder.recorded(), first, took })
    }

    /// Runs a command that takes no time by itself.
    pub(super) fn run(&self, held: &Held, request: ExecRequest) -> Result<Ran, Unmet> {
        let command = shown(request.command.as_bytes());
        let ran = self.attempt(held, request, &Recorder::until(Instant::now() + COMMAND_LIMIT));
        ran.map_err(|error| Unmet::Broken(told(&format!("the command {command}"), &error)))
    }

    /// Runs a command that must succeed and print exactly `output`.
    pub(super) fn expect(&self, held: &Held, request: ExecRequest, output: &str) -> Result<Ran, Unmet> {
        let command = shown(request.command.as_bytes());
        let ran = self.run(held, request)?;
        hold(ran.output == output.as_bytes(), || {
            let (wanted, printed) = (shown(output.as_bytes()), shown(&ran.output));
            format!("{command} printed {printed} and not {wanted}")
        })?;
        let code = ran.outcome.exit_code;
        hold(code == 0, || format!("{command} printed what it should and then returned {code}"))?;
        Ok(ran)
    }

    /// Runs a command that must succeed, and returns what it printed, without the end of the last line.
    pub(super) fn text(&self, held: &Held, request: ExecRequest) -> Result<String, Unmet> {
        let command = shown(request.command.as_bytes());
        let ran = self.run(held, request)?;
        let code = ran.outcome.exit_code;
        hold(code == 0, || format!("{command} returned {code} and printed {}", shown(&ran.output)))?;
        Ok(String::from_utf8_lossy(&ran.output).trim_end_matches('\n').to_owned())
    }

    fn number(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a number of seconds, a little more than a minute, that no other `sleep` sleeps.
    pub(super) fn marker(&self) -> String {
        format!("61.{:010}{:03}", random() % 10_000_000_000, self.number() % 1000)
    }

    /// Makes a new start after a rule was broken: what it left behind may be in any state.
    pub(super) fn recover(&self, hung: bool) {
        if hung {
            self.hung.fetch_add(1, Ordering::Relaxed);
        }
        let left = std::mem::take(&mut *lock(&self.running));
        for call_id in left {
            end_call(&call_id);
        }
        let shared = lock(&self.shared).take();
        drop(shared);
    }

    /// Takes down what the kit has made. A rule that hangs may hold the object itself for ever.
    pub(super) fn finish(&self) {
        let shared = lock(&self.shared).take();
        drop(shared);
        // What was left in the background on purpose.
        let _ = end_calls(&self.mark);
        // A provider that hangs may still be writing there, and what is above is not always the kit's own.
        let _ = fs::remove_dir_all(&self.tasks);
        for above in self.tasks.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(above);
        }
        let _ = fs::remove_dir_all(self.scratch.path());
    }
}

/// What came of a call that was answered.
pub(super) struct Ran {
    pub(super) outcome: ExecOutcome,
    pub(super) output: Vec<u8>,
    /// When the first output came, from the beginning of the call.
    pub(super) first: Option<Duration>,
    pub(super) took: Duration,
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        // Unique is enough.
        _ => UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos().into()),
    }
}
