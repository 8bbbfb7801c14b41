//! What a process between us and a plugin costs.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel::environments::Environments;
use hostel::home::Home;
use hostel::plugins::worker::{Limits, Plan, Worker};
use hostel::plugins::{Host, Network, Permissions, Signing};
use hostel::registry::Provider;
use hostel::world::{Options, World};
use hostel_plugin_api::{Environment, ExecRequest};
use hostel_tests::kernel::{Held, eventually};

use super::{Quiet, Row, in_turns, plugin_in_of, quantile, spawn_bash};

/// A world in which the fixture that behaves is enabled, and runs like this.
struct Place {
    _home: hostel_tests::Home,
    world: World,
}

impl Place {
    fn new(isolation: &str) -> Self {
        let home = hostel_tests::Home::new();
        home.add_plugin("misfit", "misfit");
        let _ = home.hostel(&["plugins", "enable", "misfit"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        let own = Home::at(home.path().to_owned()).expect("a home");
        let world = World::open(Options { home: Some(own), backend: None }).expect("a world");
        Self { _home: home, world }
    }

    fn provider(&self) -> Provider {
        self.world.backend("misfit").and_then(|entry| entry.provider()).expect("it loads")
    }

    fn environment(&self) -> Arc<dyn Environment> {
        let entry = self.world.backend("misfit").expect("it is there");
        Environments::default().get(&self.world, entry, "bench").expect("an environment")
    }
}

/// From nothing to a worker that has loaded its plugin: one that may do everything and so is not confined, one that is held to the
/// default, and one whose keeper judges its connections.
pub(crate) fn start() -> Vec<Row> {
    let hosts = vec![Host::Tcp("api.example.com".into(), 443)];
    let hosts = Permissions { network: Network::Hosts(hosts), ..Permissions::default() };
    let kinds =
        [("free", Permissions::all()), ("confined", Permissions::default()), ("held to hosts", hosts)];
    kinds.into_iter().flat_map(|(kind, permissions)| start_with(kind, permissions)).collect()
}

fn start_with(kind: &str, permissions: Permissions) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a folder");
    let mut found = plugin_in_of(&dir.path().join("misfit"), "misfit", "misfit");
    found.manifest.permissions = permissions;
    let pin = found.verify(None).expect("a good library").pin().clone();
    let plan = Plan {
        found,
        pin: Some(pin),
        record: None,
        signing: Signing::default(),
        home: Home::at(dir.path().join("home")).expect("a home"),
        settings: serde_json::Value::Null,
        secrets: Vec::new(),
        limits: Limits { memory: 2048, open_files: 1024 },
        trap_network: false,
        watched: false,
    };
    let mut times = Vec::new();
    let (floor, _) = in_turns(60, spawn_bash, || {
        let worker = Worker::new(plan.clone());
        let start = Instant::now();
        assert_eq!(worker.start().expect("it starts").providers.len(), 1);
        times.push(start.elapsed());
        drop(worker);
        // What is measured next shares no processor with the end of this one.
        assert!(
            eventually(Duration::from_secs(5), || Held::now().processes == 0),
            "the worker has not ended"
        );
    });
    times.sort();
    let row = |percent, name: &str| Row {
        work: format!("a worker, start to ready, {kind}, {name} / spawn"),
        floor: quantile(&floor, percent),
        ours: quantile(&times, percent),
        goal: "5 ms",
    };
    vec![row(50, "median"), row(90, "p90")]
}

/// Another process that answers with what it was sent.
struct Echo(Child, UnixStream);

impl Echo {
    fn new() -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let output = OwnedFd::from(theirs.try_clone().expect("a copy"));
        let child = Command::new("cat").stdin(OwnedFd::from(theirs)).stdout(output).spawn();
        Self(child.expect("cat starts"), ours)
    }

    fn round_trip(&mut self) {
        let mut bytes = [7; 64];
        self.1.write_all(&bytes).expect("it is sent");
        self.1.read_exact(&mut bytes).expect("it comes back");
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One small call.
pub(crate) fn call() -> Vec<Row> {
    const CALLS: u32 = 200;
    let place = Place::new("process");
    let provider = place.provider();
    let mut echo = Echo::new();
    let (floor, ours) = in_turns(
        60,
        || (0..CALLS).for_each(|_| echo.round_trip()),
        || (0..CALLS).for_each(|_| assert!(!provider.is_remote())),
    );
    let (floor, ours) = (quantile(&floor, 50) / CALLS, quantile(&ours, 50) / CALLS);
    vec![Row { work: "a flag from a worker / socketpair round trip".into(), floor, ours, goal: "2×" }]
}

const GIBIBYTE: u64 = 1 << 30;

/// What reading that much from a pipe costs at the least.
fn read_from_a_pipe() {
    let mut child = Command::new("head")
        .args(["-c", "1G", "/dev/zero"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("head starts");
    let mut pipe = child.stdout.take().expect("a pipe");
    let (mut bytes, mut total) = (vec![0; 64 << 10], 0);
    loop {
        match pipe.read(&mut bytes).expect("it is read") {
            0 => break,
            read => total += read as u64,
        }
    }
    assert_eq!(total, GIBIBYTE);
    assert!(child.wait().expect("it ends").success());
}

/// A lot of output, and a command that does nothing.
pub(crate) fn through() -> Vec<Row> {
    let mut rows = Vec::new();
    for isolation in ["in_process", "process"] {
        let place = Place::new(isolation);
        let environment = place.environment();
        let run = |command: &str| {
            let outcome = environment.execute(ExecRequest::new(command), &Quiet).expect("it runs");
            assert_eq!(outcome.exit_code, 0);
        };
        let (floor, ours) = in_turns(5, read_from_a_pipe, || run("head -c 1G /dev/zero"));
        let work = format!("1 GiB of output, {isolation} / pipe");
        rows.push(Row { work, floor: quantile(&floor, 50), ours: quantile(&ours, 50), goal: "1.25×" });
        let (floor, ours) = in_turns(200, spawn_bash, || run("true"));
        let work = format!("`true`, state kept, {isolation} / spawn");
        rows.push(Row { work, floor: quantile(&floor, 50), ours: quantile(&ours, 50), goal: "" });
    }
    rows
}
