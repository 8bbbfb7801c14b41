//! What a write keeps of a file besides its contents, and what it does where it may not or cannot write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use hostel_tests::tools::Road;
use hostel_tests::{Home, built, by_both_roads, finish, is_root, strict};
use serde_json::json;

use super::calls::{in_folder, refused, says, write};

by_both_roads! {
    the_owner_stays_when_root_writes a_full_disk_leaves_the_old_file_whole
}

// O-31
fn the_owner_stays_when_root_writes(road: Road) {
    if !is_root() {
        return;
    }
    let home = in_folder(road);
    let _ = home.exec("echo one > f; chown 1234:1235 f; chmod 640 f").expect(0);
    write(&home, "f", "two\n");
    says(&home, "stat -c '%u %g %a' f; cat f", "1234 1235 640\ntwo\n");
}

// O-31
#[test]
fn an_ordinary_users_rights_are_kept_to() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let program = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(program.path(), 0o755);
    set(home.path(), 0o755);
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    let at = |name: &str| home.path().join("w").join(name);
    fs::create_dir_all(at("ro")).unwrap();
    for name in ["ro/k", "read_only", "of_root"] {
        fs::write(at(name), "k\n").unwrap();
    }
    let chowned = Command::new("chown").args(["-R", "64323:64323"]).arg(home.path()).status();
    assert!(chowned.unwrap().success());
    set(&at("ro"), 0o555);
    set(&at("read_only"), 0o444);
    chown(at("of_root"), Some(0), Some(64323)).unwrap();
    set(&at("of_root"), 0o664);
    let write = |path: &str, content: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=64323", "--regid=64323", "--clear-groups"]).arg(program.path().join("hostel"));
        let arguments = json!({ "path": path, "content": content });
        command.args(["tool", "write_file", "--json", &arguments.to_string()]);
        command.env("HOSTEL_HOME", home.path()).env("HOME", home.path()).current_dir(at(""));
        finish(command, b"").json()
    };
    // The folder takes no other file, so it is written in place; and nothing is left in it.
    assert!(write("ro/k", "longer\n")["error"].is_null());
    assert_eq!(fs::read_to_string(at("ro/k")).unwrap(), "longer\n");
    refused(&write("ro/new", "x\n"), "permission denied");
    assert_eq!(fs::read_dir(at("ro")).unwrap().count(), 1);
    refused(&write("read_only", "x\n"), "permission denied");
    assert_eq!(fs::read_to_string(at("read_only")).unwrap(), "k\n");
    // A file in the place of another's would be the user's own.
    assert!(write("of_root", "by the user\n")["error"].is_null());
    let owner = Command::new("stat").args(["-c", "%u %g %a"]).arg(at("of_root")).output().unwrap();
    assert_eq!(owner.stdout, b"0 64323 664\n");
}

/// A small disk of its own. It goes with the test.
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn a_full_disk_leaves_the_old_file_whole(road: Road) {
    if !is_root() {
        return;
    }
    let home = in_folder(road);
    let disk = home.path().join("w");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(&disk).status();
    if !mount.unwrap().success() {
        assert!(!strict(), "no disk can be mounted");
        eprintln!("skipped: no disk can be mounted here");
        return;
    }
    let _disk = SmallDisk(disk);
    let _ = home.exec("cd \"$HOME/w\" && echo old > f; echo old > h1; ln h1 h2").expect(0);
    let content = "x".repeat(300_000);
    for path in ["f", "h1", "a/b/new"] {
        refused(&home.tool("write_file", &json!({ "path": path, "content": content })), "no space left");
    }
    says(&home, "cat f h1 h2; ls -A", "old\nold\nold\nf\nh1\nh2\n");
    // There is room for one of it beside the old one, and that is written through.
    write(&home, "h1", &"y".repeat(50_000));
    says(&home, "wc -c < h2; ls -A", "50000\nf\nh1\nh2\n");
    // The session must not stand where the disk was.
    let _ = home.exec("cd /").expect(0);
}
