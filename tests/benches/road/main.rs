//! Measures the road of a command against floors of the same run.
//!
//! A figure alone says more about the machine than about us, so each is printed beside what the work costs at the least here and
//! now, and as a ratio to it. Floor and product are measured in turns, so that a busy machine slows both.

mod mcp;
mod memory;
mod pieces;
mod sessions;
mod shuffled;
mod streams;
mod workers;

use std::fs;
use std::hint::black_box;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hostel::digest::sha256_hex;

use hostel::home::Home;
use hostel::plugins::{Catalog, Discovered, Manifest, Verified};

use hostel_plugin_api::{
    CreateEnvironment, Environment, Error, ErrorKind, ExecIo, Flow, Surroundings, TerminalEnvironmentProvider,
};
use hostel_tests::{built, library, manifest, put};

fn main() {
    if memory::was_asked() {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let benches: [(&str, Bench); 15] = [
        ("ffi", ffi_call),
        ("cold", cold_exec),
        ("discovery", discovery),
        ("loading", loading),
        ("mcp", mcp::calls),
        ("session-one", sessions::one),
        ("session-many", sessions::many),
        ("session-start", sessions::start),
        ("session-output", streams::output),
        ("session-input", streams::input),
        ("session-memory", memory::memory),
        ("session-pieces", pieces::pieces),
        ("worker-start", workers::start),
        ("worker-call", workers::call),
        ("worker-through", workers::through),
    ];
    println!("{:<44}{:>12}{:>12}{:>10}  goal", "", "floor", "ours", "ratio");
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            bench().iter().for_each(Row::print);
        }
    }
}

type Bench = fn() -> Vec<Row>;

/// One line of the result.
struct Row {
    work: String,
    floor: Duration,
    ours: Duration,
    goal: &'static str,
}

impl Row {
    fn print(&self) {
        let ratio = format!("{:.2}×", self.ours.as_secs_f64() / self.floor.as_secs_f64());
        line(&self.work, &shown(self.floor), &shown(self.ours), &ratio, self.goal);
    }
}

/// Prints one line of the result.
fn line(work: &str, floor: &str, ours: &str, ratio: &str, goal: &str) {
    println!("{work:<44}{floor:>12}{ours:>12}{ratio:>10}  {goal}");
}

fn shown(time: Duration) -> String {
    match time.as_nanos() {
        0..10_000 => format!("{:.1} ns", time.as_secs_f64() * 1e9),
        10_000..10_000_000 => format!("{:.1} µs", time.as_secs_f64() * 1e6),
        _ => format!("{:.1} ms", time.as_secs_f64() * 1e3),
    }
}

/// Runs floor and product in turns, and returns the times of each, sorted.
fn in_turns(
    rounds: usize,
    mut floor: impl FnMut(),
    mut ours: impl FnMut(),
) -> (Vec<Duration>, Vec<Duration>) {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let (mut floors, mut times): (Vec<_>, Vec<_>) =
        (0..rounds).map(|_| (time(&mut floor), time(&mut ours))).unzip();
    floors.sort();
    times.sort();
    (floors, times)
}

fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// A call that a compiler cannot see through, in the host.
struct Native;

impl TerminalEnvironmentProvider for Native {
    fn name(&self) -> &'static str {
        "native"
    }
    fn is_available(&self) -> bool {
        false
    }
    fn create_environment(&self, _request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        Err(Error::new(ErrorKind::UNSUPPORTED, "only measured"))
    }
    fn display_name(&self) -> String {
        "AcmeBox".into()
    }
    fn is_remote(&self) -> bool {
        false
    }
}

fn plugin_in(folder: &Path, name: &str) -> Discovered {
    plugin_in_of(folder, name, "acmebox")
}

/// Makes the folder of a plugin from the library that was built of another, which provides what that registers.
fn plugin_in_of(folder: &Path, name: &str, of: &str) -> Discovered {
    fs::create_dir_all(folder).expect("a folder");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a mode");
    fs::write(folder.join("plugin.yaml"), manifest(name) + &format!("provides: [{of}]\n"))
        .expect("a manifest");
    put(&library(of), &folder.join(format!("lib{name}.so")));
    let folder = folder.canonicalize().expect("a folder");
    let (manifest, _) = Manifest::read(&folder).expect("a good manifest");
    Discovered { folder, manifest }
}

fn ffi_call() -> Vec<Row> {
    const CALLS: u32 = 10_000;
    let dir = tempfile::tempdir().expect("a folder");
    let opened = plugin_in(&dir.path().join("acmebox"), "acmebox").verify(None).and_then(Verified::open);
    let mut registered =
        opened.and_then(|plugin| plugin.register(Surroundings::default())).expect("acmebox loads");
    let foreign: Box<dyn TerminalEnvironmentProvider> = Box::new(registered.remove(0).provider);
    let native: Box<dyn TerminalEnvironmentProvider> = Box::new(Native);
    let row = |work: &str, call: fn(&dyn TerminalEnvironmentProvider)| {
        let many =
            |provider: &dyn TerminalEnvironmentProvider| (0..CALLS).for_each(|_| call(black_box(provider)));
        let (floor, ours) = in_turns(101, || many(native.as_ref()), || many(foreign.as_ref()));
        let each = |times: &[Duration]| quantile(times, 50) / CALLS;
        // A duration holds whole nanoseconds, so a call below one shows as one.
        let floor = each(&floor).max(Duration::from_nanos(1));
        Row { work: work.into(), floor, ours: each(&ours), goal: "200 ns" }
    };
    vec![
        row("a flag across the FFI boundary / dyn", |provider| {
            black_box(provider.is_remote());
        }),
        row("a text across the FFI boundary / dyn", |provider| {
            black_box(provider.display_name());
        }),
    ]
}

struct Quiet;

impl ExecIo for Quiet {
    fn output(&self, _bytes: &[u8]) -> Flow {
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(60))
    }
}

/// What every command costs at the least: a shell that starts and ends. The standard library uses `posix_spawn` for this.
fn spawn_bash() {
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("bash starts").success());
}

fn cold_exec() -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a folder");
    let program = built().join("hostel");
    let run = |backend: &str| {
        let mut command = Command::new(&program);
        command.args(["exec", "--backend", backend, "--", "true"]).env("HOSTEL_HOME", dir.path());
        command.env("ACMEBOX_TOKEN", "bench").stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().expect("hostel starts").success());
    };
    plugin_in(&dir.path().join("plugins/acmebox"), "acmebox");
    let mut enable = Command::new(&program);
    enable
        .args(["plugins", "enable", "acmebox"])
        .env("HOSTEL_HOME", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert!(enable.status().expect("hostel starts").success());
    let row = |backend: &'static str| {
        let (floor, ours) = in_turns(100, spawn_bash, || run(backend));
        let (floor, ours) = (quantile(&floor, 50), quantile(&ours, 50));
        let work = format!("`hostel exec -- true`, {backend}, whole / spawn");
        Row { work, floor, ours, goal: "floor + 5 ms" }
    };
    vec![row("local"), row("acmebox")]
}

fn discovery() -> Vec<Row> {
    let row = |count: usize| {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path().to_owned()).expect("a home");
        let files: Vec<PathBuf> = (0..count)
            .map(|number| {
                let name = format!("p{number}");
                let folder = home.plugins().join(&name);
                fs::create_dir_all(&folder).expect("a folder");
                fs::write(folder.join("plugin.yaml"), manifest(&name)).expect("a manifest");
                folder.join("plugin.yaml")
            })
            .collect();
        let floor = || files.iter().for_each(|file| drop(black_box(fs::read(file).expect("a manifest"))));
        let ours = || assert_eq!(Catalog::scan(&home, &[], &[]).candidates.len(), count);
        let (floor, ours) = in_turns(if count > 100 { 20 } else { 100 }, floor, ours);
        let (floor, ours) = (quantile(&floor, 50), quantile(&ours, 50));
        Row {
            work: format!("discovery of {count} folders / reading the files"),
            floor,
            ours,
            goal: "10 ms for 100",
        }
    };
    [1, 100, 1000].map(row).into()
}

fn loading() -> Vec<Row> {
    let row = |count: usize| {
        let dir = tempfile::tempdir().expect("a folder");
        let found: Vec<Discovered> = (0..count)
            .map(|number| {
                let name = format!("p{count}x{number}");
                plugin_in(&dir.path().join(&name), &name)
            })
            .collect();
        let file = |found: &Discovered| found.folder.join(&found.manifest.library_names()[0]);
        let start = Instant::now();
        for found in &found {
            black_box(sha256_hex(&fs::read(file(found)).expect("a library")));
        }
        let floor = start.elapsed();
        let start = Instant::now();
        for found in &found {
            let opened = found.verify(None).and_then(Verified::open);
            let registered =
                opened.and_then(|plugin| plugin.register(Surroundings::default())).expect("it loads");
            assert_eq!(registered.len(), 1);
        }
        Row {
            work: format!("loading {count} libraries / reading, hashing"),
            floor,
            ours: start.elapsed(),
            goal: "",
        }
    };
    [1, 100].map(row).into()
}
