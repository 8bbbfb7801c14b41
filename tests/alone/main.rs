//! What can only be seen where no other test runs in the same process: what a long-running host keeps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hostel::environments::{Environments, SharedIo};
use hostel::world::{Options, World};
use hostel_plugin_api::{ExecIo, ExecRequest, Flow};
use hostel_tests::{Home, library, manifest, put};

struct Brief(Instant);

impl ExecIo for Brief {
    fn output(&self, _bytes: &[u8]) -> Flow {
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.0)
    }
}

/// Descriptors, threads, and children of this process.
fn held() -> [usize; 3] {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let children = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| {
        fs::read_to_string(task.path().join("children")).unwrap_or_default().split_whitespace().count()
    });
    [count("/proc/self/fd"), count("/proc/self/task"), children.sum()]
}

#[test]
fn calls_crashes_and_timeouts_leave_nothing_behind_in_the_host() {
    let home = Home::new();
    put(&library("hostile"), &home.add_manifest("hostile", manifest("hostile")).join("libhostile.so"));
    let _ = home.hostel(&["plugins", "enable", "hostile"]).expect(0);
    let own = hostel::home::Home::at(home.path().to_owned()).unwrap();
    let world = World::open(Options { home: Some(own), backend: None }).unwrap();
    let environments = Environments::default();
    let run = |backend: &str, command: &str, seconds: f64| {
        let io: SharedIo = Arc::new(Brief(Instant::now() + Duration::from_secs_f64(seconds)));
        let entry = world.backend(backend).unwrap();
        environments.execute(&world, entry, "t", ExecRequest::new(command), &io)
    };
    for backend in ["local", "hostile"] {
        assert_eq!(run(backend, "true", 30.0).unwrap().exit_code, 0);
    }
    let before = held();
    for backend in ["local", "hostile"] {
        for _ in 0..150 {
            assert_eq!(run(backend, "true", 30.0).unwrap().exit_code, 0);
        }
        for _ in 0..15 {
            assert_eq!(run(backend, "sleep 9", 0.1).unwrap().exit_code, 124);
            assert_eq!(run(backend, "setsid sleep 0.1 & exit 0", 30.0).unwrap().exit_code, 0);
        }
    }
    // A crash, and a new worker.
    run("hostile", "segv", 30.0).unwrap_err();
    assert_eq!(run("hostile", "true", 30.0).unwrap().exit_code, 0);
    let until = Instant::now() + Duration::from_secs(5);
    let near = |after: [usize; 3]| before.iter().zip(after).all(|(before, after)| after <= before + 5);
    while !near(held()) {
        assert!(Instant::now() < until, "before {before:?}, after {:?}", held());
        thread::sleep(Duration::from_millis(50));
    }
}
