//! `hostel plugins check`: what we ship keeps the rules, and what breaks one is told which.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hostel_plugin_api::TerminalEnvironmentProvider;
use hostel_plugin_api::testing::{self, Options};
use hostel_tests::kernel::{alive, eventually};
use hostel_tests::own_process::in_own_process;
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

/// Checks `folder` by the rules that begin with `only`, as a plugin that misbehaves so, and returns the report.
fn check_misfit(home: &Home, folder: &str, behaviour: &str, only: &str) -> Ran {
    let mut command = home.command("hostel", &["plugins", "check", folder, "--json", "--only", only]);
    command.env("MISFIT", behaviour);
    finish(command, b"")
}

/// Returns what a report says of a rule.
fn detail(report: &Value, rule: &str) -> String {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["rule"] == rule).map(|row| row["detail"].as_str().unwrap()).collect()
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
fn a_plugin_that_was_never_used_has_not_passed() {
    let home = Home::new();
    let folder = home.add_manifest("acmebox", manifest("acmebox") + "requires_env: [ACMEBOX_TOKEN]\n");
    hostel_tests::put(&hostel_tests::library("acmebox"), &folder.join("libacmebox.so"));
    let folder = folder.to_str().unwrap();
    let ran = check(&home, &[folder, "--json"]).expect(1);
    assert_eq!(ran.json()["passed"], false);
    assert!(
        ran.stderr.contains("none of its commands could be tried: ")
            && ran.stderr.contains("AcmeBox is not configured"),
        "{}",
        ran.stderr
    );
    // What needs no sandbox can be asked for alone.
    assert_eq!(check(&home, &[folder, "--json", "--only", "attributes."]).expect(0).json()["passed"], true);
    let ran = check(&home, &[folder, "--only", "nosuch"]).expect(1);
    assert!(ran.stderr.contains("no rule was tried"), "{ran:?}");
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

/// Returns the providers of the backends that are built; the others are reserved names as yet.
fn built_in() -> Vec<Arc<dyn TerminalEnvironmentProvider>> {
    let mut registry = hostel::registry::Registry::default();
    hostel::backends::fill(&mut registry).unwrap();
    let providers: Vec<_> =
        registry.entries().into_iter().filter_map(|entry| entry.provider().ok()).collect();
    assert!(!providers.is_empty());
    providers
}

#[test]
fn the_built_in_backends_keep_the_rules() {
    for provider in built_in() {
        let mut options = Options::default();
        options.builtin = true;
        // Other tests run in this process: see the next one.
        let report = testing::check_with(&provider, &options, &mut |_| {});
        let failed: Vec<_> = report.failed().filter(|row| !row.rule.starts_with("leaks.")).collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", provider.name());
    }
}

#[test]
fn the_built_in_backends_leave_nothing_behind() {
    in_own_process("check::the_built_in_backends_leave_nothing_behind", &[], || {
        // As `hostel exec` does, so that what has lost its parent counts as well.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        for provider in built_in() {
            let mut options = Options::default();
            options.builtin = true;
            options.only = Some("leaks.".into());
            let report = testing::check(&provider, &options);
            report.assert();
            assert!(report.rows.len() == 3 && report.skipped().next().is_none(), "{report}");
        }
    });
}

#[test]
fn an_attribute_that_panics_or_ends_its_process_is_named() {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let folder = home.plugin("misfit");
    let folder = folder.to_str().unwrap();
    let report = check_misfit(&home, folder, "most-attributes", "attributes.").expect(1).json();
    assert_eq!(broken(&report), ["attributes.panics"]);
    let said = detail(&report, "attributes.panics");
    for attribute in ["is_available", "probe", "doctor_checks", "costs_to_create", "config_schema"] {
        assert!(said.contains(&format!("`{attribute}` panicked: an attribute panics")), "{said}");
    }
    assert!(!said.contains("strip_env_keys"), "{said}");
    let report = check_misfit(&home, folder, "abort", "attributes.panics").expect(1).json();
    let said = detail(&report, "attributes.panics");
    assert!(said.starts_with("`is_remote` of `misfit`: ") && said.contains("crashed (SIGABRT)"), "{said}");
    assert!(!said.contains("; `"), "the others answer: {said}");
}

#[test]
fn a_daemon_that_hides_is_found_and_ended() {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let folder = home.plugin("misfit");
    let report = check_misfit(&home, folder.to_str().unwrap(), "daemon", "leaks.").expect(1).json();
    assert_eq!(broken(&report), ["leaks.processes", "library.end"]);
    let said = detail(&report, "library.end");
    assert!(said.starts_with("it has left behind `sleep` (") && said.ends_with(" more"), "{said}");
    assert!(eventually(Duration::from_secs(10), || alive("sleep 911.25").is_empty()));
}

#[test]
fn what_a_killed_check_has_left_goes_with_the_next() {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let folder = home.plugin("misfit");
    let rooms = tempfile::tempdir().unwrap();
    let left = || std::fs::read_dir(rooms.path()).unwrap().count();
    let start = || {
        let words = ["plugins", "check", folder.to_str().unwrap(), "--only", "attributes."];
        let mut command = home.command("hostel", &words);
        command.env("TMPDIR", rooms.path());
        command
    };
    let mut command = start();
    // It takes its time for an answer.
    let mut killed =
        command.env("MISFIT", "slow").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(eventually(Duration::from_secs(10), || left() == 1));
    let _ = finish(start(), b"").expect(1);
    assert_eq!(left(), 1, "one that is still needed stays");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1);
    let _ = finish(start(), b"").expect(1);
    assert_eq!(left(), 0);
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
        let report = check_misfit(&home, folder, behaviour, &only).expect(1).json();
        assert!(broken(&report).iter().any(|broken| broken == rule), "{behaviour}: {report}");
    }
}

#[test]
fn an_attribute_that_calls_home_is_found() {
    let asking = manifest("hostile").replace("env: [", "env: [HOSTILE_CALLS, ");
    let others =
        ["", "network: [\"127.0.0.1:9\"], "].map(|network| asking.replace("network: any, ", network));
    for asking in [&asking, &others[0], &others[1]] {
        let home = Home::new();
        let folder = home.add_manifest("hostile", asking);
        hostel_tests::put(&hostel_tests::library("hostile"), &folder.join("libhostile.so"));
        for (calls, caller) in [
            ("", None),
            ("itself", Some("it made a socket for another machine")),
            ("program", Some("its program `bash` made a socket for another machine")),
        ] {
            let words =
                ["plugins", "check", folder.to_str().unwrap(), "--json", "--only", "attributes.network"];
            let mut command = home.command("hostel", &words);
            command.env("HOSTILE_CALLS", calls);
            let report = finish(command, b"").json();
            let said = detail(&report, "attributes.network");
            match caller {
                None => assert_eq!((broken(&report).len(), said.as_str()), (0, "")),
                Some(caller) => {
                    assert_eq!(broken(&report), ["attributes.network"], "{asking}");
                    assert!(
                        said.starts_with("`is_available` of `hostile`: ") && said.contains(caller),
                        "{said}"
                    );
                }
            }
        }
    }
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
