//! `sudo` gets its password on standard input, and nobody else gets it anywhere.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use hostel_tests::{Home, Ran, built, finish, in_both_isolations, is_root, strict};
use serde_json::Value;

/// Stands in for `sudo`, and keeps its arguments in `log`. The password is in `password`; none is needed if there is `free`.
const SUDO: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s\n' "$*" >>"$here/log"
reads= never=
while :; do
    case $1 in
        -k) shift ;;
        -S) reads=1; shift ;;
        -n) never=1; shift ;;
        -p) shift 2 ;;
        *) break ;;
    esac
done
if [ ! -e "$here/free" ]; then
    [ -z "$never" ] || { echo 'sudo: a password is required' >&2; exit 1; }
    [ -n "$reads" ] || { echo 'sudo: a terminal is required' >&2; exit 1; }
    IFS= read -r line || { echo 'sudo: no password was provided' >&2; exit 1; }
    IFS= read -r password <"$here/password"
    [ "$line" = "$password" ] || { printf 'Sorry, try again.\nsudo: 1 incorrect password attempt\n' >&2; exit 1; }
fi
BY_SUDO=1; export BY_SUDO
exec "$@"
"#;

/// Counts where a password with `pw-5519` in it can be seen: in the arguments of processes, and in its own variables.
const LOOK: &str = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; done 2>/dev/null | grep -c 'pw-[5]519'\n\
     env | grep -c 'pw-[5]519'\n:\n";

/// A folder with a `sudo` in it.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new(password: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("password"), format!("{password}\n")).unwrap();
        fs::write(dir.path().join("look"), LOOK).unwrap();
        let mut sudo =
            File::options().create_new(true).write(true).mode(0o755).open(dir.path().join("sudo")).unwrap();
        sudo.write_all(SUDO.as_bytes()).unwrap();
        Self(dir)
    }

    fn path(&self) -> String {
        format!("PATH={}:/usr/local/bin:/usr/bin:/bin", self.0.path().display())
    }

    fn look(&self) -> String {
        format!("sh {}/look", self.0.path().display())
    }

    fn free(&self) {
        fs::write(self.0.path().join("free"), "").unwrap();
    }

    /// Returns how it was called.
    fn log(&self) -> String {
        fs::read_to_string(self.0.path().join("log")).unwrap_or_default()
    }

    /// Runs a command that finds it.
    fn exec(&self, home: &Home, options: &[&str], command: &str, stdin: &[u8]) -> Ran {
        let path = self.path();
        let words: Vec<&str> =
            ["exec", "--env", &path].iter().chain(options).chain(&["--", command]).copied().collect();
        finish(hostel(home, &words), stdin)
    }
}

/// The program, without the tester's own password.
fn hostel(home: &Home, words: &[&str]) -> Command {
    let mut command = home.command("hostel", words);
    if !command.get_envs().any(|(name, _)| name == "SUDO_PASSWORD") {
        command.env_remove("SUDO_PASSWORD");
    }
    command
}

fn warned(report: &Value, of: &str) -> bool {
    report["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(of))
}

/// Requires that no file below the home holds this, `.env` excepted.
fn absent(folder: &Path, password: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            absent(&path, password);
        } else if meta.is_file() && !path.ends_with(".env") {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(password.len()).any(|window| window == password.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

in_both_isolations! {
    fn the_password_reaches_each_sudo_and_the_rest_of_the_input_the_command(isolation) {
        let password = "pw-5519 'a\\b' ä";
        let home = Home::new().with("SUDO_PASSWORD", password).with("ACMEBOX_TOKEN", "t");
        home.add_plugin("acmebox", "acmebox");
        let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        for backend in ["local", "acmebox"] {
            let fake = Fake::new(password);
            let command = "sudo sh -c 'echo $BY_SUDO'; A=1 sudo sh -c 'echo again $BY_SUDO'; cat";
            let ran = fake.exec(&home, &["--backend", backend, "--stdin"], command, b"the rest\n").expect(0);
            assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("1\nagain 1\nthe rest\n", ""), "{backend}");
            let calls = "-k -S -p  sh -c echo $BY_SUDO\n-k -S -p  sh -c echo again $BY_SUDO\n";
            assert_eq!(fake.log(), calls, "{backend}");
            let ran = fake.exec(&home, &["--backend", backend], "sudo true; cat", b"").expect(0);
            assert_eq!(ran.text(), "", "{backend}");
        }
    }
}

#[test]
fn the_password_is_in_no_argument_variable_output_or_file() {
    let password = "pw-5519-hidden";
    let home = Home::new();
    let file = home.path().join(".env");
    fs::write(&file, format!("SUDO_PASSWORD={password}\n")).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let fake = Fake::new(password);
    let command = format!("sudo {0}; {0}; export A=1; seq 100", fake.look());
    let ran = fake.exec(&home, &["--json", "--max-output", "100"], &command, b"").expect(0);
    let report = ran.json();
    assert!(report["output"].as_str().unwrap().starts_with("0\n0\n0\n0\n"), "{report}");
    assert!(!ran.text().contains(password) && !ran.stderr.contains(password), "{ran:?}");
    assert!(fake.log().starts_with("-k -S -p  sh ") && !fake.log().contains(password));
    let verbose = fake.exec(&home, &["-vvv"], "sudo true", b"");
    assert!(!verbose.stderr.contains(password), "{verbose:?}");
    absent(home.path(), password);
}

#[test]
fn a_line_that_no_sudo_has_read_is_not_shown() {
    let home = Home::new().with("SUDO_PASSWORD", "pw-unread");
    let fake = Fake::new("pw-unread");
    let ran = fake.exec(&home, &["--json"], "false && sudo true; cat", b"").expect(0);
    let report = ran.json();
    assert_eq!(report["output"], "***\n");
    assert!(warned(&report, "taken out") && !ran.text().contains("pw-unread"), "{report}");
}

#[test]
fn a_sudo_that_must_not_ask_or_has_a_terminal_is_left_alone() {
    let home = Home::new().with("SUDO_PASSWORD", "pw-unused");
    let fake = Fake::new("pw-unused");
    let ran = fake.exec(&home, &["--stdin"], "sudo -n id; cat", b"input\n").expect(0);
    assert_eq!(ran.text(), "sudo: a password is required\ninput\n");
    let _ = fake.exec(&home, &["--pty"], "sudo id", b"").expect(1);
    let _ = fake.exec(&home, &[], "echo a | sudo cat", b"").expect(1);
    assert_eq!(fake.log(), "-n id\nid\ncat\n");
}

#[test]
fn without_a_password_and_without_a_person_nothing_is_changed() {
    let (home, fake) = (Home::new(), Fake::new("pw-nowhere"));
    let ran = fake.exec(&home, &["--stdin"], "sudo id; cat", b"input\n").expect(0);
    assert_eq!(ran.text(), "sudo: a terminal is required\ninput\n");
    fake.free();
    let _ = fake.exec(&home, &[], "sudo true", b"").expect(0);
    assert_eq!(fake.log(), "id\ntrue\n");
}

#[test]
fn a_wrong_password_is_told() {
    let home = Home::new().with("SUDO_PASSWORD", "pw-wrong");
    let fake = Fake::new("pw-right");
    let ran = fake.exec(&home, &["--json"], "sudo id", b"").expect(1);
    let report = ran.json();
    assert!(warned(&report, "`sudo` refused the password in `SUDO_PASSWORD`"), "{report}");
    assert_eq!(report["sudo_auth_failed"], true);
    assert!(report.get("sudo_cache_cleared").is_none(), "{report}");
    assert!(!ran.text().contains("pw-wrong"), "{report}");
    // An empty one is one, too.
    let (home, fake) = (Home::new().with("SUDO_PASSWORD", ""), Fake::new(""));
    let ran = fake.exec(&home, &["--json"], "sudo echo fine", b"").expect(0);
    assert_eq!(ran.json()["output"], "fine\n");
    assert!(ran.json().get("sudo_auth_failed").is_none());
}

/// Runs `hostel exec` on a terminal, types `answer` once a password is asked for, and returns what stood on the screen.
fn at_terminal(home: &Home, fake: &Fake, command: &str, answer: &str) -> (String, bool) {
    let program = built().join("hostel");
    let line = format!("{} exec --env '{}' -- '{command}'", program.display(), fake.path());
    let own = hostel(home, &[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "dumb").env_remove("SUDO_PASSWORD");
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (mut seen, mut answered) = (String::new(), false);
    let mut bytes = [0; 4096];
    loop {
        let read = screen.read(&mut bytes).unwrap();
        if read == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        if !answered && seen.contains("(empty to go on without): ") {
            answered = true;
            // What is typed before the terminal has stopped showing it would be shown by the terminal.
            std::thread::sleep(std::time::Duration::from_millis(200));
            typed.write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    (seen, answered)
}

#[test]
fn a_person_is_asked_only_where_sudo_would_ask() {
    let home = Home::new();
    let fake = Fake::new("pw-typed");
    let (seen, answered) = at_terminal(&home, &fake, "sudo echo it ran", "pw-typed");
    assert!(answered && seen.contains("it ran") && !seen.contains("pw-typed"), "{seen}");
    assert_eq!(fake.log(), "-n true\n-k -S -p  echo it ran\n");
    let (seen, answered) = at_terminal(&home, &fake, "sudo echo it ran", "pw-mistyped");
    assert!(answered && seen.contains("refused the password") && !seen.contains("it ran"), "{seen}");
    let (seen, answered) = at_terminal(&home, &fake, "sudo echo it ran; echo after", "\u{3}");
    assert!(answered && seen.contains("interrupted") && !seen.contains("after"), "{seen}");
    fake.free();
    let (seen, answered) = at_terminal(&home, &fake, "sudo echo it ran", "");
    assert!(!answered && seen.contains("it ran"), "{seen}");
    absent(home.path(), "pw-typed");
}

/// A user of the real `sudo`, whom only those know that are started by [`Real::run`].
struct Real {
    dir: tempfile::TempDir,
    home: Home,
}

/// The number of that user.
const USER: u32 = 64322;

/// Puts the files of users in the place of the system's, for what is started from here on alone.
const AMONG_THEM: &str = r#"
for name in passwd shadow sudoers; do mount --bind "$1/$name" "/etc/$name" || exit 99; done
shift
exec setpriv --reuid=64322 --regid=64322 --clear-groups "$@"
"#;

impl Real {
    /// Makes the user. None, and loudly, where that cannot be.
    fn new(password: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let works = |program: &str, words: &[&str]| {
            let ran = Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
            ran.is_ok_and(|status| status.success())
        };
        if !works("sudo", &["-V"]) || !works("unshare", &["--mount", "true"]) {
            assert!(!strict(), "this needs `sudo` and a namespace of mounts");
            eprintln!("skipped: it needs `sudo` and a namespace of mounts");
            return None;
        }
        let dir = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["passwd", "-6", "-stdin"]);
        let hash = finish(openssl, format!("{password}\n").as_bytes()).expect(0).text();
        let put = |name: &str, mode: u32, text: String| {
            let path = dir.path().join(name);
            File::options()
                .create_new(true)
                .write(true)
                .mode(mode)
                .open(path)
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        };
        let old = |name: &str| fs::read_to_string(Path::new("/etc").join(name)).unwrap();
        put("passwd", 0o644, format!("{}sudotest:x:{USER}:{USER}::/:/bin/sh\n", old("passwd")));
        put("shadow", 0o640, format!("{}sudotest:{}:19000::::::\n", old("shadow"), hash.trim()));
        put("sudoers", 0o440, "Defaults !lecture, !syslog\nsudotest ALL=(ALL) ALL\n".into());
        fs::copy(built().join("hostel"), dir.path().join("hostel")).unwrap();
        let home = Home::new();
        chown(home.path(), Some(USER), Some(USER)).unwrap();
        Some(Self { dir, home })
    }

    fn run(&self, password: &str, options: &[&str], command: &str, stdin: &[u8]) -> Ran {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", AMONG_THEM, "sh"]).arg(self.dir.path());
        unshare.arg(self.dir.path().join("hostel")).arg("exec").args(options).args(["--", command]);
        unshare.env("HOSTEL_HOME", self.home.path()).env("HOME", self.home.path()).env_remove("LANG");
        unshare.env("LC_ALL", "C").env("SUDO_PASSWORD", password).stdin(Stdio::null()).current_dir("/");
        finish(unshare, stdin)
    }
}

#[test]
fn the_real_sudo_takes_it() {
    let password = "pw-real-5520";
    let Some(real) = Real::new(password) else { return };
    // It may complain of the host's name.
    let command = "sudo id -u 2>/dev/null; sudo -u sudotest id -un 2>/dev/null; sudo id -un 2>/dev/null; cat";
    let ran = real.run(password, &["--stdin"], command, b"the rest\n").expect(0);
    // Nobody needs a password to become who they are, so that line is left over, and the last `sudo` reads it.
    assert_eq!(
        (ran.text().as_str(), ran.stderr.contains("taken out")),
        ("0\nsudotest\nroot\n***\nthe rest\n", true)
    );
    let _ = real.run(password, &[], "sudo -n true", b"").expect(1);
    let ran = real.run("pw-false-5520", &["--json"], "sudo id -u", b"").expect(1);
    let report = ran.json();
    assert_eq!(report["sudo_auth_failed"], true, "{report}");
    assert!(!ran.text().contains("5520") && warned(&report, "refused the password"), "{report}");
}
