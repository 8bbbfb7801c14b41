//! A provider as an agent's server has it: opened once, in this process, and called again and again.
//!
//! A program that runs one command and ends never sees what a session is like that is warm, nor what it keeps. Everything that
//! holds of providers can be tried on each of them by one and the same function, which gets a [`Subject`].

use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hostel::environments::{Environments, SharedIo, terminal};
use hostel::exec::{Outputs, Terminal};
use hostel::processes::{Lines, Processes, StartRequest, View, WaitStatus, WaitView};
use hostel::registry::Entry;
use hostel::world::{Options, World};
use hostel_plugin_api::{Error, ExecRequest, Stdin};

use crate::Home;
use crate::call::{Call, Ran, Watching};

/// How much is kept of a background process's output, in bytes.
pub const LOG_LIMIT: u64 = 200_000;

/// Prints whether this shell is a copy of the session's resident.
const IS_COPY: &str = "grep -c hostel_serve /proc/$$/cmdline";

/// How long a resident may take to come up, and a background process to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// One provider in a home of its own, and one session of it.
pub struct Subject {
    shared: Arc<Shared>,
    task: String,
}

struct Shared {
    // Let go in this order.
    environments: Environments,
    processes: Processes,
    world: World,
    home: Arc<Home>,
    backend: String,
    isolation: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { backend, isolation, .. } = &*self.shared;
        write!(f, "`{backend}` in `{isolation}`")
    }
}

/// Returns whether sandboxes can be made by `bwrap` here. Where everything is meant to be there, they must.
///
/// # Panics
///
/// Panics under [`strict`](crate::strict) if they cannot.
pub fn bubblewrap_works() -> bool {
    let status = Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).status();
    let works = status.is_ok_and(|status| status.success());
    if !works {
        assert!(!crate::strict(), "`bwrap` does not work here");
        eprintln!("skipped: `bwrap` is not installed or does not work here");
    }
    works
}

impl Subject {
    /// Opens `backend` in a fresh home. Where it comes from a plugin, `isolation` says where that runs, as `plugins.isolation` has
    /// it. The variables that it needs must be those of this process.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be used.
    #[must_use]
    pub fn open(backend: &str, isolation: &str) -> Self {
        let home = Home::new().with("ACMEBOX_TOKEN", "demo");
        let config = format!(
            "processes: {{log_max_bytes: {LOG_LIMIT}}}\nplugins: {{isolation: {isolation}}}\n\
             terminal:\n  auto_source_bashrc: false\n"
        );
        if backend == "local" {
            let work = home.path().join("work");
            std::fs::create_dir(&work).expect("a folder is made");
            home.set_config(format!("{config}  cwd: {}\n", work.display()));
        } else {
            home.set_config(config);
            home.add_plugin(backend, backend);
            let _ = home.hostel(&["plugins", "enable", backend]).expect(0);
        }
        Self::at(Arc::new(home), backend, isolation)
    }

    fn at(home: Arc<Home>, backend: &str, isolation: &str) -> Self {
        let own = hostel::home::Home::at(home.path().to_owned()).expect("a home");
        let options = Options { home: Some(own.clone()), backend: Some(backend.to_owned()) };
        let world = World::open(options).expect("a world");
        let shared = Shared {
            environments: Environments::default(),
            processes: Processes::new(own),
            world,
            home,
            backend: backend.to_owned(),
            isolation: isolation.to_owned(),
        };
        Self { shared: Arc::new(shared), task: "default".to_owned() }
    }

    /// Opens the same provider in the same home once more, as another process of the host would, with the same session.
    #[must_use]
    pub fn again(&self) -> Self {
        let Shared { home, backend, isolation, .. } = &*self.shared;
        Self { task: self.task.clone(), ..Self::at(Arc::clone(home), backend, isolation) }
    }

    /// Opens the same provider once more, with a session of its own that begins with this login file, in which `DIR` stands for the
    /// directory where it and the session are. No other session of the home may begin meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if the file cannot be written.
    #[must_use]
    pub fn logging_in(&self, file: &str) -> Self {
        let session = self.session(&format!("{} {}", self.task, self.unique()));
        let dir = session.run("pwd").exits(0).text();
        let dir = dir.trim_end();
        let _ = session.run(Call::new("cat > login").stdin(file.replace("DIR", dir))).prints("");
        let config = self.home().config();
        let own: Vec<&str> = config.lines().filter(|line| !line.contains("shell_init_files")).collect();
        let (before, after) =
            own.split_at(own.iter().position(|line| *line == "terminal:").expect("it is there") + 1);
        let files = format!("  shell_init_files: ['{dir}/login']");
        self.home().set_config([before, &[&files], after].concat().join("\n") + "\n");
        session.again()
    }

    /// Takes another session.
    #[must_use]
    pub fn session(&self, task: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), task: task.to_owned() }
    }

    /// Goes to an empty folder of the session's own.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub fn enter_fresh_folder(&self) {
        let _ = self.run("cd \"$(mktemp -d \"$PWD/case-XXXXXX\")\"").prints("");
    }

    /// Waits until commands of this session get a copy of a shell that is there already, where the backend has that.
    ///
    /// # Panics
    ///
    /// Panics if that never happens.
    pub fn warm_up(&self) {
        if self.shared.backend == "bubblewrap" {
            return;
        }
        let until = Instant::now() + PATIENCE;
        while self.run(IS_COPY).text() != "1\n" {
            assert!(Instant::now() < until, "the resident shell of {self} never came up");
        }
    }

    /// The backend's name.
    #[must_use]
    pub fn backend(&self) -> &str {
        &self.shared.backend
    }

    /// Whether what a command leaves in the background outlives it.
    #[must_use]
    pub fn leaves_survivors(&self) -> bool {
        self.shared.backend != "bubblewrap"
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.shared.home
    }

    /// Returns digits that no other call of this has returned, in any process that runs now: behind a point they make a
    /// `sleep` one that can be told from all others.
    #[must_use]
    #[allow(clippy::unused_self, reason = "there are no such digits without a subject to use them on")]
    pub fn unique(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a call.
    ///
    /// # Panics
    ///
    /// Panics if there is no outcome.
    #[track_caller]
    pub fn run(&self, call: impl Into<Call>) -> Ran {
        let call = call.into();
        let command: String = call.command.chars().take(500).collect();
        match self.try_run(&call) {
            Ok(ran) => ran,
            Err(error) => panic!("{command}: {error} ({:?})", error.hint()),
        }
    }

    /// Makes a call that is refused, and returns why.
    ///
    /// # Panics
    ///
    /// Panics if it is not.
    #[track_caller]
    pub fn refuses(&self, call: impl Into<Call>) -> Error {
        match self.try_run(&call.into()) {
            Ok(ran) => panic!("it was not refused: {ran:?}"),
            Err(error) => {
                assert!(!error.may_have_started(), "it was refused too late: {error}");
                error
            }
        }
    }

    /// Makes a call.
    ///
    /// # Errors
    ///
    /// Fails as [`Environments::execute`] does.
    ///
    /// # Panics
    ///
    /// Panics if no terminal can be made.
    pub fn try_run(&self, call: &Call) -> Result<Ran, Error> {
        let Shared { environments, world, .. } = &*self.shared;
        let entry = self.entry()?;
        // Made before the clock of the command starts to run.
        environments.get(world, entry, &self.task)?;
        let mut request = ExecRequest::new(call.command.clone());
        request.cwd.clone_from(&call.cwd);
        request.env.clone_from(&call.env);
        if let Some(bytes) = &call.stdin {
            request.stdin = Stdin::Bytes(bytes.clone());
        }
        let on = call.terminal.map(|size| Terminal::open(size).expect("a terminal"));
        let typed = on.as_ref().map(|(terminal, _)| terminal.try_clone().expect("a descriptor"));
        let watching = Arc::new(Watching::new(call, Outputs::in_dir(world.home.outputs()), typed));
        let io: SharedIo = Arc::<Watching>::clone(&watching);
        let outcome = match on {
            Some((ours, commands)) => {
                let on = (&ours, commands);
                terminal::execute(environments, world, entry, &self.task, request, &io, on)
            }
            None => environments.execute(world, entry, &self.task, request, &io),
        };
        outcome.map(|outcome| watching.finish(outcome))
    }

    fn entry(&self) -> Result<&Arc<Entry>, Error> {
        self.shared.world.backend(&self.shared.backend)
    }

    /// Starts a background process in this session, and returns its id. It can be written to if the call has an input, even an
    /// empty one.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    #[track_caller]
    pub fn background(&self, call: impl Into<Call>) -> String {
        let call = call.into();
        let request = StartRequest {
            command: call.command,
            backend: Some(self.shared.backend.clone()),
            task: self.task.clone(),
            cwd: call.cwd,
            env: call.env,
            stdin: call.stdin.is_some(),
            pty: call.terminal.map(Into::into),
            ..StartRequest::default()
        };
        match self.shared.processes.start(&request) {
            Ok(started) => started.record.id.to_string(),
            Err(error) => panic!("{}: {error}", request.command),
        }
    }

    /// The background processes of the home.
    #[must_use]
    pub fn processes(&self) -> &Processes {
        &self.shared.processes
    }

    /// Returns how a background process is.
    ///
    /// # Panics
    ///
    /// Panics if that is not known.
    #[track_caller]
    pub fn poll(&self, id: &str) -> View {
        self.processes().poll(id).unwrap_or_else(|error| panic!("{id}: {error}"))
    }

    /// Waits for the end of a background process.
    ///
    /// # Panics
    ///
    /// Panics if it does not end within 20 s.
    #[track_caller]
    pub fn wait(&self, id: &str) -> WaitView {
        let view = self.processes().wait(id, Some(PATIENCE), None);
        let view = view.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(view.status, WaitStatus::Exited, "{view:?}");
        view
    }

    /// Returns the end of what a background process has printed, byte by byte.
    ///
    /// # Panics
    ///
    /// Panics if that cannot be read.
    #[track_caller]
    pub fn logs(&self, id: &str) -> Vec<u8> {
        let log = self.processes().log(id, Lines::default());
        log.unwrap_or_else(|error| panic!("{id}: {error}")).bytes
    }

    /// Waits until a background process has printed this.
    ///
    /// # Panics
    ///
    /// Panics if it ends without that.
    #[track_caller]
    pub fn until_printed(&self, id: &str, wanted: &[u8]) {
        let mut follower = self.processes().follow(id, 0).unwrap_or_else(|error| panic!("{id}: {error}"));
        let mut printed = Vec::new();
        while !printed.windows(wanted.len()).any(|part| part == wanted) {
            match follower.next(None) {
                Ok(Some(piece)) => printed.extend(piece.bytes),
                Ok(None) => panic!("it printed only {:?}", String::from_utf8_lossy(&printed)),
                Err(error) => panic!("{id}: {error}"),
            }
        }
    }

    /// Ends all sessions, as the host does when it ends.
    ///
    /// # Panics
    ///
    /// Panics if one of them could not be let go.
    pub fn close(&self) {
        let left = self.shared.environments.close();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let running = self.processes.list().unwrap_or_default().into_iter();
        for view in running.filter(|view| view.exit_code.is_none()) {
            // It may just have ended.
            let _ = self.processes.kill(&view.session_id.to_string());
        }
        let _ = self.environments.close();
    }
}
