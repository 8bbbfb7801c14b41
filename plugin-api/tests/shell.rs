//! The shared shell session, on this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment, StripList};
use hostel_plugin_api::{
    CreateEnvironment, Ended, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin,
};

struct Io {
    output: Mutex<Vec<u8>>,
    deadline: Option<Instant>,
}

impl ExecIo for Io {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.output.lock().unwrap().extend_from_slice(bytes);
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

struct Session {
    environment: ShellEnvironment<LocalTransport>,
    dir: tempfile::TempDir,
}

struct Ran {
    output: String,
    outcome: ExecOutcome,
    took: Duration,
}

impl Session {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut request = CreateEnvironment::default();
        request.timeout = Duration::from_secs(20);
        request.strip_env = vec!["SECRET_*".into()];
        let base = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOSTVAR".into(), "h".into()),
            ("SECRET_TOKEN".into(), "s3cret".into()),
        ];
        let options = SessionOptions::new(&request, base, dir.path());
        Self { environment: ShellEnvironment::new(LocalTransport, options).unwrap(), dir }
    }

    fn try_run(&self, request: ExecRequest, limit: Option<f64>) -> Result<Ran, Error> {
        let start = Instant::now();
        let deadline = limit.map(|limit| start + Duration::from_secs_f64(limit));
        let io = Io { output: Mutex::default(), deadline };
        let outcome = self.environment.execute(request, &io)?;
        let output = String::from_utf8_lossy(&io.output.into_inner().unwrap()).into_owned();
        Ok(Ran { output, outcome, took: start.elapsed() })
    }

    fn run(&self, command: &str) -> Ran {
        self.try_run(ExecRequest::new(command), None).unwrap()
    }

    fn output(&self, command: &str) -> String {
        self.run(command).output
    }
}

#[test]
fn exit_codes_are_those_of_the_shell() {
    let session = Session::new();
    let cases = [
        ("true", 0),
        ("exit 300", 44),
        ("exit -1", 255),
        ("nosuchcommand_q", 127),
        ("/etc/passwd", 126),
        ("kill -9 $$", 137),
        ("kill -TERM $$; echo alive", 143),
        ("sh -c 'kill -SEGV $$'; exit $?", 139),
        ("(", 2),
        ("", 0),
        ("# only a comment", 0),
        ("exec printf 'replaced\\n'; echo never", 0),
        ("trap 'echo bye' EXIT; exit 6", 6),
    ];
    for (command, code) in cases {
        let ran = session.run(command);
        assert_eq!(ran.outcome.exit_code, code, "{command}: {}", ran.output);
        assert!(!ran.output.contains("alive") && !ran.output.contains("never"), "{command}: {}", ran.output);
    }
    assert_eq!(session.run("kill -9 $$").outcome.signal, Some(9));
    assert_eq!(session.output("trap 'echo bye' EXIT; exit 6"), "bye\n");
}

#[test]
fn the_command_is_one_unit() {
    let session = Session::new();
    assert_eq!(session.output("cat <<'END'\nalpha\n  $HOME\nEND"), "alpha\n  $HOME\n");
    assert_eq!(session.output("cat > f.txt <<X\nbody\nX"), "");
    assert_eq!(std::fs::read(session.dir.path().join("f.txt")).unwrap(), b"body\n");
    assert_eq!(session.output("echo hi # tail note"), "hi\n");
    assert_eq!(session.output("echo hi \\"), "hi \\\n");
    assert_eq!(session.output("cat <<-T\n\tindented\n\tT"), "indented\n");
    assert_eq!(session.output("echo $# $0 ${__hostel-gone}"), "0 bash gone\n");
    assert_eq!(
        session.output("printf '%s|' 'it'\\''s' \"wow!\" $'\\001\\177é' \"\\$HOME\""),
        "it's|wow!|\u{1}\u{7f}é|$HOME|"
    );
    let long = format!(": '{}'; echo end", "x".repeat(2_000_000));
    assert_eq!(session.output(&long), "end\n");
    let error = session.try_run(ExecRequest::new("echo a\0b"), None).err().unwrap();
    assert!(!error.may_have_started());
}

#[test]
fn directory_and_exported_variables_last_and_nothing_else() {
    let session = Session::new();
    session
        .run("mkdir -p a/b && cd a/b; export KEEP=$'two\\nlines; touch pwned' PLAIN; local=1; unset HOSTVAR");
    assert_eq!(
        session.output("echo \"${PWD##*/} [$KEEP] [${local-unset}] [${HOSTVAR-unset}]\"; ls"),
        "b [two\nlines; touch pwned] [unset] [unset]\n"
    );
    session.run("sleep 3 & exit 3");
    session.run("export KEEP=changed; exec true");
    assert_eq!(session.output("cd - >/dev/null; echo \"${KEEP%%$'\\n'*}\"; exit 4"), "two\n");
    assert_eq!(session.run("pwd").outcome.cwd.unwrap(), session.dir.path().to_str().unwrap());
    session.run("export PATH=/nowhere CDPATH=/; readonly LOCKED=1; export LOCKED");
    assert_eq!(session.output("echo ok $LOCKED $PATH"), "ok 1 /nowhere\n");
}

#[test]
fn what_belongs_to_one_call_stays_there() {
    let session = Session::new();
    session.run("export B1=y");
    let once = |command: &str| {
        let mut request = ExecRequest::new(command);
        request.env =
            vec![("ONCE".into(), "1".into()), ("B1".into(), "temp".into()), ("X.Y".into(), "1".into())];
        session.try_run(request, None).unwrap().output
    };
    assert_eq!(once("echo $ONCE $B1"), "1 temp\n");
    assert_eq!(session.output("echo ${ONCE-unset} $B1; env | grep -c '^X.Y='"), "unset y\n0\n");
    let level = session.output("echo $SHLVL");
    assert_eq!(session.output("echo $SHLVL"), level);
    std::fs::create_dir(session.dir.path().join("sub")).unwrap();
    let mut request = ExecRequest::new("pwd; cd /");
    request.cwd = Some("./sub".into());
    assert!(session.try_run(request, None).unwrap().output.ends_with("/sub\n"));
    assert_eq!(session.output("pwd").trim_end(), session.dir.path().to_str().unwrap());
}

#[test]
fn secrets_are_absent_wherever_they_come_from() {
    let session = Session::new();
    let question = "env | grep -c '^SECRET_' || true";
    assert_eq!(session.output(question), "0\n");
    session.run("export SECRET_TWO=made");
    let mut request = ExecRequest::new(question);
    request.env = vec![("SECRET_TOKEN".into(), "given".into())];
    let ran = session.try_run(request, None).unwrap();
    assert_eq!(ran.output, "0\n");
    assert_eq!(ran.outcome.warnings, ["`SECRET_TOKEN` was not passed: it is a provider's secret"]);
}

#[test]
fn a_directory_that_vanished_is_recovered_from_and_a_wrong_one_is_an_error() {
    let session = Session::new();
    session.run("mkdir w && cd w");
    assert_eq!(session.output("rmdir ../w; echo gone"), "gone\n");
    let ran = session.run("echo hi");
    assert_eq!((ran.output.as_str(), ran.outcome.warnings.len()), ("hi\n", 1));
    assert_eq!(session.run("true").outcome.warnings.len(), 0);
    assert_eq!(session.output("cd / && pwd"), "/\n");
    for bad in
        ["no/such/dir", "nodir; touch pwned", "$(touch pwned)", "-", "~/;touch pwned", "a\ntouch pwned"]
    {
        let mut request = ExecRequest::new("echo there");
        request.cwd = Some(bad.into());
        assert_eq!(session.try_run(request, None).err().unwrap().kind(), ErrorKind::BAD_CWD, "{bad}");
    }
}

#[test]
fn a_timeout_keeps_the_output_and_kills_the_tree() {
    let session = Session::new();
    let run = |command: &str, limit| session.try_run(ExecRequest::new(command), Some(limit)).unwrap();
    let ran = run("printf 'phase-1 ok\\n'; printf 'phase-2 half'; sleep 30; echo never", 0.5);
    assert_eq!((ran.output.as_str(), ran.outcome.exit_code), ("phase-1 ok\nphase-2 half", 124));
    assert_eq!(ran.outcome.ended, Ended::TIMEOUT);
    assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
    let ran = run("trap '' TERM INT HUP; echo armed; while :; do sleep 0.2; done", 0.5);
    assert_eq!((ran.output.as_str(), ran.outcome.exit_code), ("armed\n", 124));
    assert!(ran.took < Duration::from_millis(2500), "{:?}", ran.took);
    let tree = "setsid sleep 7761 & (setsid sh -c 'sleep 7762 & exit' &)\nbash -c 'exec -a renamed sleep 7763' &\nsleep 7764";
    assert_eq!(run(tree, 0.5).outcome.exit_code, 124);
    assert_eq!(session.output("pgrep -fa 'sleep 776[0-9]|renamed 776[3]'"), "");
}

#[test]
fn the_end_is_the_shells_and_background_children_go_on() {
    let session = Session::new();
    let ran = session.run("sleep 8 & echo $! > bg.pid; echo started");
    assert_eq!(ran.output, "started\n");
    assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
    assert_eq!(session.output("kill -0 \"$(cat bg.pid)\" && echo alive; kill \"$(cat bg.pid)\""), "alive\n");
    let ran = session.run("exec >&- 2>&-; sleep 0.3; exit 9");
    assert_eq!(ran.outcome.exit_code, 9);
    assert!(ran.took >= Duration::from_millis(300));
}

#[test]
fn input_of_any_size_flows_beside_the_output() {
    let session = Session::new();
    let bytes = vec![b'a'; 1 << 20];
    let feed = |command: &str, limit| {
        let mut request = ExecRequest::new(command);
        request.stdin = Stdin::Bytes(bytes.clone());
        session.try_run(request, Some(limit)).unwrap()
    };
    assert_eq!(feed("cat | wc -c", 10.0).output, "1048576\n");
    assert_eq!(feed("cat", 10.0).output.len(), 1 << 20);
    assert_eq!(feed("sleep 30", 0.5).outcome.exit_code, 124);
    assert_eq!(feed("true", 10.0).outcome.exit_code, 0);
    let ran = feed("head -c 3; exit 4", 10.0);
    assert_eq!((ran.output.as_str(), ran.outcome.exit_code), ("aaa", 4));
    assert_eq!(session.output("cat; echo done"), "done\n");
}

#[test]
fn children_inherit_nothing_of_ours() {
    let session = Session::new();
    assert_eq!(session.output("ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ");
    let signals = session.output("grep -E 'SigIgn|SigBlk' /proc/self/status");
    for line in signals.lines() {
        let set = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(set & 0x7fff_ffff, 0, "{line}");
    }
    assert_eq!(session.output("yes | head -n 1; echo \"${PIPESTATUS[*]}\""), "y\n141 0\n");
}

#[test]
fn a_whole_stream_arrives_in_order() {
    let session = Session::new();
    assert_eq!(session.output("head -c 20000000 /dev/zero | tr '\\0' q").len(), 20_000_000);
    assert_eq!(session.output("for i in 1 2 3; do echo o$i; echo e$i >&2; done"), "o1\ne1\no2\ne2\no3\ne3\n");
}

#[test]
fn files_pass_through_the_default_methods() {
    let session = Session::new();
    session.environment.write_file("it's $x.bin", b"\0\xffbytes\n").unwrap();
    assert_eq!(session.environment.read_file("it's $x.bin").unwrap(), b"\0\xffbytes\n");
    let error = session.environment.read_file("missing").unwrap_err();
    assert!(error.message().contains("missing"), "{error}");
}

#[test]
fn many_at_once_lose_nothing() {
    let session = Session::new();
    std::thread::scope(|scope| {
        for number in 1..=24 {
            let session = &session;
            scope.spawn(move || {
                session.run(&format!("export V{number}=$(head -c 3000 /dev/zero | tr '\\0' v)"))
            });
        }
    });
    assert_eq!(session.output("env | grep -c '^V[0-9]*='"), "24\n");
}

#[test]
fn state_survives_in_its_folder_until_it_is_cleaned_up() {
    let dir = tempfile::tempdir().unwrap();
    let open = |persistent| {
        let mut request = CreateEnvironment::default();
        request.timeout = Duration::from_secs(20);
        request.state_dir = Some(dir.path().to_str().unwrap().into());
        request.persistent = persistent;
        let base = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        ShellEnvironment::new(LocalTransport, SessionOptions::new(&request, base, Path::new("/"))).unwrap()
    };
    let io = || Io { output: Mutex::default(), deadline: None };
    open(true).execute(ExecRequest::new("export A=1; cd /usr"), &io()).unwrap();
    open(true).cleanup().unwrap();
    let second = io();
    open(true).execute(ExecRequest::new("echo $A $PWD"), &second).unwrap();
    assert_eq!(second.output.into_inner().unwrap(), b"1 /usr\n");
    open(false).cleanup().unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    open(false).cleanup().unwrap();
}

#[test]
fn a_strip_list_refuses_nonsense() {
    assert!(!StripList::is_valid("A=B") && !StripList::is_valid("") && StripList::is_valid("MODAL_*"));
}
