use super::*;
use crate::plugins::Pin;

fn place() -> (TempDir, Place) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().to_owned()).unwrap();
    let place = Place::hold(&home).unwrap();
    (dir, place)
}

fn folder(path: &Path, contents: &str) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("file"), contents).unwrap();
}

fn contents(path: &Path) -> String {
    fs::read_to_string(path.join("file")).unwrap()
}

fn listed(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(&place.plugins).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_old_folder_comes_back_if_the_second_rename_or_the_check_fails() {
    let (_dir, place) = place();
    let target = place.plugins.join("p");
    let staging = place.staging().unwrap();
    let staged = staging.path().join("tree");
    folder(&target, "old");
    folder(&staged, "new");
    let second_fails = |from: &Path, to: &Path| {
        if from == staged { Err(io::Error::other("no")) } else { rename(from, to) }
    };
    let error = place.put("p", &staged, "abc123", &second_fails, &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, InstallError::Place(..)), "{error}");
    assert_eq!((contents(&target), contents(&staged)), ("old".into(), "new".into()));
    let mut seen = String::new();
    let mut refuse = |folder: &Path| {
        seen = contents(folder);
        Err(InstallError::Unknown("p".into()))
    };
    let error = place.put("p", &staged, "abc123", &rename, &mut refuse).unwrap_err();
    assert!(matches!(error, InstallError::Unknown(_)), "{error}");
    assert_eq!(seen, "new");
    assert_eq!((contents(&target), contents(&staged)), ("old".into(), "new".into()));
    let nothing_goes_back = |from: &Path, to: &Path| {
        if from == target { rename(from, to) } else { Err(io::Error::other("no")) }
    };
    let error = place.put("p", &staged, "abc123", &nothing_goes_back, &mut |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains(".old-p.abc123"), "{error}");
    place.recover(STALE);
    assert_eq!(contents(&target), "old");
    let old = place.put("p", &staged, "abc123", &rename, &mut |_| Ok(())).unwrap().unwrap();
    assert_eq!((contents(&target), contents(&old)), ("new".into(), "old".into()));
}

#[test]
fn what_a_killed_command_left_is_put_back_or_removed_and_nothing_else() {
    let (_dir, place) = place();
    let at = |name: &str| place.plugins.join(name);
    for name in [".old-lost.abcdef", ".old-there.abcdef", "there", ".staging-abcdef", ".removed-ABC123"] {
        folder(&at(name), name);
    }
    // Somebody's own.
    for name in [".old-backup", ".old-x.y.tar", ".staging-mine", ".git"] {
        folder(&at(name), name);
    }
    place.recover(STALE);
    assert_eq!(contents(&at("lost")), ".old-lost.abcdef");
    assert_eq!(contents(&at("there")), "there");
    assert!(at(".staging-abcdef").is_dir() && !at(".old-there.abcdef").exists());
    place.recover(Duration::ZERO);
    let own = [".git", ".old-backup", ".old-x.y.tar", ".staging-mine", "lost", "there"];
    assert_eq!(listed(&place), own);
}

#[test]
fn of_two_folders_that_one_stays_which_was_enabled() {
    let (_dir, place) = place();
    let record = |folder: &Path, library: &str| Record {
        folder: folder.to_owned(),
        pin: Pin {
            library: "file".into(),
            sha256: crate::digest::sha256_hex(library.as_bytes()),
            size: library.len() as u64,
        },
        files: Vec::new(),
        permissions: crate::plugins::Permissions::default(),
        api_version: "1.0".into(),
        secrets: Vec::new(),
        providers: Vec::new(),
    };
    for (name, enabled) in [("a", "old"), ("b", "new"), ("c", "another")] {
        let target = place.plugins.join(name);
        folder(&target, "new");
        folder(&place.plugins.join(format!(".old-{name}.abcdef")), "old");
        record(&target, enabled).save(&place.home, name).unwrap();
    }
    place.recover(STALE);
    let now = ["a", "b", "c"].map(|name| contents(&place.plugins.join(name)));
    assert_eq!(now, ["old", "new", "new"]);
    assert_eq!(listed(&place), ["a", "b", "c"]);
}

#[test]
fn a_staging_folder_goes_as_soon_as_its_maker_is_gone_and_not_before() {
    let (_dir, place) = place();
    let staging = place.staging().unwrap();
    folder(&staging.path().join("tree"), "new");
    place.recover(Duration::ZERO);
    assert_eq!(contents(&staging.path().join("tree")), "new");
    // As if it had been killed: the kernel drops the lock, and the folder stays.
    let Staging { folder, _lock: lock } = staging;
    let path = folder.keep();
    place.recover(STALE);
    assert!(path.is_dir());
    drop(lock);
    place.recover(STALE);
    assert!(listed(&place).is_empty());
}

#[test]
fn only_what_lies_in_the_folder_of_plugins_is_taken_and_of_a_link_the_link() {
    let (dir, place) = place();
    let elsewhere = dir.path().join("elsewhere");
    folder(&elsewhere, "mine");
    for outside in [elsewhere.clone(), place.plugins.join(".."), place.plugins.clone(), PathBuf::from("/")] {
        let error = place.take(&outside).unwrap_err();
        assert!(matches!(error, InstallError::Outside(_)), "{error}");
    }
    std::os::unix::fs::symlink(&elsewhere, place.plugins.join("link")).unwrap();
    let taken = place.take(&place.plugins.join("link")).unwrap();
    taken.back();
    assert_eq!(contents(&place.plugins.join("link")), "mine");
    place.take(&place.plugins.join("link")).unwrap().discard().unwrap();
    assert!(listed(&place).is_empty());
    assert_eq!(contents(&elsewhere), "mine");
}
