//! Nobody escapes from a call that has a cgroup, and nothing is left of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{
    Launch, LocalTransport, Process, SessionOptions, Shell, ShellEnvironment, Transport, end_call, end_calls,
    signal_call,
};
use hostel_plugin_api::{
    CreateEnvironment, Ended, Environment, Error, ExecIo, ExecOutcome, ExecRequest, Flow,
};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

#[macro_use]
#[path = "parts/cgroup.rs"]
mod cgroup;

/// Ends the call with an interruption once this was printed, or a time limit.
struct Io<'a> {
    printed: Mutex<Vec<u8>>,
    until: Instant,
    stop_at: Option<&'a str>,
    stopped: AtomicBool,
}

impl ExecIo for Io<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut printed = self.printed.lock().unwrap();
        printed.extend_from_slice(bytes);
        let all = String::from_utf8_lossy(&printed);
        if self.stop_at.is_some_and(|word| all.contains(word)) && !self.stopped.swap(true, Ordering::SeqCst) {
            return Flow::Stop;
        }
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.until)
    }
}

struct Session<T = LocalTransport> {
    environment: ShellEnvironment<T>,
    calls: String,
    count: AtomicU32,
}

const IS_COPY: &str = "grep -c hostel_serve /proc/$$/cmdline";

impl Session {
    fn new() -> Self {
        Self::over(LocalTransport)
    }

    fn warm() -> Self {
        let session = Self::new();
        session.warm_up();
        session
    }

    fn warm_up(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.run(IS_COPY).0 != "1\n" {
            assert!(Instant::now() < until, "the resident never came up");
        }
    }
}

impl<T: Transport> Session<T> {
    fn over(transport: T) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let calls = format!("test{}x{}_", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut request = CreateEnvironment::default();
        request.extra.insert("auto_source_bashrc".into(), false.into());
        request.extra.insert("calls".into(), calls.clone().into());
        request.persistent = true;
        let base = [("PATH".into(), "/usr/bin:/bin".into())].to_vec();
        let options = SessionOptions::new(&request, base, Path::new("/var/tmp"));
        let environment = ShellEnvironment::new(transport, options).unwrap();
        Self { environment, calls, count: AtomicU32::new(0) }
    }

    /// Returns what was printed, how it ended, and the call's id.
    fn call(&self, command: &str, limit: Duration, stop_at: Option<&str>) -> (String, ExecOutcome, String) {
        let mut request = ExecRequest::new(command);
        request.call_id = format!("{}{}", self.calls, self.count.fetch_add(1, Ordering::Relaxed));
        let id = request.call_id.clone();
        let until = Instant::now() + limit;
        let io = Io { printed: Mutex::default(), until, stop_at, stopped: AtomicBool::new(false) };
        let outcome = self.environment.execute(request, &io).unwrap();
        (String::from_utf8_lossy(&io.printed.into_inner().unwrap()).into_owned(), outcome, id)
    }

    fn run(&self, command: &str) -> (String, ExecOutcome) {
        let (printed, outcome, _) = self.call(command, Duration::from_secs(20), None);
        (printed, outcome)
    }
}

/// Numbers that no other process has among its words.
fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    format!("{}.{:03}", 10_000_000 + std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A command that leaves two processes behind which carry nothing, are in no session of ours, and have lost their parents. It prints
/// `up` once they are there.
fn leaves(token: &str) -> String {
    format!(
        "(env -i setsid sh -c 'sleep {token} </dev/null >/dev/null 2>&1 & echo up; exec sleep {token} </dev/null >/dev/null 2>&1' &)"
    )
}

/// Returns the processes that have this word.
fn pids(token: &str) -> Vec<Pid> {
    let has = |number: &i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == token.as_bytes())
    };
    let all =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(has).filter_map(Pid::from_raw).collect()
}

fn alive(token: &str) -> usize {
    pids(token).len()
}

/// Returns the folders of the session in which a command prints this of its `/proc/self/cgroup`.
fn folders(parent: &Path, printed: &str) -> Vec<String> {
    let name = Path::new(printed.trim()).file_name().unwrap().to_str().unwrap();
    let session = name.rsplit_once('-').unwrap().0;
    let names = fs::read_dir(parent).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("{session}-"))).collect()
}

const WHERE: &str = "grep ^0:: /proc/self/cgroup";

#[test]
fn nobody_outlives_a_time_limit() {
    let _ = cgroup_or_skip!();
    for warm in [false, true] {
        let session = if warm { Session::warm() } else { Session::new() };
        let token = token();
        let command = format!("{IS_COPY}; {}; sleep 600", leaves(&token));
        let (printed, outcome, _) = session.call(&command, Duration::from_secs(2), None);
        assert!(printed.contains("up") && printed.starts_with(if warm { '1' } else { '0' }), "{printed}");
        assert_eq!((outcome.ended, outcome.warnings), (Ended::TIMEOUT, vec![]));
        assert_eq!(alive(&token), 0, "warm: {warm}");
    }
}

#[test]
fn each_of_several_calls_at_once_has_its_own() {
    let _ = cgroup_or_skip!();
    for warm in [false, true] {
        let session = if warm { Session::warm() } else { Session::new() };
        let tokens: Vec<String> = (0..6).map(|_| token()).collect();
        std::thread::scope(|scope| {
            for (number, token) in tokens.iter().enumerate() {
                let session = &session;
                scope.spawn(move || {
                    if number % 2 == 0 {
                        let command = format!("{}; sleep 600", leaves(token));
                        let (_, outcome, _) = session.call(&command, Duration::from_secs(60), Some("up"));
                        assert_eq!(outcome.ended, Ended::INTERRUPTED);
                    } else {
                        assert_eq!(session.run(&leaves(token)).0, "up\n");
                    }
                });
            }
        });
        let found: Vec<usize> = tokens.iter().map(|token| alive(token)).collect();
        assert_eq!(found, [0, 2, 0, 2, 0, 2], "warm: {warm}");
        assert!(end_calls(&session.calls) >= 6);
        assert!(tokens.iter().all(|token| alive(token) == 0));
    }
}

#[test]
fn what_lives_on_after_a_normal_end_is_found_by_its_call() {
    let _ = cgroup_or_skip!();
    for warm in [false, true] {
        let session = if warm { Session::warm() } else { Session::new() };
        let (first, second) = (token(), token());
        let limit = Duration::from_secs(20);
        let (_, _, first_id) = session.call(&leaves(&first), limit, None);
        let (_, _, second_id) = session.call(&leaves(&second), limit, None);
        assert_eq!(signal_call(&second_id, 19), 2, "SIGSTOP");
        end_call(&first_id);
        assert_eq!((alive(&first), alive(&second)), (0, 2), "warm: {warm}");
        end_call(&second_id);
        assert_eq!((alive(&first), alive(&second)), (0, 0), "warm: {warm}");
        end_call(&second_id);
    }
}

#[test]
fn nothing_is_left_of_a_session() {
    let parent = cgroup_or_skip!();
    for warm in [false, true] {
        let session = if warm { Session::warm() } else { Session::new() };
        let (printed, _) = session.run(WHERE);
        for _ in 0..30 {
            assert_ne!(session.run(WHERE).0, printed, "each has its own");
        }
        let during = folders(&parent, &printed);
        assert!((1..8).contains(&during.len()), "they are removed on the way: {during:?}");
        let token = token();
        let _ = session.run(&leaves(&token));
        drop(session);
        let after = folders(&parent, &printed);
        assert_eq!((after.len(), alive(&token)), (1, 2), "what lives on keeps its own: {after:?}");
        assert!(end_calls(&after_calls(&parent, &after[0])) >= 2);
        assert_eq!((folders(&parent, &printed).len(), alive(&token)), (0, 0), "warm: {warm}");
    }
}

/// Returns the id of the call that the folder is for.
fn after_calls(parent: &Path, name: &str) -> String {
    let mut label = vec![0; 200];
    let length = rustix::fs::getxattr(parent.join(name), "user.hostel.call", &mut label).unwrap();
    label.truncate(length);
    String::from_utf8(label).unwrap()
}

#[test]
fn what_the_host_before_has_left_is_removed() {
    let parent = cgroup_or_skip!();
    // Number 1 was not started then, so this host has ended.
    let stale = parent.join("hostel-1-1-0-7");
    fs::create_dir_all(stale.join("below")).unwrap();
    let session = Session::new();
    let _ = session.run("true");
    drop(session);
    assert!(!stale.exists());
}

#[test]
fn a_command_may_make_cgroups_of_its_own() {
    let parent = cgroup_or_skip!();
    let session = Session::new();
    let point = parent.display();
    let token = token();
    let command = format!(
        "name=$(grep -o '^0::.*hostel-.*' /proc/self/cgroup) || exit; own={point}/hostel-${{name##*hostel-}}/own; mkdir $own $own/more || exit
         (env -i setsid sh -c 'echo $$ >'$own'/more/cgroup.procs; echo up; exec sleep {token} >/dev/null 2>&1' &) ; sleep 600"
    );
    let (printed, outcome, _) = session.call(&command, Duration::from_secs(60), Some("up"));
    assert_eq!(outcome.ended, Ended::INTERRUPTED, "{printed}");
    assert_eq!(alive(&token), 0, "{printed}");
    let (printed, _) = session.run(WHERE);
    drop(session);
    assert_eq!(folders(&parent, &printed), [""; 0]);
}

/// A process that is another one every moment: none lives long enough to be looked up and signalled.
const SHAPESHIFTER: &str =
    "#!/bin/sh\n[ -e \"$1\" ] && { setsid \"$0\" \"$1\" </dev/null >/dev/null 2>&1 & }\n";

#[test]
fn one_that_is_born_faster_than_it_is_found_is_ended() {
    let parent = cgroup_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let (script, flag) = (folder.path().join("shift"), folder.path().join("flag"));
    fs::write(&script, SHAPESHIFTER).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&flag, "").unwrap();
    let session = Session::new();
    let command = format!("{WHERE}; env -i {} {}; echo up; sleep 600", script.display(), flag.display());
    let (printed, outcome, _) = session.call(&command, Duration::from_secs(60), Some("up"));
    let left = alive(flag.to_str().unwrap());
    // It would go on for ever.
    drop(folder);
    assert_eq!((outcome.ended, outcome.warnings, left), (Ended::INTERRUPTED, vec![], 0));
    for name in folders(&parent, printed.lines().next().unwrap()) {
        let events = fs::read_to_string(parent.join(name).join("cgroup.events")).unwrap();
        assert!(events.contains("populated 0"), "{events}");
    }
}

/// Puts a shell in front that knows nothing of the call, and waits for its end.
struct Fronted;

impl Transport for Fronted {
    fn shell(&self) -> Result<Shell, Error> {
        LocalTransport.shell()
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn start(&self, launch: Launch<'_>) -> Result<Process, Error> {
        let mut argv: Vec<_> =
            ["/bin/sh", "-c", "env \"$@\"; exit $(($? + 1))", "front"].map(Into::into).into();
        argv.extend(launch.env.iter().map(|(name, value)| {
            let mut word = name.clone();
            word.push("=");
            word.push(value);
            word
        }));
        argv.extend(launch.argv);
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        LocalTransport::spawn(&Launch { argv, env, ..launch })
    }
}

/// Sends SIGTERM to a call once it has printed something.
struct Terminate<'a> {
    call: &'a str,
    reached: AtomicUsize,
}

impl ExecIo for Terminate<'_> {
    fn output(&self, bytes: &[u8]) -> Flow {
        if !bytes.is_empty() && self.reached.load(Ordering::SeqCst) == 0 {
            self.reached.fetch_add(signal_call(self.call, 15), Ordering::SeqCst);
        }
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(60))
    }
}

#[test]
fn a_signal_to_a_call_spares_what_stands_in_front_of_its_shell() {
    let _ = cgroup_or_skip!();
    let session = Session::over(Fronted);
    let token = token();
    // The one in the middle carries no mark, but descends from one that does.
    let marked = format!("env HOSTEL_CALL=$0 sh -c \"echo up; sleep {token}\"");
    let command = format!("env -i sh -c '{marked}; sleep {token}' $HOSTEL_CALL & wait");
    let mut request = ExecRequest::new(&command);
    request.call_id = format!("{}front", session.calls);
    let io = Terminate { call: &request.call_id.clone(), reached: AtomicUsize::new(0) };
    let outcome = session.environment.execute(request, &io).unwrap();
    assert_eq!((outcome.ended, outcome.exit_code), (Ended::EXITED, 128 + 15 + 1));
    assert!(io.reached.into_inner() >= 2);
    assert_eq!(alive(&token), 0);
}

/// A copy was there before its command began: what was started meanwhile, by the clock of `/proc`, is none of that.
fn what_an_earlier_command_has_left_is_not_a_copys() {
    set_child_subreaper(Some(getpid())).unwrap();
    let (session, token) = (Session::warm(), token());
    let leave = format!("(env -i setsid sleep {token} >/dev/null 2>&1 &)");
    let (_, ticks) = (session.run(&leave), Duration::from_millis(50));
    std::thread::sleep(ticks);
    let (_, outcome, _) = session.call("sleep 600", ticks, None);
    assert_eq!((outcome.ended, alive(&token)), (Ended::TIMEOUT, 1));
    let (_, outcome, _) = session.call(&format!("{leave}; sleep 600"), 10 * ticks, None);
    assert_eq!((outcome.ended, alive(&token)), (Ended::TIMEOUT, 1), "its own is ended");
    kill_process(pids(&token)[0], Signal::KILL).unwrap();
}

/// Where cgroups can be seen, this test runs itself once more where they cannot.
#[test]
fn without_cgroups_commands_run_as_ever() {
    let Some(folder) = cgroup::seen() else {
        for warm in [false, true] {
            let session = if warm { Session::warm() } else { Session::new() };
            assert_eq!(session.run("echo on; exit 3").1.exit_code, 3);
            let token = token();
            let command = format!("(setsid sleep {token} &); echo up; sleep 600");
            let (_, outcome, _) = session.call(&command, Duration::from_secs(60), Some("up"));
            assert_eq!((outcome.ended, alive(&token)), (Ended::INTERRUPTED, 0));
            let _ = session.run(&format!("(setsid sleep {token} >/dev/null 2>&1 &)"));
            assert_eq!((end_calls(&session.calls), alive(&token)), (1, 0));
        }
        what_an_earlier_command_has_left_is_not_a_copys();
        return;
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    let points: Vec<&str> = points.map(|line| line.split(' ').nth(4).unwrap()).collect();
    let unmount = format!("umount -l {} &&", points.join(" "));
    let own = std::env::current_exe().unwrap();
    let script = format!("{unmount} exec \"$0\" --exact without_cgroups_commands_run_as_ever --nocapture");
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).arg(own).output();
    match output {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            assert!(output.status.success(), "{output:?}");
        }
        other => eprintln!("SKIPPED: `{}` cannot be hidden here: {other:?}", folder.display()),
    }
}
