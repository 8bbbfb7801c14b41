//! The library of an update is asked about itself before anything is replaced, however long that takes.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use hostel_tests::{Home, four_keys, library, put};
use rustix::process::{Pid, Signal, kill_process};

fn plugin(folder: &Path, version: &str) {
    fs::create_dir_all(folder).unwrap();
    let manifest = four_keys("acme").replace("0.1.0", version) + "permissions: {exec: true, read: [/]}\n";
    fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    put(&library("hostile"), &folder.join("libacme.so"));
}

fn versions(home: &Home) -> Vec<(String, String)> {
    let rows = home.hostel(&["plugins", "list", "--json"]).expect(0).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.as_array().unwrap().iter().map(|row| (text(&row["version"]), text(&row["status"]))).collect()
}

/// What lies in the folder of plugins.
fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.path().join("plugins")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < until, "`{}` does not come", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn while_it_is_asked_the_old_one_serves_and_a_signal_changes_nothing() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join("source");
    plugin(&source, "1.0.0");
    let _ = home.hostel(&["plugins", "install", source.to_str().unwrap(), "--enable", "--yes"]).expect(0);
    let _ = home.hostel(&["config", "set", "plugins.settings.acme.hangs", "true"]).expect(0);
    plugin(&source, "2.0.0");
    let sign = home.path().join("data/acme/hangs");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::KILL, 137)] {
        let _ = fs::remove_file(&sign);
        let mut update = home.command("hostel", &["plugins", "update", "acme", "--enable", "--yes"]);
        let update = update.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&sign);
        assert_eq!(
            home.hostel(&["exec", "--backend", "acme", "--", "echo served"]).expect(0).text(),
            "served\n"
        );
        kill_process(Pid::from_child(&update), signal).unwrap();
        let ended = update.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if signal == Signal::KILL {
            assert_eq!(ended.status.code(), None);
        } else {
            assert_eq!((ended.status.code(), said.contains("interrupted")), (Some(code), true), "{said}");
            assert_eq!(names(&home), ["acme"]);
        }
        assert_eq!(versions(&home), [("1.0.0".to_owned(), "enabled".to_owned())]);
        let _ = home.hostel(&["exec", "--backend", "acme", "--", "true"]).expect(0);
    }
    let _ = home.hostel(&["config", "unset", "plugins.settings.acme.hangs"]).expect(0);
    let _ = home.hostel(&["plugins", "update", "acme", "--enable", "--yes"]).expect(0);
    assert_eq!(versions(&home), [("2.0.0".to_owned(), "enabled".to_owned())]);
    assert_eq!(names(&home), ["acme"], "what the killed one left goes with the next");
}

#[test]
fn what_was_updated_before_is_enabled_by_asking_for_it() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join("source");
    plugin(&source, "1.0.0");
    let _ = home.hostel(&["plugins", "install", source.to_str().unwrap()]).expect(0);
    let ran = home.hostel(&["plugins", "update", "acme", "--enable", "--yes"]).expect(0);
    assert!(ran.text().contains("is up to date\nenabled acme\n"), "{ran:?}");
    let _ = home.hostel(&["exec", "--backend", "acme", "--", "true"]).expect(0);
}
