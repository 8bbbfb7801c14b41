//! The shipped sandbox.

use std::fs;
use std::process::Command;

use hostel_tests::{Home, finish};

fn home() -> Home {
    let home = Home::new();
    home.add_plugin("bubblewrap", "bubblewrap");
    let _ = home.hostel(&["plugins", "enable", "bubblewrap"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "bubblewrap"]).expect(0);
    home
}

/// Says whether the test can run; where everything is meant to be installed, it must.
fn installed() -> bool {
    let works = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        assert!(std::env::var_os("CI").is_none(), "`bwrap` does not work here");
        eprintln!("skipped: `bwrap` is not installed or does not work here");
    }
    works
}

#[test]
fn a_sandbox_has_its_own_root_and_keeps_the_tasks_folder() {
    if !installed() {
        return;
    }
    let home = home();
    let secret = home.path().join("secret.txt");
    fs::write(&secret, "s3cret").unwrap();
    let ran = home.exec(&format!("pwd; id -u; ls /home /root {} 2>&1 | grep -c 'No such file'; ls /sys/class/net 2>/dev/null; echo x > kept; echo y > /tmp/mine", secret.display()));
    assert_eq!(ran.expect(0).text(), "/workspace\n1000\n3\n");
    assert_eq!(
        home.exec("cat kept /tmp/mine; touch /usr/x 2>/dev/null || echo read-only").expect(0).text(),
        "x\ny\nread-only\n"
    );
    assert_eq!(home.hostel(&["exec", "--task", "other", "--", "ls; ls /tmp"]).expect(0).text(), "");
    let _ = home.exec("cd /tmp; export A=1").expect(0);
    assert_eq!(
        home.exec("echo $A $PWD; grep -c CapEff:.*0000000000000000 /proc/self/status").expect(0).text(),
        "1 /tmp\n1\n"
    );
}

#[test]
fn codes_signals_and_timeouts_are_the_commands_own() {
    if !installed() {
        return;
    }
    let home = home();
    for (command, code) in
        [("exit 7", 7), ("kill -9 $$", 137), ("nosuchcommand_q", 127), ("cat <<E\nx\nE", 0)]
    {
        let _ = home.exec(command).expect(code);
    }
    let ran =
        home.hostel(&["exec", "--timeout", "1", "--", "echo a; setsid sleep 7971 & sleep 7972"]).expect(124);
    assert_eq!(ran.text(), "a\n");
    let left = Command::new("pgrep").args(["-f", "sleep 797[12]"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
    home.hostel(&["exec", "--cwd", "/nope", "--", "true"]).fails(125, "does not exist");
}

#[test]
fn a_folder_of_the_users_becomes_the_workspace_when_he_says_so() {
    if !installed() {
        return;
    }
    let home = home();
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("a.txt"), "hello").unwrap();
    let key = "terminal.backends.bubblewrap.workspace";
    let _ = home.hostel(&["config", "set", key, project.path().to_str().unwrap()]).expect(0);
    assert_eq!(home.exec("cat a.txt; echo b > b.txt").expect(0).text(), "hello");
    assert_eq!(fs::read_to_string(project.path().join("b.txt")).unwrap(), "b\n");
    let _ = home.hostel(&["config", "set", key, "/no/such/folder"]).expect(0);
    home.exec("true").fails(125, "backend `bubblewrap`: `workspace` must be the absolute path of a folder");
}

#[test]
fn without_bwrap_the_hint_says_how_to_install_it() {
    let home = home();
    let mut command = home.command("hostel", &["backends", "--json"]);
    command.env("PATH", "/nowhere");
    let rows = finish(command, b"").expect(0).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "bubblewrap").unwrap().clone();
    assert_eq!(row["status"], "needs_setup");
    assert!(row["detail"].as_str().unwrap().contains("apt-get install bubblewrap"), "{row}");
    let mut command = home.command("hostel", &["exec", "--", "true"]);
    command.env("PATH", "/nowhere");
    finish(command, b"").fails(125, "`bwrap` is not on the path");
}

#[test]
fn a_sandbox_that_cannot_be_made_is_no_exit_code_of_the_commands() {
    if !installed() {
        return;
    }
    let home = home();
    let tools = tempfile::tempdir().unwrap();
    fs::write(tools.path().join("bwrap"), "#!/bin/sh\necho 'bwrap: no namespaces here' >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(tools.path().join("bwrap"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let mut command = home.command("hostel", &["exec", "--json", "--", "true"]);
    command.env("PATH", format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap()));
    let object = finish(command, b"").expect(125).json();
    assert!(object["exit_code"].is_null() && object["ended"].is_null(), "{object}");
    assert!(object["output"].as_str().unwrap().contains("no namespaces here"), "{object}");
}
