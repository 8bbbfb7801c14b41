//! What a command in a session costs, and the session itself.
//!
//! A session's first command gets a shell that is started for it, and so does the second, beside which the resident shell is started;
//! later ones get a copy of that. All are measured in one run with a plain spawn of bash: once as the session does it by itself, and
//! once on the road that every command of the product takes.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hostel::environments::{Environments, SharedIo};
use hostel::home::Home;
use hostel::world::{Options, World};
use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment, Spawn, spawn};
use hostel_plugin_api::{CreateEnvironment, Environment, ExecRequest};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::shuffled::{shuffled, timed};
use super::{Quiet, Row, quantile, spawn_bash};

/// Succeeds in a copy of the resident shell only.
const IS_COPY: &str = "grep -q hostel_serve /proc/$$/cmdline";

/// A session whose state lies in a folder of its own, and which has read no login files.
pub(crate) struct Session {
    environment: ShellEnvironment<LocalTransport>,
    _dir: tempfile::TempDir,
}

impl Session {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let environment = ShellEnvironment::new(LocalTransport, options(dir.path(), None));
        Self { environment: environment.expect("a session"), _dir: dir }
    }

    /// Makes one whose commands run in copies.
    pub(crate) fn warm() -> Self {
        let session = Self::new();
        session.warm_up();
        session
    }

    /// Runs commands until one gets a copy.
    pub(crate) fn warm_up(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while !self.is_warm() {
            assert!(Instant::now() < until, "there is no resident shell, or it never came up");
        }
    }

    /// Returns whether the next command will get a copy, too.
    pub(crate) fn is_warm(&self) -> bool {
        let outcome = self.environment.execute(ExecRequest::new(IS_COPY), &Quiet).expect("it runs");
        outcome.exit_code == 0
    }

    pub(crate) fn request(&self, request: ExecRequest) {
        self.request_with(request, &Quiet);
    }

    pub(crate) fn request_with(&self, request: ExecRequest, io: &dyn hostel_plugin_api::ExecIo) {
        let outcome = self.environment.execute(request, io).expect("it runs");
        assert_eq!((outcome.exit_code, outcome.warnings), (0, Vec::new()));
    }

    pub(crate) fn run(&self, command: &str) {
        self.request(ExecRequest::new(command));
    }
}

/// The options of a session whose state is to lie in `dir`: with the usual login files of the home directory `login`, or with none.
fn options(dir: &Path, login: Option<&Path>) -> SessionOptions {
    let mut request = CreateEnvironment::default();
    request.state_dir = Some(dir.join("state").to_string_lossy().into_owned());
    request.persistent = true;
    request.extra.insert("auto_source_bashrc".into(), login.is_some().into());
    let mut base: Vec<_> = std::env::vars_os().collect();
    if let Some(home) = login {
        base.retain(|(name, _)| name != "HOME");
        base.push(("HOME".into(), home.into()));
    }
    SessionOptions::new(&request, base, Path::new("/"))
}

/// The road of every command of the product, to a session like the one above.
pub(crate) struct Road {
    environments: Environments,
    world: World,
    io: SharedIo,
    _dir: tempfile::TempDir,
}

impl Road {
    pub(crate) fn warm() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let config = "terminal:\n  auto_source_bashrc: false\n";
        fs::write(dir.path().join("config.yaml"), config).expect("a configuration");
        let home = Home::at(dir.path().to_owned()).expect("a home");
        let world = World::open(Options { home: Some(home), backend: None }).expect("a world");
        let road = Self { environments: Environments::default(), world, io: Arc::new(Quiet), _dir: dir };
        let until = Instant::now() + Duration::from_secs(10);
        while road.code(IS_COPY) != 0 {
            assert!(Instant::now() < until, "there is no resident shell, or it never came up");
        }
        road
    }

    fn code(&self, command: &str) -> i32 {
        let entry = self.world.backend("local").expect("it is there");
        let request = ExecRequest::new(command);
        let outcome = self.environments.execute(&self.world, entry, "bench", request, &self.io);
        outcome.expect("it runs").exit_code
    }

    pub(crate) fn run(&self, command: &str) {
        assert_eq!(self.code(command), 0);
    }
}

/// The same floor as `spawn_bash`, by the spawn function that the session uses.
fn spawn_as_sessions_do() {
    let null = fs::File::options().read(true).write(true).open("/dev/null").expect("it is there");
    let env: Vec<_> = std::env::vars_os().collect();
    let process = spawn(&Spawn {
        program: Path::new("/bin/bash"),
        argv: &["bash".into(), "-c".into(), "true".into()],
        env: &env,
        cwd: Path::new("/"),
        descriptors: vec![null.as_fd(), null.as_fd(), null.as_fd()],
        terminal: false,
        cgroup: None,
    })
    .expect("bash starts");
    let ended = waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED).expect("it ends");
    assert_eq!(ended.and_then(|status| status.exit_status()), Some(0));
}

/// One command after another.
pub(crate) fn one() -> Vec<Row> {
    let (session, road) = (Session::warm(), Road::warm());
    let [plain, own, warm, whole, first, second] = shuffled(
        500,
        &mut [
            &mut || timed(spawn_bash),
            &mut || timed(spawn_as_sessions_do),
            &mut || timed(|| session.run("true")),
            &mut || timed(|| road.run("true")),
            &mut || {
                let session = Session::new();
                timed(|| session.run("true"))
            },
            &mut || {
                let session = Session::new();
                session.run("true");
                timed(|| session.run("true"))
            },
        ],
    );
    assert!(session.is_warm() && road.code(IS_COPY) == 0, "copies were to be measured");
    // Whichever is the cheaper one here.
    let floor = if quantile(&own, 50) < quantile(&plain, 50) { &own } else { &plain };
    let row = |percent, work: String, ours: &[Duration], goal| Row {
        work,
        floor: quantile(floor, percent),
        ours: quantile(ours, percent),
        goal,
    };
    let kinds = [
        ("session, warm", &warm, "0.60×"),
        ("whole road, warm", &whole, "0.60×"),
        ("session, first", &first, ""),
        ("session, second", &second, ""),
    ];
    let rows = kinds.into_iter().flat_map(|(name, ours, goal)| {
        let work = |quantile: &str| format!("`true`, {name}, {quantile} / spawn");
        [row(50, work("median"), ours, goal), row(99, work("p99"), ours, "")]
    });
    rows.collect()
}

const AT_ONCE: u32 = 50;

/// Does `work` on so many threads at once. Returns how long that took from the first to begin to the last to end, per thread.
fn at_once(work: impl Fn() + Sync) -> Duration {
    let gate = Barrier::new(AT_ONCE as usize);
    let spans: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let one = || {
            gate.wait();
            let start = Instant::now();
            work();
            (start, Instant::now())
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    let first = spans.iter().map(|(start, _)| *start).min().expect("there are some");
    let last = spans.iter().map(|(_, end)| *end).max().expect("there are some");
    (last - first) / AT_ONCE
}

/// Many commands at once in one session.
pub(crate) fn many() -> Vec<Row> {
    let (session, road) = (Session::warm(), Road::warm());
    let [floor, warm, whole] = shuffled(
        30,
        &mut [&mut || at_once(spawn_bash), &mut || at_once(|| session.run("true")), &mut || {
            at_once(|| road.run("true"))
        }],
    );
    let row = |name: &str, ours: &[Duration]| Row {
        work: format!("`true`, one of {AT_ONCE} at once, {name} / spawn"),
        floor: quantile(&floor, 50),
        ours: quantile(ours, 50),
        goal: "",
    };
    vec![row("session", &warm), row("road", &whole)]
}

/// What it takes until a session is there.
pub(crate) fn start() -> Vec<Row> {
    let home = tempfile::tempdir().expect("a folder");
    let folders = || {
        let dir = tempfile::tempdir().expect("a folder");
        timed(|| fs::create_dir_all(dir.path().join("state/shell/calls")).expect("folders"))
    };
    let login_shell = || {
        let mut command = Command::new("/bin/bash");
        command.args(["-l", "-c", "true"]).env("HOME", home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("bash starts").success());
    };
    let begin = |login: Option<&Path>| {
        let dir = tempfile::tempdir().expect("a folder");
        let options = options(dir.path(), login);
        let start = Instant::now();
        let session = ShellEnvironment::new(LocalTransport, options).expect("a session");
        if login.is_some() {
            // The first command has them read.
            let outcome = session.execute(ExecRequest::new(":"), &Quiet).expect("it runs");
            assert_eq!(outcome.exit_code, 0);
        }
        let time = start.elapsed();
        drop(session);
        time
    };
    let [made, plain, read, usual] = shuffled(
        200,
        &mut [&mut { folders }, &mut || begin(None), &mut || timed(login_shell), &mut || {
            begin(Some(home.path()))
        }],
    );
    let row = |work: &str, floor: &[Duration], ours: &[Duration]| Row {
        work: work.into(),
        floor: quantile(floor, 50),
        ours: quantile(ours, 50),
        goal: "",
    };
    vec![
        row("a session, no login files / its folders", &made, &plain),
        row("a session, usual login files and its first command / `bash -l`", &read, &usual),
    ]
}
