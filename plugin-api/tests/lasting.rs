//! What lasts between the commands of one session, and what does not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{Launch, Process};
use hostel_plugin_api::shell::{LocalTransport, SessionOptions, Shell, ShellEnvironment, Transport};
use hostel_plugin_api::{CreateEnvironment, Environment, Error, ExecIo, ExecOutcome, ExecRequest, Flow};
use serde_json::json;

struct Io(Mutex<Vec<u8>>, Instant);

impl ExecIo for Io {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.1)
    }
}

/// This machine, with no other shell than this one.
struct OnlySh(PathBuf);

impl Transport for OnlySh {
    fn shell(&self) -> Result<Shell, Error> {
        Ok(Shell { path: self.0.clone(), is_bash: false })
    }
    fn is_directory(&self, path: &Path) -> bool {
        LocalTransport.is_directory(path)
    }
    fn start(&self, launch: Launch<'_>) -> Result<Process, Error> {
        LocalTransport::spawn(&launch)
    }
}

/// A home directory with login files, and the place where the state is kept.
struct Place {
    dir: tempfile::TempDir,
    login: serde_json::Value,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), login: json!({}) }
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    fn options(&self, env: &[(&str, &str)]) -> SessionOptions {
        let mut request = CreateEnvironment::default();
        request.state_dir = Some(self.dir.path().join("state").to_string_lossy().into_owned());
        request.persistent = true;
        request.extra.clone_from(self.login.as_object().unwrap());
        let home = self.dir.path().to_str().unwrap();
        let base = [("PATH", "/usr/bin:/bin"), ("HOME", home)].into_iter().chain(env.iter().copied());
        let base = base.map(|(name, value)| (name.into(), value.into())).collect();
        SessionOptions::new(&request, base, self.dir.path())
    }

    /// Takes the session up, as a new process of the host would.
    fn session(&self) -> ShellEnvironment<LocalTransport> {
        ShellEnvironment::new(LocalTransport, self.options(&[])).unwrap()
    }
}

fn run(session: &dyn Environment, command: &str) -> (String, ExecOutcome) {
    let io = Io(Mutex::default(), Instant::now() + Duration::from_secs(20));
    let outcome = session.execute(ExecRequest::new(command), &io).unwrap();
    (String::from_utf8_lossy(&io.0.into_inner().unwrap()).into_owned(), outcome)
}

#[track_caller]
fn prints(session: &dyn Environment, command: &str, output: &str) {
    assert_eq!(run(session, command).0, output, "{command}");
}

#[test]
fn functions_aliases_and_options_last() {
    let place = Place::new();
    let session = place.session();
    prints(
        &session,
        "greet() { cat <<E\nhi $1 }\nE\n}; alias ll='echo \"it'\"'\"'s\" listed'; shopt -s extglob; set -f",
        "",
    );
    prints(&session, "greet you; echo *; case ab in @(ab|c)) echo glob;; esac", "hi you }\n*\nglob\n");
    prints(&session, "ll; set +f; unset -f greet; unalias ll; shopt -u extglob", "it's listed\n");
    prints(
        &session,
        "type greet ll 2>/dev/null; shopt extglob; set -o | grep noglob",
        "extglob        \toff\nnoglob         \toff\n",
    );
    // In a later process of the host, too.
    prints(&session, "f() { echo kept; }; declare -fx f; g() { f; }", "");
    prints(&place.session(), "g; bash -c f", "kept\nkept\n");
}

#[test]
fn a_start_that_vanishes_under_the_session_does_not_end_it() {
    let place = Place::new();
    let start = place.dir.path().join("start");
    std::fs::create_dir(&start).unwrap();
    let options = || {
        let mut options = place.options(&[]);
        options.cwd.clone_from(&start);
        options
    };
    let session = ShellEnvironment::new(LocalTransport, options()).unwrap();
    prints(&session, "rmdir ../start; echo gone", "gone\n");
    let (output, outcome) = run(&session, "echo hi");
    assert_eq!(output, "hi\n");
    assert!(outcome.warnings.iter().any(|line| line.contains("/start` is gone")), "{outcome:?}");
    // From there on it stands where it was brought to.
    let (output, outcome) = run(&session, "pwd");
    assert_eq!((Path::new(output.trim()), outcome.warnings.len()), (place.dir.path(), 0), "{outcome:?}");
    let other = Place::new();
    let mut options = other.options(&[]);
    options.cwd = start;
    let fresh = ShellEnvironment::new(LocalTransport, options).unwrap();
    let io = Io(Mutex::default(), Instant::now() + Duration::from_secs(20));
    let error = fresh.execute(ExecRequest::new("true"), &io).unwrap_err();
    assert!(error.message().contains("in which the session starts"), "{error}");
}

#[test]
fn what_would_break_later_commands_does_not_last() {
    let place = Place::new();
    let session = place.session();
    for option in ["set -e", "set -u", "set -x", "set -n", "set -t", "set -eux"] {
        let _ = run(&session, option);
        prints(&session, "false; echo \"${NOTHING-}on $NOTHING\"", "on \n");
    }
    prints(
        &session,
        "builtin() { echo poisoned; }; eval() { echo poisoned; }; trap() { :; }; exec() { :; }; pwd() { :; }",
        "",
    );
    prints(&session, "echo fine; cd /", "fine\n");
    prints(&session, "pwd", "/\n");
    prints(&session, "alias builtin=false echo=false for=false; cd /usr", "");
    prints(&session, "unalias echo; \\builtin unalias -a\npwd", "/usr\n");
    prints(&session, "set -o posix; set -m; set -C; cd /tmp", "");
    prints(&session, "pwd; set -o | grep -E '^(posix|monitor|noclobber)' | grep -c on$", "/tmp\n3\n");
}

#[test]
fn a_definition_that_this_shell_does_not_understand_is_missing_and_nothing_else() {
    let place = Place::new();
    let session = place.session();
    prints(&session, "good() { echo good; }; export A=1", "");
    let file = place.dir.path().join("state/shell/session");
    let text = String::from_utf8(std::fs::read(&file).unwrap()).unwrap();
    let broken = text.replace("\0function good=", "\0function bad=bad () { ((\0function good=");
    assert_ne!(text, broken);
    std::fs::write(&file, broken).unwrap();
    prints(&session, "good; echo $A", "good\n1\n");
}

#[test]
fn login_files_are_read_once() {
    let place = Place::new();
    place.file(".bash_profile", "echo x >> \"$HOME/count\"; export FROM_PROFILE=1 PATH=/opt/tool:$PATH LANG=login; umask 077; cd /; . ~/.bashrc");
    place.file(".bashrc", "echo noise; tool() { echo tool; }; alias t=tool; shopt -s nullglob; set -e");
    let session = ShellEnvironment::new(LocalTransport, place.options(&[("LANG", "C")])).unwrap();
    let (output, outcome) =
        run(&session, "t; echo $FROM_PROFILE $LANG; echo ${PATH%%:/usr/local*}; echo *.nothing; false; pwd");
    let home = place.dir.path().display();
    assert_eq!(output, format!("tool\n1 C\n/usr/bin:/bin:/opt/tool\n\n{home}\n"));
    assert!(outcome.warnings.is_empty(), "{outcome:?}");
    for _ in 0..3 {
        let _ = run(&place.session(), "true");
    }
    assert_eq!(std::fs::read_to_string(place.dir.path().join("count")).unwrap(), "x\n");
}

#[test]
fn a_command_that_looks_like_an_option_is_a_command() {
    let place = Place::new();
    let session = place.session();
    let (output, outcome) = run(&session, "--help");
    assert!(outcome.exit_code == 127 && output.contains("command not found"), "{output}");
}

#[test]
fn login_files_may_be_named_or_left_out() {
    let mut place = Place::new();
    place.file(".bashrc", "export WHICH=rc");
    place.file("own file", "export WHICH=own");
    place.login = json!({"shell_init_files": ["~/own file"]});
    prints(&place.session(), "echo $WHICH", "own\n");
    let mut place = Place::new();
    place.file(".bashrc", "export WHICH=rc");
    place.login = json!({"auto_source_bashrc": false});
    prints(&place.session(), "echo \"[$WHICH]\"", "[]\n");
    let mut place = Place::new();
    place.login = json!({"shell_init_files": ["/no/such/file"]});
    let (output, outcome) = run(&place.session(), "echo works");
    assert_eq!(output, "works\n");
    assert!(outcome.warnings[0].contains("does not exist"), "{outcome:?}");
}

#[test]
fn a_broken_login_file_leaves_a_plain_shell_and_a_warning() {
    for broken in ["exit 3", "kill -9 $$", "export A=1; exec false"] {
        let place = Place::new();
        place.file(".bashrc", broken);
        let session = place.session();
        let (output, outcome) = run(&session, "echo works");
        assert_eq!(output, "works\n", "{broken}");
        assert!(outcome.warnings.iter().any(|line| line.contains("login files")), "{broken}: {outcome:?}");
        assert!(run(&session, "echo again").1.warnings.is_empty(), "it is said once");
    }
    let place = Place::new();
    place.file(".bashrc", "export A=1\nif [ ( ; done");
    let (output, outcome) = run(&place.session(), "echo works $A");
    assert_eq!(output, "works 1\n");
    assert!(outcome.warnings.len() == 1 && outcome.warnings[0].contains(".bashrc"), "{outcome:?}");
    // A file whose last command fails is none the worse for it.
    let place = Place::new();
    place.file(".bashrc", "export A=1\n[ -e /no/such ] && true");
    let (output, outcome) = run(&place.session(), "echo works $A");
    assert!(output == "works 1\n" && outcome.warnings.is_empty(), "{outcome:?}");
}

fn keeps_directory_and_exports(shell: PathBuf) {
    let place = Place::new();
    place.file(".profile", "export FROM_PROFILE=1");
    let session = ShellEnvironment::new(OnlySh(shell), place.options(&[])).unwrap();
    prints(&session, "cd /usr; export A='one\ntwo'; f() { :; }; echo $FROM_PROFILE", "1\n");
    prints(&session, "pwd; echo \"$A\"; type f >/dev/null 2>&1 || echo none", "/usr\none\ntwo\nnone\n");
    prints(&session, "cat <<'E'\n$HOME\nE\nexport PATH=/nowhere; unset A", "$HOME\n");
    prints(&session, "echo \"$PATH ${A-gone}\"; PATH=/usr/bin:/bin; export PATH", "/nowhere gone\n");
    assert_eq!(run(&session, "echo a; kill -9 $$").1.exit_code, 137);
    // A mistake that the shell finds before it has run anything has cost nothing.
    for (command, directory) in [("echo 'unbalanced", "/usr"), ("(", "/usr"), ("cd /\n(", "/")] {
        let (_, outcome) = run(&session, command);
        assert!(outcome.exit_code == 2 && outcome.warnings.is_empty(), "{command}: {outcome:?}");
        prints(&session, "pwd", &format!("{directory}\n"));
    }
    for command in ["exec 2>/dev/null; ulimit -n 3; (exit 7)", "exec 2>/dev/null; ulimit -n 3; exit 7"] {
        assert_eq!(run(&session, command).1.exit_code, 7, "{command}");
    }
    prints(&session, "trap 'echo bye $?' EXIT; (exit 3)", "bye 3\n");
    prints(&session, "sleep 5 & exec printf x", "x");
}

#[test]
fn a_shell_that_is_not_bash_keeps_directory_and_exports() {
    keeps_directory_and_exports("/bin/sh".into());
}

#[test]
fn so_does_that_of_busybox() {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
    let Some(busybox) = busybox else {
        assert!(std::env::var_os("HOSTEL_TEST_STRICT").is_none(), "there is no busybox");
        eprintln!("skipped: there is no `busybox`; install it with `apt-get install busybox`");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(busybox, dir.path().join("sh")).unwrap();
    keeps_directory_and_exports(dir.path().join("sh"));
}

#[test]
fn a_session_in_memory_keeps_all_of_it_too() {
    let place = Place::new();
    let mut options = place.options(&[]);
    options.state_dir = None;
    let session = ShellEnvironment::new(LocalTransport, options).unwrap();
    prints(&session, "f() { echo f; }; cd /; alias a=f", "");
    prints(&session, "a; pwd", "f\n/\n");
    drop(session);
}
