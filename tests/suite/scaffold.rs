//! `hostel plugins new`: what it makes is built, tested, checked and run as its author would, unchanged.

use std::fs;
use std::path::Path;
use std::process::Command;

use hostel_tests::{Home, Ran, built, finish, put};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs `hostel plugins new` in a folder.
fn new(home: &Home, folder: &Path, words: &[&str]) -> Ran {
    let words: Vec<&str> = ["plugins", "new"].iter().chain(words).copied().collect();
    let mut command = home.command("hostel", &words);
    command.current_dir(folder);
    finish(command, b"")
}

/// Runs a command in a crate, in which cargo fetches nothing and uses what the workspace has built.
fn within(folder: &Path, mut command: Command) -> Ran {
    let target = built().parent().unwrap();
    command.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true");
    // As the workspace has it: a dependency that is built otherwise is built again.
    command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    command.current_dir(folder);
    finish(command, b"")
}

fn cargo(folder: &Path, words: &[&str]) -> Ran {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    within(folder, command)
}

#[test]
fn a_new_plugin_builds_passes_its_tests_and_the_check_and_runs() {
    let home = Home::new().with("DEMO_BOX_TOKEN", "t0ken");
    let work = tempfile::tempdir().unwrap();
    let made = new(&home, work.path(), &["demo-box"]).expect(0);
    assert!(made.text().contains("demo-box/src/lib.rs\n"), "{made:?}");
    assert!(made.text().ends_with("demo-box/hostel-plugin-api\n"), "{made:?}");
    let folder = work.path().join("demo-box");
    // The versions that the workspace has fetched, since no others can be had.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();

    let _ = cargo(&folder, &["fmt", "--all", "--check"]).expect(0);
    let built_it = cargo(&folder, &["build", "--offline"]).expect(0);
    assert!(!built_it.stderr.contains("warning"), "{built_it:?}");
    let _ = cargo(&folder, &["test", "--offline"]).expect(0);
    let bare = Home::new();
    let checked = within(&folder, bare.command("hostel", &["plugins", "check", "."]));
    let _ = checked.expect(0);

    let manifest = fs::read(folder.join("plugin.yaml")).unwrap();
    let library = built().parent().unwrap().join("debug/libdemo_box.so");
    put(&library, &home.add_manifest("demo-box", manifest).join("libdemo_box.so"));
    let enabled = home.hostel(&["plugins", "enable", "demo-box"]).expect(0);
    assert!(!enabled.stderr.contains("warning: "), "{enabled:?}");
    let ran = home.hostel(&[
        "exec",
        "--backend",
        "demo-box",
        "--",
        "echo hi from $PWD; echo ${DEMO_BOX_TOKEN-hidden}; exit 7",
    ]);
    assert_eq!(ran.expect(7).text(), "hi from /tmp\nhidden\n");
    let _ = home.hostel(&["config", "set", "terminal.backends.demo-box.folder", "/usr"]).expect(0);
    let ran = home.hostel(&["exec", "--backend", "demo-box", "--task", "two", "--", "pwd"]);
    assert_eq!(ran.expect(0).text(), "/usr\n");
}

#[test]
fn what_cannot_be_made_is_refused_in_one_line_and_nothing_is_touched() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("taken")).unwrap();
    fs::write(work.path().join("taken/notes"), "mine").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["Demo Box"], "`Demo Box` is not a name"),
        (&["../evil"], "`../evil` is not a name"),
        (&["docker"], "`docker` is the name of a backend that is built into Hostel"),
        (&["async"], "`async` cannot be the name of a crate"),
        (&["taken"], "`taken` is there already"),
        (&["demo", "--path", "taken"], "`taken` is there already"),
        (&["demo", "--path", "no/where"], "there is no folder"),
        (&["demo", "--api-path", "taken"], "`taken` is not the folder of `hostel-plugin-api`"),
    ];
    for (words, reason) in cases {
        new(&home, work.path(), words).fails(1, reason);
    }
    let _ = new(&home, work.path(), &[]).expect(2);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(work.path().join("taken/notes")).unwrap(), "mine");
}

#[test]
fn a_new_plugin_needs_no_home_and_goes_where_it_is_told() {
    let home = Home::new();
    home.set_config("terminal: [no\n");
    let work = tempfile::tempdir().unwrap();
    let made = new(&home, work.path(), &["demo", "--path", "elsewhere"]).expect(0);
    assert!(made.text().contains("elsewhere/plugin.yaml\n"), "{made:?}");
    let cargo = fs::read_to_string(work.path().join("elsewhere/Cargo.toml")).unwrap();
    assert!(cargo.contains("\nhostel-plugin-api = { path = \"hostel-plugin-api\""), "{cargo}");
    assert!(work.path().join("elsewhere/hostel-plugin-api/src/lib.rs").is_file());
}

#[test]
fn a_new_plugin_takes_the_api_of_a_checkout_where_that_is_named() {
    let (home, work) = (Home::new(), tempfile::tempdir().unwrap());
    let api = root().join("plugin-api");
    let _ = new(&home, work.path(), &["demo", "--api-path", api.to_str().unwrap()]).expect(0);
    let cargo = fs::read_to_string(work.path().join("demo/Cargo.toml")).unwrap();
    let line = format!("\nhostel-plugin-api = {{ path = \"{}\" }}\n", api.canonicalize().unwrap().display());
    assert!(cargo.contains(&line) && !cargo.contains("exclude"), "{cargo}");
    assert!(!work.path().join("demo/hostel-plugin-api").exists());
}
