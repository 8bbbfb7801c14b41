//! Updating and removing.

use std::cell::Cell;
use std::process::Command;

use super::*;

#[test]
fn an_update_replaces_what_has_changed_and_nothing_else() {
    let (dir, home) = home();
    let source = dir.path().join("source");
    plugin(&source, "acme", "1");
    assert!(matches!(update(&home, "acme", &Silent), Err(InstallError::Unknown(_))));
    assert!(matches!(update(&home, "../acme", &Silent), Err(InstallError::Name(_))));
    add(&home, &source, false).unwrap();
    let library = home.plugins().join("acme/libacme.so");
    let before = fs::metadata(&library).unwrap().modified().unwrap();
    let updated = update(&home, "acme", &Silent).unwrap();
    assert_eq!(updated, Updated::Already { name: "acme".into(), version: "1".into() });
    assert_eq!(fs::metadata(&library).unwrap().modified().unwrap(), before);
    plugin(&source, "acme", "2");
    let updated = update(&home, "acme", &Silent).unwrap();
    let Updated::Replaced(installed) = updated else { panic!("{updated:?}") };
    assert_eq!((installed.version.as_str(), installed.replaced.as_deref()), ("2", Some("1")));
    plugin(&source, "other", "1");
    let error = update(&home, "acme", &Silent).unwrap_err();
    assert!(matches!(error, InstallError::Another { .. }), "{error}");
    plugin(&home.plugins().join("dropped-in"), "dropped-in", "1");
    assert!(matches!(update(&home, "dropped-in", &Silent), Err(InstallError::NoReceipt(_))));
    assert_eq!(version(&home, "acme"), "2");
}

#[test]
fn removing_takes_the_folder_the_listing_and_what_is_known() {
    let (dir, home) = home();
    let source = dir.path().join("source");
    plugin(&source, "acme", "1");
    add(&home, &source, false).unwrap();
    std::os::unix::fs::symlink(&source, home.plugins().join("linked")).unwrap();
    plugin(&home.plugins().join("docker"), "docker", "1");
    fs::write(home.config(), "plugins:\n  enabled: [keepme, acme, gone] # mine\n").unwrap();
    fs::create_dir_all(home.plugin_data("acme")).unwrap();
    let enabled = ["keepme", "acme", "gone"].map(str::to_owned);
    let scan = || Catalog::scan(&home, &enabled, &[]);
    for bad in ["..", "a/b", "", " docker ", "nobody"] {
        assert!(remove(&home, &scan(), bad, true).is_err(), "{bad:?}");
    }
    assert_eq!(listed(&home.plugins()), ["acme", "docker", "linked"]);
    let removed = remove(&home, &scan(), "acme", true).unwrap();
    assert_eq!((removed.was_enabled, removed.kept_data), (true, Some(home.plugin_data("acme"))));
    assert_eq!((removed.folder, removed.linked), (Some(home.plugins().join("acme")), None));
    let text = fs::read_to_string(home.config()).unwrap();
    assert!(text.contains("keepme") && text.contains("# mine") && !text.contains("acme"), "{text}");
    assert_eq!(Receipt::load(&home, "acme"), None);
    // The same name in a folder of another, which is a link.
    let removed = remove(&home, &scan(), "acme", false).unwrap();
    assert_eq!(removed.linked, Some(source.clone()));
    assert_eq!(listed(&source), ["libacme.so", "plugin.yaml"]);
    assert!(!home.plugin_data("acme").exists());
    assert!(remove(&home, &scan(), "gone", true).unwrap().was_enabled);
    remove(&home, &scan(), "docker", true).unwrap();
    assert!(listed(&home.plugins()).is_empty());
}

#[test]
fn a_configuration_that_cannot_be_written_keeps_the_plugin() {
    let (dir, home) = home();
    let source = dir.path().join("source");
    plugin(&source, "acme", "1");
    add(&home, &source, false).unwrap();
    fs::write(home.config(), "plugins: [unclosed\n").unwrap();
    let error = remove(&home, &Catalog::scan(&home, &[], &[]), "acme", true).unwrap_err();
    assert!(matches!(error, InstallError::Enable(_)), "{error}");
    assert_eq!(listed(&home.plugins()), ["acme"]);
    assert_eq!(version(&home, "acme"), "1");
    assert!(Receipt::load(&home, "acme").is_some());
}

/// How far the last step came.
#[derive(Default)]
struct Reached(Cell<Option<u8>>);

impl Progress for Reached {
    fn start(&self, _what: &str, _total: Option<u64>) {}

    fn reached(&self, _step: &str, percent: u8) {
        self.0.set(Some(percent));
    }

    fn advance(&self, _bytes: u64) {}

    fn finish(&self) {}
}

#[test]
fn a_repository_is_fetched_at_the_commit_that_is_named() {
    let (dir, home) = home();
    let repository = dir.path().join("plugin.git");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
        command.args(["-c", "user.name=n", "-c", "user.email=e@example"]);
        command
            .arg("-C")
            .arg(&repository)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    plugin(&repository, "acme", "1");
    if !git(&["init", "--quiet"]) {
        // There is no git here.
        return;
    }
    let commit = || git(&["add", "."]) && git(&["commit", "--quiet", "--message", "m"]);
    assert!(commit() && git(&["tag", "one"]));
    plugin(&repository, "acme", "2");
    assert!(commit());
    let text = repository.to_str().unwrap();
    let get = |text: &str| install(&home, &Source::parse(text).unwrap(), &InstallOptions::default(), &Silent);
    let error = get(&format!("{text}#none")).unwrap_err();
    assert!(error.to_string().contains("couldn't find remote ref none"), "{error}");
    assert_eq!(get(&format!("file://{text}#one")).unwrap().version, "1");
    let receipt = Receipt::load(&home, "acme").unwrap();
    assert_eq!(receipt.commit.map(|commit| commit.len()), Some(40));
    assert!(matches!(update(&home, "acme", &Silent).unwrap(), Updated::Already { .. }));
    assert_eq!(listed(&home.plugins().join("acme")), ["libacme.so", "plugin.yaml"]);
    remove(&home, &Catalog::scan(&home, &[], &[]), "acme", false).unwrap();
    let reached = Reached::default();
    install(&home, &Source::parse(text).unwrap(), &InstallOptions::default(), &reached).unwrap();
    assert_eq!(version(&home, "acme"), "2");
    assert_eq!(reached.0.into_inner(), Some(100));
    fs::remove_file(repository.join("libacme.so")).unwrap();
    fs::write(repository.join("Cargo.toml"), "").unwrap();
    assert!(commit());
    let error = update(&home, "acme", &Silent).unwrap_err();
    assert!(error.hint().unwrap().contains("cargo build"), "{error}");
    assert_eq!(version(&home, "acme"), "2");
}
