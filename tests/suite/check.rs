//! `hostel plugins check`: what we ship keeps the rules, and what breaks one is told which.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hostel_plugin_api::TerminalEnvironmentProvider;
use hostel_plugin_api::testing::{self, Options};
use hostel_tests::{Home, Ran, built, finish, manifest};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn check(home: &Home, words: &[&str]) -> Ran {
    let words: Vec<&str> = ["plugins", "check"].iter().chain(words).copied().collect();
    let mut command = home.command("hostel", &words);
    command.env("CARGO_TARGET_DIR", built().parent().unwrap()).env("CARGO_NET_OFFLINE", "true");
    finish(command, b"")
}

/// Returns the rules that are broken.
fn broken(report: &Value) -> Vec<String> {
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["verdict"] == "failed");
    rows.map(|row| row["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_plugin_to_be_copied_keeps_the_rules() {
    let home = Home::new().with("ACMEBOX_TOKEN", "x");
    let crate_of_it = root().join("plugins/acmebox");
    let report = check(&home, &[crate_of_it.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!((&report["plugin"], &report["passed"]), (&"acmebox".into(), &true.into()));
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() > 50 && rows.iter().all(|row| row["verdict"] == "passed"), "{report}");
    // Nothing is left of the home that it was checked in, nor was one made.
    assert!(!home.path().join("state").exists());
}

#[test]
fn the_shipped_sandbox_keeps_the_rules() {
    let works = Command::new("bwrap").args(["--ro-bind", "/", "/", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        assert!(!hostel_tests::strict(), "`bwrap` does not work here");
        eprintln!("skipped: `bwrap` is not installed or does not work here");
        return;
    }
    let home = Home::new();
    let ran = check(&home, &[root().join("plugins/bubblewrap").to_str().unwrap()]).expect(0);
    assert!(ran.text().contains(" are broken, 0 could not be tried\n"), "{ran:?}");
}

#[test]
fn the_built_in_backends_keep_the_rules() {
    let mut registry = hostel::registry::Registry::default();
    hostel::backends::fill(&mut registry).unwrap();
    let mut checked = 0;
    for entry in registry.entries() {
        // The others are reserved names as yet.
        let Ok(provider) = entry.provider() else { continue };
        let provider: Arc<dyn TerminalEnvironmentProvider> = provider;
        let mut options = Options::default();
        options.builtin = true;
        // Other tests run in this process.
        let report = testing::check_with(&provider, &options, &mut |_| {});
        let failed: Vec<_> = report.failed().filter(|row| !row.rule.starts_with("leaks.")).collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", entry.name());
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn a_rule_that_is_broken_is_named_and_told_how_to_see_it() {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let folder = home.plugin("misfit");
    let folder = folder.to_str().unwrap();
    let report = check(&home, &[folder, "--json", "--only", "attributes."]).expect(1).json();
    assert_eq!(broken(&report), ["attributes.guards"]);
    let ran = check(&home, &[folder, "--only", "attributes."]).expect(1);
    assert!(
        ran.text().contains("FAILED   attributes.guards") && ran.text().contains("to see it: "),
        "{ran:?}"
    );
    for (behaviour, rule) in [
        ("exit-code", "exec.exit-code"),
        ("register-panic", "library.load"),
        ("foreign", "library.load"),
        ("slow", "attributes.answer"),
        ("strip-nonsense", "attributes.strip-env"),
        ("create-panic", "create.environment"),
    ] {
        let only = rule.split_once('.').unwrap().0.to_owned() + ".";
        let mut command = home.command("hostel", &["plugins", "check", folder, "--json", "--only", &only]);
        command.env("MISFIT", behaviour);
        let report = finish(command, b"").expect(1).json();
        assert!(broken(&report).iter().any(|broken| broken == rule), "{behaviour}: {report}");
    }
}

#[test]
fn an_attribute_that_calls_home_is_found() {
    let home = Home::new();
    let folder = home.add_manifest("hostile", manifest("hostile").replace("env: [", "env: [HOSTILE_CALLS, "));
    hostel_tests::put(&hostel_tests::library("hostile"), &folder.join("libhostile.so"));
    let words = ["plugins", "check", folder.to_str().unwrap(), "--json", "--only", "attributes."];
    let report = finish(home.command("hostel", &words), b"").json();
    assert!(!broken(&report).iter().any(|rule| rule == "attributes.network"), "{report}");
    let mut command = home.command("hostel", &words);
    command.env("HOSTILE_CALLS", "1");
    let report = finish(command, b"").expect(1).json();
    assert!(broken(&report).iter().any(|rule| rule == "attributes.network"), "{report}");
}

#[test]
fn what_cannot_be_checked_is_told() {
    let home = Home::new();
    let empty = tempfile::tempdir().unwrap();
    check(&home, &[empty.path().to_str().unwrap()]).fails(1, "holds neither a `plugin.yaml` nor a crate");
    check(&home, &["/no/such/folder"]).fails(1, "failed to open `/no/such/folder`");
    let bad = home.add_manifest("bad", "name: docker\nversion: 1\ndescription: x\nkind: backend\n");
    let ran = check(&home, &[bad.to_str().unwrap()]).expect(1);
    assert!(ran.text().contains("FAILED   manifest.read"), "{ran:?}");
    let ran = check(&home, &[home.add_manifest("none", manifest("none")).to_str().unwrap()]).expect(1);
    assert!(
        ran.text().contains("FAILED   library.file") && ran.text().contains("there is no `libnone.so`"),
        "{ran:?}"
    );
}
