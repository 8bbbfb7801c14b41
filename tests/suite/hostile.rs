//! Plugins that take their process down: the call fails and says why, and nothing else notices.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hostel_tests::{Home, finish, manifest};

/// A home with the fixture, enabled and selected.
fn home() -> Home {
    home_of("hostile")
}

/// The same under another name, by which its processes can be told from those of other tests.
fn home_of(name: &str) -> Home {
    let home = Home::new().with("HOSTILE_TOKEN", "t0ken-of-mine");
    add(&home, name);
    let _ = home.hostel(&["config", "set", "terminal.backend", name]).expect(0);
    home
}

fn add(home: &Home, name: &str) {
    let folder = home.add_manifest(name, manifest(name) + "requires_env: [HOSTILE_TOKEN, HOSTILE_HANGS]\n");
    hostel_tests::put(&hostel_tests::library("hostile"), &folder.join(format!("lib{name}.so")));
    let _ = home.hostel(&["plugins", "enable", name]).expect(0);
}

/// Returns the processes whose command line matches.
fn processes(pattern: &str) -> Vec<String> {
    let found = Command::new("pgrep").args(["-f", pattern]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
}

/// Requires that no process is left that matches, within a few seconds.
#[track_caller]
fn all_gone(pattern: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    while !processes(pattern).is_empty() {
        assert!(Instant::now() < until, "left behind: {:?}", processes(pattern));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn whatever_takes_the_worker_down_is_an_error_that_says_so() {
    let home = home_of("crasher");
    for (command, how) in [
        ("segv", "crashed (SIGSEGV) during `execute`"),
        ("abort", "crashed (SIGABRT) during `execute`; its last words: the token is ***"),
        ("exit", "ended its process (exit code 0) during `execute`"),
        ("overflow", "crashed (SIGABRT) during `execute`; its last words: "),
        ("swallow", "its last words: memory allocation of 10737418240 bytes failed"),
        ("thread", "crashed (SIGSEGV) during `execute`"),
        ("flood", "and was killed during `execute`"),
    ] {
        let ran = home.hostel(&["exec", "--timeout", "20", "--", command]).expect(125);
        let first = ran.stderr.lines().next().unwrap();
        assert!(first.starts_with("error: backend `crasher`: plugin `crasher` "), "{command}: {ran:?}");
        assert!(first.contains(how), "{command}: {ran:?}");
        assert!(!ran.stderr.contains("t0ken"), "{ran:?}");
        assert!(ran.stderr.contains("\nhint: the next command starts it again"), "{ran:?}");
        assert_eq!(home.exec("echo hi").expect(0).text(), "hi\n", "after {command}");
    }
    // What closes the descriptors under itself is found out at once or at the deadline.
    let ran = home.hostel(&["exec", "--timeout", "2", "--", "close"]);
    assert!(ran.code == 124 || ran.code == 125 && ran.stderr.contains(" connection to Hostel"), "{ran:?}");
    let object = home.exec_json(&[], "segv");
    assert_eq!((&object["error"]["kind"], &object["ended"]), (&"crashed".into(), &"lost".into()));
    // A panic is caught where it happens, also one whose payload is no text.
    home.exec("panic").fails(125, "`execute` panicked");
    // What was printed before is not lost.
    let ran = home.exec("shout").expect(125);
    assert_eq!(ran.text(), "before\n");
    all_gone("plugin-worker crasher$");
}

#[test]
fn what_does_not_end_is_killed() {
    let home = home();
    for command in ["spin", "deaf"] {
        let ran = home.hostel(&["exec", "--timeout", "0.3", "--", command]).expect(124);
        assert!(ran.took < Duration::from_secs(9), "{ran:?}");
        assert!(ran.stderr.contains("did not stop the command in time; its process was killed"), "{ran:?}");
    }
    let mut command = home.command("hostel", &["exec", "--", "true"]);
    command.env("HOSTILE_HANGS", "1");
    let ran = finish(command, b"").expect(125);
    assert!(
        ran.stderr.contains("backend `hostile` is not ready") || ran.stderr.contains("did not answer"),
        "{ran:?}"
    );
    assert!(ran.took < Duration::from_secs(22), "{ran:?}");
}

#[test]
fn nothing_that_a_crashed_worker_has_started_is_left() {
    let home = home();
    let ran = home.hostel(&["exec", "--timeout", "60", "--", "bomb 7301.5"]).expect(125);
    assert!(ran.stderr.contains("crashed (SIGSEGV)"), "{ran:?}");
    all_gone("sleep 7301.5");
}

#[test]
fn a_fork_bomb_under_a_limit_is_cleared_away() {
    if !hostel_tests::is_root() {
        return;
    }
    let home = home_of("forking");
    let program = tempfile::tempdir().unwrap();
    for (path, mode) in [(program.path(), 0o755), (home.path(), 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::copy(hostel_tests::built().join("hostel"), program.path().join("hostel")).unwrap();
    // A user whom nobody else is, since processes are counted for each.
    let chown = Command::new("chown").args(["-R", "64321:64321"]).arg(home.path()).status();
    assert!(chown.unwrap().success());
    let mut command = Command::new("prlimit");
    command.args(["--nproc=150", "setpriv", "--reuid=64321", "--regid=64321", "--clear-groups"]);
    command.arg(program.path().join("hostel")).args(["exec", "--timeout", "1", "--", "forks"]);
    command.env("HOSTEL_HOME", home.path()).current_dir("/");
    let ran = finish(command, b"");
    assert!(ran.code == 124 || ran.code == 125, "{ran:?}");
    assert!(ran.took < Duration::from_secs(30), "{ran:?}");
    let until = Instant::now() + Duration::from_secs(10);
    let left = || {
        let found = Command::new("pgrep").args(["-u", "64321"]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).lines().count()
    };
    while left() > 0 {
        assert!(Instant::now() < until, "{} processes are left", left());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn nothing_is_left_when_the_host_is_killed() {
    let home = home_of("orphan");
    for command in ["setsid sleep 7302.5 & sleep 7302.5", "deaf", "close"] {
        let mut child =
            home.command("hostel", &["exec", "--", command]).stdout(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let worker = "plugin-worker orphan$";
        while processes(worker).len() < 2
            || (command.contains("sleep") && processes("^sleep 7302.5").len() < 2)
        {
            assert!(Instant::now() < until, "it did not start");
            thread::sleep(Duration::from_millis(10));
        }
        if command != "setsid sleep 7302.5 & sleep 7302.5" {
            thread::sleep(Duration::from_millis(300));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        all_gone("sleep 7302.5");
    }
    all_gone("plugin-worker orphan$");
}

#[test]
fn what_is_left_in_the_background_lives_on_after_a_good_end() {
    let home = home_of("parting");
    for _ in 0..25 {
        let ran = home.exec("sleep 300 >/dev/null 2>&1 & echo $!").expect(0);
        let id = ran.text().trim().to_owned();
        // The worker is gone, and has taken nothing along.
        all_gone("plugin-worker parting$");
        // On a busy machine the child is still a copy of the shell, and becomes `sleep` in a moment.
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            if words.contains("sleep") {
                break;
            }
            let is_there = !words.is_empty() && Instant::now() < until;
            assert!(is_there, "process {id} is gone, or no `sleep`: {words:?}");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
    }
}

#[test]
fn a_killed_worker_is_told_apart() {
    let home = home();
    let child = home
        .command("hostel", &["exec", "--", "sleep 7304.5"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while processes("^sleep 7304.5").is_empty() {
        assert!(Instant::now() < until, "it did not start");
        thread::sleep(Duration::from_millis(10));
    }
    let sleeping = processes("^sleep 7304.5")[0].clone();
    // The worker is the parent of the command's shell, or of the command itself.
    let mut id = sleeping;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        id = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned();
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap();
        if String::from_utf8_lossy(&words).contains("plugin-worker") {
            break;
        }
    }
    assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("plugin `hostile` crashed (SIGKILL) during `execute`"), "{stderr}");
    all_gone("sleep 7304.5");
}

/// Waits until a command runs, and returns the process ids of keeper and worker of its plugin.
fn keeper_and_worker(plugin: &str, command: &str) -> [String; 2] {
    let until = Instant::now() + Duration::from_secs(10);
    while processes(command).is_empty() {
        assert!(Instant::now() < until, "it did not start");
        thread::sleep(Duration::from_millis(10));
    }
    // The worker is a copy of its keeper, and has only another name.
    ["hostel-keeper\n", "hostel-worker\n"].map(|name| {
        let mut found = processes(&format!("plugin-worker {plugin}$"));
        found.retain(|id| std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm == name));
        assert_eq!(found.len(), 1, "{name}");
        found.remove(0)
    })
}

#[test]
fn a_worker_whose_keeper_is_killed_goes_with_it() {
    let home = home_of("kept");
    let child = home
        .command("hostel", &["exec", "--", "sleep 7305.5"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let [keeper, _] = keeper_and_worker("kept", "^sleep 7305.5");
    assert!(Command::new("kill").args(["-KILL", &keeper]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("plugin `kept` was killed from outside during `execute`"), "{stderr}");
    all_gone("plugin-worker kept$");
    // The host itself saw to the command.
    all_gone("^sleep 7305.5");
}

#[test]
fn a_keeper_and_a_worker_that_were_stopped_are_ended_all_the_same() {
    let home = home_of("held");
    let child = home
        .command("hostel", &["exec", "--timeout", "3", "--", "sleep 7306.5"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let both = keeper_and_worker("held", "^sleep 7306.5");
    assert!(Command::new("kill").arg("-STOP").args(&both).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{stderr}");
    all_gone("plugin-worker held$");
    all_gone("^sleep 7306.5");
}

#[test]
fn a_worker_starts_with_little_and_may_take_little_more() {
    let home = home().with("UNRELATED_SECRET", "x").with("LC_TIME", "C");
    let names = home.exec("variables").expect(0).text();
    for wanted in ["PATH", "HOSTILE_TOKEN", "LC_TIME", "HOSTEL_COMMAND_LIMITS"] {
        assert!(names.split_whitespace().any(|name| name == wanted), "{wanted}: {names}");
    }
    for unwanted in ["UNRELATED_SECRET", "HOSTEL_HOME"] {
        assert!(!names.contains(unwanted), "{names}");
    }
    let open = home.exec("descriptors").expect(0).text();
    let known = ["/dev/null", "pipe:", "socket:", "anon_inode:[event", "/memfd:hostel-plugin", "/proc/"];
    for descriptor in open.trim().trim_start_matches("ok: ").split(' ') {
        let target = descriptor.split_once('=').map_or(descriptor, |(_, target)| target);
        assert!(known.iter().any(|known| target.starts_with(known)) || target == "(deleted)", "{open}");
    }
    let _ = home.hostel(&["config", "set", "plugins.limits.open_files", "77"]).expect(0);
    let limits = home.exec("limits").expect(0).text();
    let soft = |name: &str| {
        let line = limits.lines().find(|line| line.contains(name)).unwrap();
        line.split(name).nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(soft("Max open files"), "77");
    assert_eq!(soft("Max core file size"), "0");
    assert_eq!(soft("Max data size"), (2048_u64 << 20).to_string());
    // The limits are the plugin's, not its commands'.
    let shown = "ulimit -Sn; ulimit -Sd; ulimit -Sc; ulimit -Hc";
    for own in ["0", "4096"] {
        let mut shell = Command::new("bash");
        let mine = shell.args(["-c", &format!("ulimit -Sc {own}; {shown}")]).output().unwrap();
        let mut host = Command::new("bash");
        let template = home.command("hostel", &["exec", "--", shown]);
        host.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        host.args(["-c", &format!("ulimit -Sc {own}; exec \"$@\""), "-"]).arg(template.get_program());
        host.args(template.get_args()).current_dir(home.path());
        assert_eq!(finish(host, b"").expect(0).stdout, mine.stdout);
    }
}

#[test]
fn a_big_input_and_output_pass_through_a_worker_unharmed() {
    let home = home();
    let mut input = Vec::new();
    for number in 0..400_000_u32 {
        writeln!(input, "{number:x} \u{e4}").unwrap();
    }
    let ran = finish(home.command("hostel", &["exec", "--stdin", "--", "cat"]), &input).expect(0);
    assert_eq!(ran.stdout, input);
    let ran = home.exec("head -c 30000000 /dev/zero | tr '\\0' x").expect(0);
    assert_eq!(ran.stdout.len(), 30_000_000);
}
