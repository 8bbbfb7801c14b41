//! `hostel plugins install` from a git repository, and what is left of it when it is killed.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hostel_tests::Home;
use rustix::process::{Pid, Signal, kill_process};

use super::install::plugin;

#[test]
fn a_git_repository_is_a_source_at_any_of_its_versions() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let folder = plugin(work.path(), "1.0");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]);
        assert!(
            git.args(words).current_dir(&folder).stdout(Stdio::null()).status().unwrap().success(),
            "{words:?}"
        );
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    git(&["tag", "v1"]);
    let yaml = fs::read_to_string(folder.join("plugin.yaml")).unwrap().replace("1.0", "2.0");
    fs::write(folder.join("plugin.yaml"), yaml).unwrap();
    git(&["commit", "-qam", "two"]);
    let address = format!("git+file://{}", folder.display());
    let _ = home.hostel(&["plugins", "install", &format!("{address}#v1")]).expect(0);
    let version = || home.hostel(&["plugins", "list", "--json"]).json()[0]["version"].clone();
    assert_eq!(version(), "1.0");
    assert!(!home.plugin("acmebox").join(".git").exists());
    let ran = home.hostel(&["plugins", "install", &address, "--force"]).expect(0);
    assert!(
        ran.stderr.contains("note: what of Hostel runs already keeps the version that it has"),
        "{ran:?}"
    );
    assert_eq!(version(), "2.0");
    home.hostel(&["plugins", "install", &format!("{address}#nosuch"), "--force"]).fails(1, "nosuch");
    assert_eq!(version(), "2.0");
}

#[test]
fn nothing_of_git_is_left_when_its_host_is_killed() {
    for signal in [Signal::KILL, Signal::TERM] {
        let home = Home::new();
        // It takes every connection, and never says anything.
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("127.0.0.1:{}/silent.git", server.local_addr().unwrap().port());
        let mut host = home.command("hostel", &["plugins", "install", &format!("git+http://{address}")]);
        host.env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(Stdio::null());
        let mut host = host.spawn().unwrap();
        let silent = server.accept().unwrap();
        // `git`, and the helper that has connected.
        assert!(running(&address).len() >= 2);
        kill_process(Pid::from_child(&host), signal).unwrap();
        host.wait().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while !running(&address).is_empty() {
            assert!(Instant::now() < until, "{:?}", running(&address));
            thread::sleep(Duration::from_millis(20));
        }
        drop(silent);
        // What it was making goes with the next command.
        let work = tempfile::tempdir().unwrap();
        let folder = plugin(work.path(), "1.0");
        let _ = home.hostel(&["plugins", "install", folder.to_str().unwrap()]).expect(0);
        let left: Vec<_> = fs::read_dir(home.path().join("plugins"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["acmebox"], "{signal:?}");
    }
}

/// Returns the names of git's processes that have this in an argument.
fn running(text: &str) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let named = folders.filter(|folder| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    });
    let called = named.map(|folder| fs::read_to_string(folder.join("comm")).unwrap_or_default());
    called.filter(|name| name.starts_with("git")).collect()
}
