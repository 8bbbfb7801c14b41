//! What login files can do, and what whoever waits for them can do about it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment};
use hostel_plugin_api::{CreateEnvironment, Ended, Environment, ExecIo, ExecOutcome, ExecRequest, Flow};

/// A caller who can cancel.
struct Caller {
    printed: Mutex<Vec<u8>>,
    until: Instant,
    cancelled: PipeReader,
}

impl Caller {
    fn new(limit: Duration) -> (Self, PipeWriter) {
        let (cancelled, cancel) = io::pipe().unwrap();
        (Self { printed: Mutex::default(), until: Instant::now() + limit, cancelled }, cancel)
    }
}

impl ExecIo for Caller {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.printed.lock().unwrap().extend_from_slice(bytes);
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        rustix::io::ioctl_fionread(&self.cancelled).is_ok_and(|count| count > 0)
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.cancelled.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.until)
    }
}

/// A home directory whose `.bashrc` is this, and the place where the state is kept.
struct Place(tempfile::TempDir);

impl Place {
    fn new(bashrc: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.login(bashrc);
        place
    }

    fn login(&self, bashrc: &str) {
        fs::write(self.0.path().join(".bashrc"), bashrc).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }

    fn until_there_is(&self, name: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.has(name) {
            assert!(Instant::now() < until, "there is no `{name}`");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Takes the session up, as a new process of the host would.
    fn session(&self) -> ShellEnvironment<LocalTransport> {
        let mut request = CreateEnvironment::default();
        request.state_dir = Some(self.0.path().join("state").to_string_lossy().into_owned());
        request.persistent = true;
        let home = self.0.path().to_str().unwrap();
        let base =
            [("PATH", "/usr/bin:/bin"), ("HOME", home)].map(|(name, value)| (name.into(), value.into()));
        ShellEnvironment::new(LocalTransport, SessionOptions::new(&request, base.to_vec(), self.0.path()))
            .unwrap()
    }
}

fn run_within(session: &dyn Environment, command: &str, limit: Duration) -> (String, ExecOutcome) {
    let (caller, _cancel) = Caller::new(limit);
    let outcome = session.execute(ExecRequest::new(command), &caller).unwrap();
    (String::from_utf8_lossy(&caller.printed.into_inner().unwrap()).into_owned(), outcome)
}

fn run(session: &dyn Environment, command: &str) -> (String, ExecOutcome) {
    run_within(session, command, Duration::from_secs(20))
}

#[track_caller]
fn says(outcome: &ExecOutcome, text: &str) {
    assert!(outcome.warnings.iter().any(|line| line.contains(text)), "{text}: {outcome:?}");
}

/// Runs for ever, and says that it does; what it starts has `number` in its arguments.
fn endless(number: &str) -> String {
    format!("setsid sleep 61.{number} & (trap '' TERM INT; : > \"$HOME/there\"; sleep 62.{number})")
}

fn alive(number: &str) -> usize {
    let found = std::process::Command::new("pgrep").args(["-fc", &format!("sleep 6[12].{number}")]).output();
    String::from_utf8(found.unwrap().stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn an_interruption_ends_them_and_the_call() {
    let number = format!("{}01", std::process::id());
    let place = Place::new(&endless(&number));
    let session = place.session();
    let (caller, mut cancel) = Caller::new(Duration::from_secs(60));
    let outcome = std::thread::scope(|scope| {
        let call = scope.spawn(|| session.execute(ExecRequest::new("touch ran"), &caller).unwrap());
        place.until_there_is("there");
        cancel.write_all(b"x").unwrap();
        call.join().unwrap()
    });
    assert_eq!((outcome.exit_code, outcome.ended), (130, Ended::INTERRUPTED), "{outcome:?}");
    says(&outcome, "the command was not started: the session's login files were still being read");
    assert!(outcome.cwd.is_some() && !place.has("ran"), "{outcome:?}");
    assert_eq!(alive(&number), 0);
    // They are read once more, and by another process of the host, too.
    place.login("export READ=1");
    for session in [session, place.session()] {
        let (output, outcome) = run(&session, "echo \"[$READ]\"");
        assert!(output == "[1]\n" && outcome.warnings.is_empty(), "{output} {outcome:?}");
    }
}

#[test]
fn the_time_limit_of_the_call_is_theirs_too() {
    let number = format!("{}02", std::process::id());
    let place = Place::new(&endless(&number));
    let session = place.session();
    let start = Instant::now();
    let (output, outcome) = run_within(&session, "touch ran", Duration::from_millis(500));
    assert_eq!((outcome.exit_code, outcome.ended, output.as_str()), (124, Ended::TIMEOUT, ""), "{outcome:?}");
    says(&outcome, "the command was not started: the session's login files were still being read");
    assert!(start.elapsed() < Duration::from_secs(8) && !place.has("ran"), "{:?}", start.elapsed());
    assert_eq!(alive(&number), 0);
    // A wrong argument is told without them.
    let mut request = ExecRequest::new("true");
    request.cwd = Some("/no/such".into());
    let (caller, _cancel) = Caller::new(Duration::from_secs(60));
    assert!(session.execute(request, &caller).is_err());
    // So is what does not want them.
    let mut request = ExecRequest::new("echo ran");
    request.skip_login();
    let outcome = session.execute(request, &caller).unwrap();
    assert!(outcome.exit_code == 0 && outcome.warnings.is_empty(), "{outcome:?}");
}

#[test]
fn however_short_the_calls_a_session_comes_to_work() {
    let number = format!("{}03", std::process::id());
    let place = Place::new(&endless(&number));
    assert_eq!(run_within(&place.session(), "true", Duration::from_millis(200)).1.exit_code, 124);
    let spent = place.0.path().join("state/shell/login.lock");
    let noted: u64 = fs::read_to_string(&spent).unwrap().parse().unwrap();
    assert!((200..20_000).contains(&noted), "{noted}");
    // As after many of them.
    fs::write(&spent, "29900").unwrap();
    let session = place.session();
    let (output, outcome) = run(&session, "echo works");
    assert_eq!(output, "works\n");
    says(&outcome, "longer than 30 s; the session has a plain shell");
    assert_eq!(alive(&number), 0);
    let (output, outcome) = run(&place.session(), "echo again");
    assert!(output == "again\n" && outcome.warnings.is_empty(), "{outcome:?}");
}

#[test]
fn whoever_comes_second_waits_and_can_give_up() {
    let place = Place::new(
        ": > \"$HOME/there\"; until [ -e \"$HOME/go\" ]; do sleep 0.01; done; echo x >> \"$HOME/count\"; export READ=1",
    );
    let (session, other) = (place.session(), place.session());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&session, "echo \"[$READ]\""));
        place.until_there_is("there");
        for second in [&session, &other] {
            let (_, outcome) = run_within(second, "touch ran", Duration::from_millis(100));
            assert_eq!(outcome.exit_code, 124, "{outcome:?}");
            says(&outcome, "login files");
        }
        let second = scope.spawn(|| run(&other, "echo \"[$READ]\""));
        fs::write(place.0.path().join("go"), "").unwrap();
        for call in [first, second] {
            let (output, outcome) = call.join().unwrap();
            assert!(output == "[1]\n" && outcome.warnings.is_empty(), "{output} {outcome:?}");
        }
    });
    assert_eq!(fs::read_to_string(place.0.path().join("count")).unwrap(), "x\n");
    assert!(!place.has("ran"));
}

#[test]
fn what_they_do_besides_leaves_the_session_as_it_should_be() {
    let plain = "the session has a plain shell";
    for (bashrc, output, warning) in [
        ("cd /usr; pushd / ; export READ=1", "1 home", ""),
        ("head -c 1000000 /dev/zero | tr '\\0' x; yes | head -n 100000 >&2; export READ=1", "1 home", ""),
        ("read -r line; cat > /dev/null; export READ=\"1$line\"", "1 home", ""),
        ("export READ=1; exec bash", " home", "replaced the shell"),
        ("export READ=1; exec sh -c 'exit 0'", " home", "replaced the shell"),
        ("export READ=1; exec -l /bin/sh", " home", plain),
        ("export READ=1\nif [ ( ; done\nexport READ=2", "1 home", "does not understand"),
        ("export READ=1; exit 0", "1 home", ""),
        ("export READ=1; exit 7", "1 home", "exit code 7"),
        ("export READ=1; trap 'echo bye' EXIT", "1 home", ""),
        ("export READ=1; trap 'echo bye' EXIT; exit 0", " home", plain),
        ("export READ=1; set -eu; false", "1 home", ""),
        ("export READ=1; set -v; exec 2>&- 1>&-", "1 home", ""),
        ("export READ=1; setsid sleep 5 & disown", "1 home", ""),
        ("export READ=1; kill -9 $$", " home", plain),
    ] {
        let place = Place::new(bashrc);
        let session = place.session();
        let (printed, outcome) = run(&session, "test \"$PWD\" = \"$HOME\" && echo \"$READ home\"");
        assert_eq!(
            (printed.as_str(), outcome.exit_code),
            (&*format!("{output}\n"), 0),
            "{bashrc}: {outcome:?}"
        );
        if warning.is_empty() {
            assert!(outcome.warnings.is_empty(), "{bashrc}: {outcome:?}");
        } else {
            assert!(outcome.warnings.len() == 1, "{bashrc}: {outcome:?}");
            says(&outcome, warning);
        }
        let (printed, outcome) = run(&session, "echo on");
        assert!(printed == "on\n" && outcome.warnings.is_empty(), "{bashrc}: {outcome:?}");
    }
}
