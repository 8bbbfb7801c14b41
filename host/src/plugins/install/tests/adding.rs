//! Installing.

use super::*;

#[test]
fn a_folder_is_copied_with_plain_modes_and_remembered() {
    let (dir, home) = home();
    let source = dir.path().join("source");
    plugin(&source, "acme", "1.10");
    for skipped in [".git/hooks", "docs"] {
        fs::create_dir_all(source.join(skipped)).unwrap();
    }
    fs::write(source.join("docs/run"), "").unwrap();
    fs::set_permissions(source.join("docs/run"), fs::Permissions::from_mode(0o6777)).unwrap();
    fs::set_permissions(source.join("plugin.yaml"), fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink("docs/run", source.join("run")).unwrap();
    let installed = add(&home, &source, false).unwrap();
    let folder = home.plugins().join("acme");
    assert_eq!((installed.version.as_str(), installed.folder.as_path()), ("1.10", folder.as_path()));
    assert_eq!((installed.replaced, installed.warnings), (None, Vec::new()));
    assert_eq!(listed(&folder), ["docs", "libacme.so", "plugin.yaml", "run"]);
    assert_eq!((mode(&folder), mode(&folder.join("docs/run"))), (0o755, 0o755));
    assert_eq!(mode(&folder.join("plugin.yaml")), 0o644);
    assert!(folder.join("run").is_symlink());
    assert_eq!(listed(&home.plugins()), ["acme"]);
    let receipt = Receipt::load(&home, "acme").unwrap();
    assert_eq!((receipt.source, receipt.version.as_str()), (Source::Folder(source), "1.10"));
    assert_eq!(mode(&home.plugin_records().join("acme.source.json")), 0o600);
}

#[test]
fn a_second_one_needs_force_and_a_name_that_another_folder_has_is_not_taken() {
    let (dir, home) = home();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    plugin(&one, "acme", "1");
    plugin(&two, "acme", "2");
    add(&home, &one, false).unwrap();
    let error = add(&home, &two, false).unwrap_err();
    assert!(error.to_string().contains("already installed, in version 1"), "{error}");
    assert!(error.hint().unwrap().contains("--force"), "{error}");
    assert_eq!(version(&home, "acme"), "1");
    assert_eq!(add(&home, &two, true).unwrap().replaced.as_deref(), Some("1"));
    assert_eq!(version(&home, "acme"), "2");
    fs::rename(home.plugins().join("acme"), home.plugins().join("elsewhere")).unwrap();
    let error = add(&home, &one, true).unwrap_err();
    assert!(matches!(&error, InstallError::Taken { folder, .. } if folder.ends_with("elsewhere")), "{error}");
    assert_eq!(listed(&home.plugins()), ["elsewhere"]);
}

/// Names and libraries that would become other paths.
#[test]
fn a_name_that_is_none_is_refused_before_anything_is_touched() {
    let (dir, home) = home();
    plugin(&home.plugins().join("keepme"), "keepme", "1");
    let source = dir.path().join("source");
    let long = "a".repeat(300);
    let names = [
        ".",
        "..",
        "../evil",
        "/abs",
        "a/b",
        "",
        " ",
        "docker",
        "DOCKER",
        "managed_modal",
        "vercel_sandbox",
        "con\nfig",
        "-rf",
        &long,
    ];
    for name in names {
        plugin(&source, "acme", "1");
        fs::write(source.join("plugin.yaml"), manifest(&serde_json::to_string(name).unwrap(), "1")).unwrap();
        let error = add(&home, &source, true).unwrap_err();
        let is_name = matches!(&error, InstallError::Manifest(_, ManifestError::Name { .. }));
        assert!(is_name, "{name:?}: {error}");
    }
    for library in ["../../other/lib.so", "/abs.so"] {
        let text = format!("{}library: {library}\n", manifest("acme", "1"));
        fs::write(source.join("plugin.yaml"), text).unwrap();
        let error = add(&home, &source, true).unwrap_err();
        assert!(error.to_string().contains("`library` must be"), "{error}");
    }
    plugin(&source, "acme", "1");
    fs::rename(source.join("libacme.so"), dir.path().join("lib.so")).unwrap();
    std::os::unix::fs::symlink("../lib.so", source.join("libacme.so")).unwrap();
    let error = add(&home, &source, true).unwrap_err();
    assert!(error.to_string().contains("is a link that leads out"), "{error}");
    assert_eq!(listed(&home.plugins()), ["keepme"]);
    assert_eq!(listed(&home.plugins().join("keepme")), ["libkeepme.so", "plugin.yaml"]);
    assert_eq!(listed(home.path()), ["plugins", "state"]);
    assert_eq!(listed(dir.path()), ["home", "lib.so", "source"]);
}

#[test]
fn what_this_host_could_not_load_is_not_installed() {
    let (dir, home) = home();
    let source = dir.path().join("source");
    plugin(&source, "acme", "1");
    fs::write(source.join("libacme.so"), &library("")[..100]).unwrap();
    let error = add(&home, &source, false).unwrap_err();
    assert!(matches!(error, InstallError::Load(_)), "{error}");
    let message = error.to_string();
    assert!(message.contains(source.to_str().unwrap()) && !message.contains(".staging"), "{message}");
    fs::remove_file(source.join("libacme.so")).unwrap();
    fs::write(source.join("Cargo.toml"), "").unwrap();
    let error = add(&home, &source, false).unwrap_err();
    assert!(matches!(error, InstallError::NoLibrary { is_crate: true, .. }), "{error}");
    fs::remove_file(source.join("plugin.yaml")).unwrap();
    let error = add(&home, &source, false).unwrap_err();
    assert!(error.to_string().contains("there is no `plugin.yaml` in it"), "{error}");
    fs::create_dir_all(home.plugins()).unwrap();
    let error = add(&home, dir.path(), false).unwrap_err();
    assert!(matches!(error, InstallError::Itself(_)), "{error}");
    assert!(listed(&home.plugins()).is_empty());
}

#[test]
fn what_comes_after_belongs_to_it() {
    let (dir, home) = home();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    plugin(&one, "acme", "1");
    plugin(&two, "acme", "2");
    let (first, second) = (Source::Folder(one), Source::Folder(two));
    let options = InstallOptions { force: true, ..Default::default() };
    let mut seen = PathBuf::new();
    let mut refuse = |found: &Discovered| -> Result<Placed, InstallError> {
        seen.clone_from(&found.folder);
        Err(InstallError::Unknown("acme".into()))
    };
    install_then(&home, &first, &options, &Silent, &mut refuse).unwrap_err();
    assert!(seen.ends_with("ready/acme") && !home.plugins().join("acme").exists(), "{}", seen.display());
    let mut refuse_in_place = |_: &Discovered| -> Result<Placed, InstallError> {
        Ok(Box::new(|found| {
            assert!(found.folder.ends_with("plugins/acme"), "{}", found.folder.display());
            Err(InstallError::Unknown("acme".into()))
        }))
    };
    install_then(&home, &first, &options, &Silent, &mut refuse_in_place).unwrap_err();
    assert!(listed(&home.plugins()).is_empty());
    assert_eq!(Receipt::load(&home, "acme"), None);
    install(&home, &first, &options, &Silent).unwrap();
    install_then(&home, &second, &options, &Silent, &mut refuse_in_place).unwrap_err();
    assert_eq!(version(&home, "acme"), "1");
    assert_eq!(Receipt::load(&home, "acme").unwrap().source, first);
    assert_eq!(listed(&home.plugins()), ["acme"]);
}

#[test]
fn of_many_at_once_one_wins_and_nothing_is_left_behind() {
    let (dir, home) = home();
    let sources: Vec<PathBuf> = (0..6).map(|number| dir.path().join(number.to_string())).collect();
    for (number, source) in sources.iter().enumerate() {
        plugin(source, "acme", &number.to_string());
    }
    let shared = &home;
    let all_at_once = |force: bool| {
        std::thread::scope(|scope| {
            let start = sources.iter().map(|source| scope.spawn(move || add(shared, source, force)));
            let running: Vec<_> = start.collect();
            let mut won = 0;
            for thread in running {
                match thread.join().unwrap() {
                    Ok(_) => won += 1,
                    Err(InstallError::Exists { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            won
        })
    };
    assert_eq!(all_at_once(false), 1);
    assert_eq!(all_at_once(true), 6);
    assert_eq!(listed(&home.plugins()), ["acme"]);
    let version = version(&home, "acme");
    let bytes = fs::read(home.plugins().join("acme/libacme.so")).unwrap();
    assert_eq!(bytes, library(&version));
    assert_eq!(Receipt::load(&home, "acme").unwrap().version, version);
}
