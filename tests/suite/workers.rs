//! One host with several plugins and many calls: what happens in one worker stays there.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hostel::environments::{Environments, SharedIo};
use hostel::world::{Options, World};
use hostel_plugin_api::{Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin};
use hostel_tests::{Home, library, manifest, put};

/// A host in this process.
struct Host {
    home: Home,
    world: World,
    environments: Environments,
}

/// Keeps the output of a call.
struct Kept(Mutex<Vec<u8>>, Instant);

impl ExecIo for Kept {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.1)
    }
}

impl Host {
    /// Makes one with these plugins, each the fixture under another name.
    fn with(plugins: &[&str]) -> Self {
        Self::in_home(Home::new(), plugins)
    }

    fn in_home(home: Home, plugins: &[&str]) -> Self {
        for name in plugins {
            put(&library("hostile"), &home.add_manifest(name, manifest(name)).join(format!("lib{name}.so")));
            let _ = home.hostel(&["plugins", "enable", name]).expect(0);
        }
        let own = hostel::home::Home::at(home.path().to_owned()).unwrap();
        let world = World::open(Options { home: Some(own), backend: None }).unwrap();
        Self { home, world, environments: Environments::default() }
    }

    fn run(&self, backend: &str, task: &str, command: &str) -> Result<(ExecOutcome, String), Error> {
        self.request(backend, task, ExecRequest::new(command))
    }

    fn request(
        &self,
        backend: &str,
        task: &str,
        request: ExecRequest,
    ) -> Result<(ExecOutcome, String), Error> {
        let kept = Arc::new(Kept(Mutex::default(), Instant::now() + Duration::from_secs(30)));
        let io: SharedIo = Arc::<Kept>::clone(&kept);
        let entry = self.world.backend(backend)?;
        let outcome = self.environments.execute(&self.world, entry, task, request, &io)?;
        let output = String::from_utf8_lossy(&kept.0.lock().unwrap()).into_owned();
        Ok((outcome, output))
    }

    fn calls(&self, backend: &str, task: &str) -> Vec<String> {
        let log = self.home.path().join(format!("state/tasks/{backend}/{task}/calls.log"));
        std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_crash_is_the_call_s_alone_and_is_cleaned_up_by_task() {
    let host = Host::with(&["first", "second"]);
    thread::scope(|scope| {
        let other = scope.spawn(|| host.run("second", "t", "sleep 1; echo done"));
        assert_eq!(host.run("first", "bystander", "echo here").unwrap().1, "here\n");
        let error = host.run("first", "victim", "segv").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CRASHED, "{error}");
        assert!(error.may_have_started());
        // The provider was told of it in a fresh worker, by the task's id.
        assert_eq!(
            host.calls("first", "victim"),
            ["create victim false", "create victim true", "cleanup victim"]
        );
        // What lived in the same worker is lost, and says so once.
        let error = host.run("first", "bystander", "echo here").unwrap_err();
        assert_eq!((error.kind(), error.may_have_started()), (ErrorKind::LOST, false), "{error}");
        assert!(error.message().contains("the environment of task `bystander` was lost"), "{error}");
        assert_eq!(host.run("first", "bystander", "echo again").unwrap().1, "again\n");
        assert_eq!(host.run("first", "victim", "echo again").unwrap().1, "again\n");
        assert_eq!(other.join().unwrap().unwrap().1, "done\n");
    });
    assert!(host.environments.close().is_empty());
}

/// Puts another version of a plugin in its place, as `plugins install --force` does, with a library that differs.
fn update(host: &Host, name: &str, manifest_of_it: &str) {
    let folder = host.home.plugin(name);
    let new = host.home.path().join("new");
    std::fs::create_dir(&new).unwrap();
    std::fs::write(new.join("plugin.yaml"), manifest_of_it).unwrap();
    let mut bytes = std::fs::read(folder.join(format!("lib{name}.so"))).unwrap();
    bytes.extend(b"another");
    std::fs::write(new.join(format!("lib{name}.so")), bytes).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(new, folder).unwrap();
}

#[test]
fn a_plugin_that_is_updated_under_a_host_starts_anew_as_what_was_enabled() {
    let host = Host::with(&["updated"]);
    assert_eq!(host.run("updated", "t", "echo here").unwrap().1, "here\n");
    // Until it is enabled, nothing but the old one would be started, and the worker that runs is not touched.
    let manifest = manifest("updated").replace("0.1.0", "0.2.0");
    update(&host, "updated", &manifest);
    assert_eq!(host.run("updated", "t", "echo here").unwrap().1, "here\n");
    let _ = host.home.hostel(&["plugins", "enable", "updated"]).expect(0);
    assert_eq!(host.run("updated", "t", "segv").unwrap_err().kind(), ErrorKind::CRASHED);
    assert_eq!(host.calls("updated", "t"), ["create t false", "create t true", "cleanup t"]);
    assert_eq!(host.run("updated", "t", "echo again").unwrap().1, "again\n");
    // What was not enabled is not started, and what this host could not hide is not either.
    update(&host, "updated", &manifest);
    assert_eq!(host.run("updated", "t", "segv").unwrap_err().kind(), ErrorKind::CRASHED);
    let error = host.run("updated", "t", "echo no").unwrap_err();
    assert!(error.message().contains("is not the file that was enabled"), "{error}");
    update(&host, "updated", &format!("{manifest}requires_env: [UPDATED_TOKEN]\n"));
    let _ = host.home.hostel(&["plugins", "enable", "updated"]).expect(0);
    let error = host.run("updated", "t", "echo no").unwrap_err();
    assert!(
        error.message().contains("updated while this host runs, and now calls `UPDATED_TOKEN`"),
        "{error}"
    );
    assert_eq!(error.hint(), Some("restart this host, and it uses the new version"));
}

#[test]
fn a_plugin_that_is_disabled_under_a_host_is_started_no_more() {
    let host = Host::with(&["disabled"]);
    assert_eq!(host.run("disabled", "t", "echo here").unwrap().1, "here\n");
    let _ = host.home.hostel(&["plugins", "disable", "disabled"]).expect(0);
    assert_eq!(host.run("disabled", "t", "segv").unwrap_err().kind(), ErrorKind::CRASHED);
    let error = host.run("disabled", "t", "echo no").unwrap_err();
    assert!(error.message().contains("was disabled while this host runs"), "{error}");
    let _ = host.home.hostel(&["plugins", "enable", "disabled"]).expect(0);
    assert_eq!(host.run("disabled", "t", "echo again").unwrap().1, "again\n");
}

#[test]
fn a_plugin_that_is_updated_before_its_first_command_is_loaded_as_what_was_enabled() {
    for isolation in ["process", "in_process"] {
        let home = Home::new();
        home.set_config(format!("plugins:\n  isolation: {isolation}\n"));
        let host = Host::in_home(home, &["later"]);
        update(&host, "later", &manifest("later"));
        let _ = host.home.hostel(&["plugins", "enable", "later"]).expect(0);
        assert_eq!(host.run("later", "t", "echo hi").unwrap().1, "hi\n", "{isolation}");
    }
}

#[test]
fn calls_that_go_down_together_leave_the_next_environment_alone() {
    let host = Host::with(&["shared"]);
    assert_eq!(host.run("shared", "t", "echo here").unwrap().1, "here\n");
    thread::scope(|scope| {
        let calls: Vec<_> = (0..6).map(|_| scope.spawn(|| host.run("shared", "t", "sleep 20"))).collect();
        thread::sleep(Duration::from_millis(500));
        assert_eq!(host.run("shared", "t", "segv").unwrap_err().kind(), ErrorKind::CRASHED);
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap_err().kind(), ErrorKind::CRASHED);
        }
    });
    // One environment was lost, and cleaned up once; the next one stays.
    assert_eq!(host.run("shared", "t", "echo again").unwrap().1, "again\n");
    let calls = host.calls("shared", "t");
    assert_eq!(calls, ["create t false", "create t true", "cleanup t", "create t false"]);
}

#[test]
fn a_plugin_that_could_not_be_loaded_is_tried_again() {
    let host = Host::with(&["mended"]);
    let library = host.home.plugin("mended").join("libmended.so");
    let good = std::fs::read(&library).unwrap();
    std::fs::write(&library, "no library").unwrap();
    assert!(host.run("mended", "t", "echo hi").unwrap_err().message().contains("cannot be loaded"));
    std::fs::write(&library, good).unwrap();
    assert_eq!(host.run("mended", "t", "echo hi").unwrap().1, "hi\n");
}

#[test]
fn five_crashes_in_a_minute_stop_the_restarting() {
    let host = Host::with(&["crashing", "steady"]);
    for _ in 0..5 {
        assert_eq!(host.run("crashing", "t", "segv").unwrap_err().kind(), ErrorKind::CRASHED);
    }
    let error = host.run("crashing", "t", "echo hi").unwrap_err();
    assert_eq!((error.kind(), error.may_have_started()), (ErrorKind::UNAVAILABLE, false));
    assert!(
        error.message().contains("crashed 5 times within a minute, and is not started again for"),
        "{error}"
    );
    assert_eq!(error.message().matches("plugin `crashing`").count(), 1, "{error}");
    assert!(!error.hint().unwrap_or_default().contains("doctor"), "{error:?}");
    assert_eq!(host.run("steady", "t", "echo hi").unwrap().1, "hi\n");
}

#[test]
fn an_exception_of_another_language_ends_the_worker_as_an_abort_does() {
    let host = Host::with(&["throwing"]);
    let error = host.run("throwing", "t", "throw").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CRASHED, "{error}");
    assert!(error.message().contains("SIGABRT"), "{error}");
    assert_eq!(host.run("throwing", "t", "echo hi").unwrap().1, "hi\n");
}

#[test]
fn many_calls_are_in_flight_at_once() {
    let host = Host::with(&["busy"]);
    let start = Instant::now();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..32)
            .map(|number| {
                let host = &host;
                scope.spawn(move || {
                    let mut request = ExecRequest::new(format!("sleep 1; cat; echo {number}"));
                    request.stdin = Stdin::Bytes(format!("{number}:").into_bytes());
                    host.request("busy", &format!("t{}", number % 3), request)
                })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            let (outcome, output) = call.join().unwrap().unwrap();
            assert_eq!((outcome.exit_code, output), (0, format!("{number}:{number}\n")));
        }
    });
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn a_command_of_two_megabytes_and_any_bytes_pass() {
    let host = Host::with(&["large"]);
    let text = "x".repeat(2_000_000);
    let (outcome, output) =
        host.run("large", "t", &format!(": '{text}'; echo \"\u{1}\\\"'\u{e9}\"")).unwrap();
    assert_eq!((outcome.exit_code, output.as_str()), (0, "\u{1}\"'\u{e9}\n"));
    let entry = host.world.backend("large").unwrap();
    let environment = host.environments.get(&host.world, entry, "t").unwrap();
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
    let file = host.home.path().join("some file");
    environment.write_file(file.to_str().unwrap(), &bytes).unwrap();
    assert!(std::fs::read(&file).unwrap() == bytes);
    assert!(environment.read_file(file.to_str().unwrap()).unwrap() == bytes);
}

/// A command is tried again where the backend may be back in a moment, and not where somebody has to do something first.
#[test]
fn what_somebody_must_mend_is_told_at_once() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let folder = home.add_plugin("acmebox", "acmebox");
    let library = folder.join("libacmebox.so");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "acmebox"]).expect(0);
    let refused = |command: std::process::Command, reason: &str| {
        let begun = Instant::now();
        let value = hostel_tests::finish(command, b"").json();
        assert!(value["error"].as_str().unwrap().contains(reason), "{value}");
        assert_eq!((&value["status"], &value["exit_code"]), (&"error".into(), &(-1).into()), "{value}");
        // The first pause alone is two seconds, and all are fourteen.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    };
    let call = || home.command("hostel", &["tool", "terminal", "--json", "{\"command\": \"true\"}"]);
    let mut without = call();
    without.env_remove("ACMEBOX_TOKEN");
    refused(without, "is not configured");
    let mut bytes = std::fs::read(&library).unwrap();
    bytes.push(0);
    std::fs::write(&library, &bytes).unwrap();
    refused(call(), "(checksum)");
    std::fs::remove_file(&library).unwrap();
    refused(call(), "(file check)");
}
