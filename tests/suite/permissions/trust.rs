//! What others could have put there is not loaded, wherever on the way to a plugin they may write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use hostel_tests::{Home, is_root};

use super::spy;

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

fn uses(home: &Home) -> hostel_tests::Ran {
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
}

#[test]
fn the_folders_above_a_plugin_and_all_in_it_are_the_users_alone() {
    let home = spy("");
    let folder = home.plugin("spy");
    fs::create_dir(folder.join("data")).unwrap();
    fs::write(folder.join("data/not-named"), "").unwrap();
    for (path, bad, hint) in [
        (home.path().to_owned(), 0o777, "run `chmod go-w '"),
        (home.path().join("plugins"), 0o757, "run `chmod go-w '"),
        (folder.join("data"), 0o777, "run `chmod -R go-w '"),
        (folder.join("data/not-named"), 0o646, "run `chmod -R go-w '"),
    ] {
        let before = fs::metadata(&path).unwrap().permissions();
        mode(&path, bad);
        let ran = uses(&home).expect(125);
        let wanted = format!("others may write to `{}`", path.canonicalize().unwrap().display());
        assert!(ran.stderr.contains(&wanted) && ran.stderr.contains(hint), "{ran:?}");
        home.hostel(&["plugins", "enable", "spy"]).fails(1, "others may write to");
        fs::set_permissions(&path, before).unwrap();
        let _ = uses(&home).expect(0);
    }
    if is_root() {
        for path in [home.path().join("plugins"), folder.join("data/not-named")] {
            chown(&path, Some(65534), None).unwrap();
            uses(&home).fails(125, "belongs to another user (uid 65534)");
            chown(&path, Some(0), None).unwrap();
        }
        // Root has no group of its own.
        mode(&home.path().join("plugins"), 0o775);
        uses(&home).fails(125, "others may write to");
    }
}

#[test]
fn a_linked_folder_is_trusted_as_its_way_and_that_to_the_link_are() {
    let home = spy("");
    let work = tempfile::tempdir().unwrap();
    let (open, plugins) = (work.path().join("open"), home.path().join("plugins"));
    fs::create_dir(&open).unwrap();
    fs::rename(home.plugin("spy"), open.join("spy")).unwrap();
    symlink(open.join("spy"), home.plugin("spy")).unwrap();
    mode(&open, 0o777);
    home.hostel(&["plugins", "enable", "spy"]).fails(1, "others may write to");
    // In a sticky folder each has what is his.
    mode(&open, 0o1777);
    let _ = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    let _ = uses(&home).expect(0);
    mode(&plugins, 0o777);
    uses(&home).fails(125, "others may write to");
    mode(&plugins, 0o700);
    let _ = uses(&home).expect(0);
    mode(&open, 0o757);
    uses(&home).fails(125, "others may write to");
}

#[test]
fn the_doctor_says_who_may_write() {
    let home = spy("");
    let row = || {
        let rows = home.hostel(&["doctor", "--json"]).json();
        rows.as_array().unwrap().iter().find(|row| row["label"] == "home").unwrap().clone()
    };
    assert_eq!(row()["warning"], false);
    // The group of a test's user may be private.
    let modes: &[u32] = if is_root() { &[0o770, 0o707] } else { &[0o707] };
    for bits in modes {
        mode(home.path(), *bits);
        let row = row();
        assert_eq!(row["warning"], true, "{row}");
        let detail = row["detail"].as_str().unwrap();
        assert!(detail.contains("others may write to") && detail.contains("run `chmod go-w '"), "{row}");
    }
}
