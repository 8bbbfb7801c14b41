//! A copy of the resident shell is told from a shell that was started by nothing but time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{LocalTransport, SessionOptions, ShellEnvironment};
use hostel_plugin_api::{
    CreateEnvironment, Ended, Environment, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin,
};

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

/// How many sessions there have been.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Prints whether this shell is a copy.
const IS_COPY: &str = "grep -c hostel_serve /proc/$$/cmdline";

struct Session {
    environment: ShellEnvironment<LocalTransport>,
}

impl Session {
    fn new() -> Self {
        let mut request = CreateEnvironment::default();
        request.extra.insert("auto_source_bashrc".into(), false.into());
        let number = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
        let base = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("HOSTVAR", "h"),
            ("SESSION", &number),
        ];
        let base = base.map(|(name, value)| (name.into(), value.into())).to_vec();
        let options = SessionOptions::new(&request, base, Path::new("/var/tmp"));
        Self { environment: ShellEnvironment::new(LocalTransport, options).unwrap() }
    }

    /// One whose commands run in copies.
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

    fn request(&self, request: ExecRequest) -> (String, ExecOutcome) {
        let io = Io(Mutex::default(), Instant::now() + Duration::from_secs(20));
        let outcome = self.environment.execute(request, &io).unwrap();
        (String::from_utf8_lossy(&io.0.into_inner().unwrap()).into_owned(), outcome)
    }

    fn run(&self, command: &str) -> (String, ExecOutcome) {
        self.request(ExecRequest::new(command))
    }
}

/// Commands whose result says something of the shell that ran them.
const TELLING: &[&str] = &[
    "test $$ = $BASHPID && echo own; test \"$(ps -o sid= -p $$)\" -eq $$ && test \"$(ps -o pgid= -p $$)\" -eq $$ && echo leader",
    "echo $SHLVL $BASH_SUBSHELL $# $0 $- $LINENO; echo $_",
    "test \"$(ps -o ppid= -p $$)\" -eq $PPID && echo parent",
    "ls /proc/self/fd | tr '\\n' ' '; ls -l /proc/$$/fd | grep -c socket",
    "grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status",
    "jobs; trap -p DEBUG; wait; echo $?; echo ${!-none}",
    "shopt; set -o; umask; ulimit -a | grep -v pending",
    "env | grep -v -E '^(HOSTEL_CALL|SESSION|_)=' | sort; compgen -v | grep -c hostel",
    "compgen -b | sort | cksum; type hostel_serve; enable -a | grep -c hostel; help hostel_serve",
    "exit 300",
    "exit -1",
    "kill -9 $$",
    "kill -TERM $$; echo alive",
    "kill -INT $$; echo alive",
    "kill -PIPE $$; echo alive",
    "kill 0; echo alive",
    "exec 2>/dev/null; sh -c 'kill -SEGV $$'; exit $?",
    "exec printf 'replaced\\n'; echo never",
    "exec /no/such; echo never",
    "trap 'echo bye' EXIT; exit 6",
    "trap 'echo got' USR1; kill -USR1 $$; echo on",
    "trap 'echo err' ERR; false; trap 'echo dbg' DEBUG; :",
    "(",
    "if true; then",
    "echo 'unbalanced",
    "echo a; echo ) ; echo b",
    "false | true | exit 3; echo ${PIPESTATUS[*]}; set -o pipefail; false | true; echo $?",
    "yes | head -n 1; echo \"${PIPESTATUS[*]}\"",
    "sleep 0.01 & wait $!; echo $?; (exit 5) & wait -n; echo $?",
    "sleep 5 & disown; kill %1 2>/dev/null; echo $?; kill $!",
    "coproc cat; echo hi >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line; exec {COPROC[1]}>&-; wait",
    "read -r line; echo \"[$line] $?\"; cat | wc -c",
    "mapfile -t lines < <(printf 'a\\nb\\n'); echo ${#lines[@]}",
    "cat <<'END'\nalpha $HOME\nEND\ncat <<E\n$HOME\nE",
    "set -m; sleep 0.01 & fg %1 >/dev/null; echo $?",
    "set -e; false; echo never",
    "set -u; echo $NOTHING; echo never",
    "set -x; : traced; set +x",
    "ulimit -n 8; echo ok; ulimit -f 0; echo x > /var/tmp/hostel-f-$$; echo $?; rm -f /var/tmp/hostel-f-$$",
    "SECONDS=5; echo $SECONDS; test $SECONDS -lt 7 && echo young",
    "test $SECONDS -lt 3 && echo new",
    "echo $BASH_VERSION ${BASH_SOURCE-none} ${FUNCNAME-none}; caller; echo $?",
    "echo $(echo $$) $(sh -c 'echo $PPID') | awk '{print ($1 == $2)}'",
    "f() { echo $FUNCNAME; return 4; }; f; echo $?",
    "cd /usr; pwd; echo $OLDPWD; cd - >/dev/null; echo $?",
    "echo ~ ~root; echo \"$HOSTVAR\"; unset HOSTVAR; echo ${HOSTVAR-gone}",
    "printf 'caf\\351 \\377\\n'; echo ünï",
    "select x in a b; do echo $x; break; done <<< 2",
    "test -t 0; echo $?; test -t 1; echo $?; tty",
    "command -v ls; hash -r; type -t echo; type -t if",
    "nosuchcommand_q",
    "/etc/passwd",
    "echo $((2**10)) ${BASH_REMATCH-none}; [[ abc =~ b ]] && echo ${BASH_REMATCH[0]}",
    "printf '%s\\n' {1..3}; echo *.nothing; shopt -s nullglob; echo *.nothing",
    "time true 2>/dev/null; echo $?",
    "exec 3>&1; echo three >&3; exec 9</dev/null; ls /proc/self/fd | tr '\\n' ' '",
    "declare -p BASH_EXECUTION_STRING 2>/dev/null | wc -l",
    "return 3; echo on",
    "logout; echo on",
    ": \"${NOTHING:?message}\"; echo never",
    "readonly X=1; X=2; echo never",
    "alias now=echo\nnow expanded",
    "let 'a = 5'; echo $a; printf '%(%Y)T\\n' -1 | wc -c",
];

#[test]
fn a_copy_is_a_shell_like_any_other() {
    let warm = Session::warm();
    for command in TELLING {
        // The first command of a session gets a shell that is started for it.
        let cold = Session::new();
        let mut wanted = cold.run(command);
        let mut found = warm.run(command);
        for outcome in [&mut wanted.1, &mut found.1] {
            outcome.cwd = None;
        }
        assert_eq!(found, wanted, "{command}");
        warm.run("cd /var/tmp; set +o pipefail; set +m; shopt -u nullglob; unalias -a; unset -f f; unset OLDPWD; export HOSTVAR=h");
        warm.warm_up();
    }
}

#[test]
fn two_copies_are_not_alike() {
    let session = Session::warm();
    let draw = || session.run("echo $RANDOM $RANDOM $SRANDOM $$").0;
    assert_ne!(draw(), draw());
}

#[test]
fn what_a_command_changes_is_the_next_ones_but_not_the_residents() {
    let session = Session::warm();
    let _ = session.run("cd /usr; export A='it'\\''s\n$(touch pwned)' B=1; unset HOSTVAR; C=unexported; umask 077; ulimit -n 50");
    let (output, outcome) =
        session.run(&format!("pwd; echo \"$A$B${{HOSTVAR-gone}}${{C-gone}}\"; umask; {IS_COPY}"));
    assert_eq!(output, "/usr\nit's\n$(touch pwned)1gonegone\n0022\n1\n");
    assert_eq!(outcome.cwd.as_deref(), Some("/usr"));
    let mut request = ExecRequest::new("echo $B $ONCE; pwd");
    request.env = vec![("B".into(), "own".into()), ("ONCE".into(), "once".into())];
    request.cwd = Some("/".into());
    assert_eq!(session.request(request).0, "own once\n/\n");
    assert_eq!(session.run("echo $B ${ONCE-gone}; pwd").0, "1 gone\n/usr\n");
    // Under `-v` the shell shows what it reads, and reads our trap where the command calls `exit`.
    let ours = |command: &str| session.run(command).0.lines().filter(|line| line.contains("hostel")).count();
    assert_eq!([ours("set -v\n:"), ours("set -v\n(exit 4)"), ours("set -v\nexit 4")], [0, 0, 1]);
    assert_eq!(session.run("echo on").0, "on\n");
    let _ = session.run("set -ak; PLAIN=1");
    session.warm_up();
    let (output, _) = session
        .run("B=two; echo on; env | grep -c -e hostel -e EXECUTION; env | grep -c -e ^PLAIN=1 -e ^B=two");
    assert_eq!(output, "on\n0\n2\n");
    assert_eq!(
        session.run("set +ak; env | grep -c -e hostel -e EXECUTION; env | grep ^HOSTEL_CALL= | grep -c ::").0,
        "0\n0\n"
    );
    // Functions, aliases and options are in the resident itself, so it is replaced.
    let _ = session.run("f() { echo f; }; alias a=f; shopt -s extglob");
    session.warm_up();
    assert_eq!(session.run("a; shopt extglob").0, "f\nextglob        \ton\n");
}

/// Finds the resident of this session: other tests have theirs.
const FIND: &str = "own=$(tr '\\0' '\\n' < /proc/$$/environ | grep ^SESSION=)
for process in $(pgrep -P $PPID -f hostel_serve); do
    test $process != $$ && cat /proc/$process/environ 2>/dev/null | tr '\\0' '\\n' | grep -qx \"$own\" && break
done
found=$process
";

/// What is kept, by the rule that the documentation gives, is the same with a shell that was started and with a copy.
#[test]
fn the_same_is_kept_of_a_command_that_ends_in_its_own_way() {
    let endings = [
        ("cd /usr; export A=1", "/usr 1"),
        ("cd /usr; export A=1; exit 3", "/usr 1"),
        ("cd /usr; export A=1; false", "/usr 1"),
        ("cd /usr; export A=1\nif then", "/usr 1"),
        ("cd /usr; export A=1; set -e; false; cd /", "/usr 1"),
        ("cd /usr; export A=1; exec true", "/var/tmp "),
        ("cd /usr; export A=1; trap : EXIT", "/usr 1"),
        ("cd /usr; export A=1; trap - EXIT", "/usr 1"),
        ("cd /usr; export A=1; trap 'exit 9' EXIT; (exit 3)", "/usr 1"),
        ("set -xeu; cd /usr; export A=1; trap 'echo its $?' EXIT ERR DEBUG; :", "/usr 1"),
        ("cd /usr; export A=1; trap : EXIT; exit 3", "/var/tmp "),
        ("set -e; cd /usr; export A=1; trap : EXIT; false", "/var/tmp "),
        ("cd /usr; export A=1; kill -9 $$", "/var/tmp "),
        ("cd /usr; export A=1; kill -TERM $$", "/var/tmp "),
        ("cd /usr; export A=1; kill -INT $$", "/var/tmp "),
        ("(cd /usr; export A=1)", "/var/tmp "),
        ("f() { :; }; alias a=b; cd /usr; export A='x\ny'; unalias a", "/usr x\ny"),
        ("declare -x A='not' B; cd /usr; export -n A; A=1", "/usr "),
    ];
    for (command, kept) in endings {
        for warm in [false, true] {
            let session = if warm { Session::warm() } else { Session::new() };
            let (_, outcome) = session.run(command);
            // What is lost is told, and a shell that was killed says so by its exit code.
            let told = outcome.warnings.iter().any(|line| line.contains("was not kept"));
            let lost = kept == "/var/tmp " && outcome.ended == Ended::EXITED && !command.starts_with('(');
            assert_eq!(told, lost, "{command} (warm: {warm}): {outcome:?}");
            assert_eq!(session.run("echo \"$PWD $A\"").0, format!("{kept}\n"), "{command} (warm: {warm})");
        }
    }
}

/// An `EXIT` trap of a command's own runs once, with the exit code before it, and can change that.
#[test]
fn an_exit_trap_is_run_as_by_any_shell() {
    let cases = [
        ("trap 'echo bye $?' EXIT; (exit 4)", "bye 4\n", 4),
        ("trap 'echo bye $?' EXIT; exit 6", "bye 6\n", 6),
        ("trap 'echo bye $?; exit 9' EXIT; false", "bye 1\n", 9),
        ("trap 'echo \"it'\\''s $? $0 $#\"\necho \"$(pwd)\"' EXIT; cd /usr", "it's 0 bash 0\n/usr\n", 0),
        ("trap 'echo one' EXIT; trap 'echo two' EXIT", "two\n", 0),
        ("set -eu; trap 'false; echo bye' EXIT; :", "", 1),
        ("trap 'cat' EXIT; exec <<< given", "given\n", 0),
        ("trap 'trap' EXIT; (:)", "", 0),
        ("trap 'rm -f x; exit' EXIT; false", "", 1),
        ("f() { echo; exit; }; trap f EXIT; (exit 6)", "\n", 6),
        ("set -u; trap 'echo \"$- ${IFS@Q}\" | tr -d vx' EXIT; set -f", "fhuBc $' \\t\\n'\n", 0),
        ("ulimit -f 0; true", "", 0),
        // Nothing can be opened any more, and nothing is said of that.
        ("exec 2>/dev/null; ulimit -n 3; (exit 7)", "", 7),
        ("exec 2>/dev/null; ulimit -n 3; true", "", 0),
        ("exec 2>/dev/null; ulimit -n 3; exit 7", "", 7),
        ("ulimit -n 5; set -x; (exit 139)", "++ exit 139\n", 139),
        ("exec 2>/dev/null; trap 'echo bye $?' EXIT; ulimit -n 3; (exit 5)", "bye 5\n", 5),
        ("ulimit -f 0; trap 'echo bye $?' EXIT; (exit 3)", "bye 3\n", 3),
    ];
    let warm = Session::warm();
    for (command, output, code) in cases {
        for session in [&warm, &Session::new()] {
            let (printed, outcome) = session.run(command);
            // Whose trap looks for traps finds ours, and one more `set -e` than there was is not in force.
            let wanted = if command.contains("'trap'") { printed.as_str() } else { output };
            assert_eq!((printed.as_str(), outcome.exit_code), (wanted, code), "{command}: {outcome:?}");
        }
        warm.run("cd /var/tmp");
    }
}

/// What is left of a resident that has ended is gone before anybody runs another command.
#[test]
fn a_resident_that_ends_leaves_no_zombie() {
    let session = Session::warm();
    let number = session.run(&format!("{FIND}echo $found")).0;
    let own = std::process::id();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    let is_ours =
        || state().split(") ").nth(1).is_some_and(|rest| rest.split(' ').nth(1) == Some(&own.to_string()));
    assert!(is_ours(), "{number}");
    // As it ends itself when it has been idle for long.
    let killed = std::process::Command::new("kill").args(["-KILL", number.trim()]).status().unwrap();
    assert!(killed.success());
    let until = Instant::now() + Duration::from_secs(10);
    while is_ours() {
        assert!(Instant::now() < until, "{}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(session.run("echo on").0, "on\n");
}

#[test]
fn a_resident_that_dies_or_stands_still_costs_time_and_nothing_else() {
    let session = Session::warm();
    for signal in ["KILL", "TERM", "STOP"] {
        let killed = session.run(&format!("{FIND}kill -{signal} $found; echo $?")).0;
        assert_eq!(killed, "0\n", "{signal}");
        assert_eq!(session.run("echo on").0, "on\n", "{signal}");
        session.warm_up();
    }
}

/// Prints the number of the spare once there is one: a copy of the same resident, and not the one that asks.
const SPARE: &str = "while :; do
for process in $(pgrep -P $PPID -f hostel_serve); do
    test $process != $$ && test $process != $found && tr '\\0' '\\n' < /proc/$process/environ | grep -qx \"$own\" && break 2
done
sleep 0.01
done 2>/dev/null
echo $process
";

/// A spare that is there and does not answer: another shell gets its command, and nobody runs it twice.
#[test]
fn a_spare_that_does_not_take_its_command_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let session = Session::warm();
    for signal in ["STOP", "KILL"] {
        let spare = session.run(&format!("{FIND}{SPARE}")).0;
        let kill = std::process::Command::new("kill").args([&format!("-{signal}"), spare.trim()]).status();
        assert!(kill.unwrap().success(), "{spare}");
        let begun = Instant::now();
        let mut request = ExecRequest::new(format!("cat; echo x >> {}", ran.display()));
        request.stdin = Stdin::Bytes(b"given".to_vec());
        let (output, outcome) = session.request(request);
        assert_eq!((output.as_str(), outcome.exit_code), ("given", 0), "{signal}: {outcome:?}");
        assert!(
            outcome.warnings.is_empty() && begun.elapsed() < Duration::from_secs(10),
            "{signal}: {outcome:?}"
        );
        session.warm_up();
    }
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "x\nx\n");
}

#[test]
fn what_a_shell_takes_only_when_it_starts_gets_a_shell_that_is_started() {
    let session = Session::warm();
    let with = |name: &str, value: &str, command: &str| {
        let mut request = ExecRequest::new(command);
        request.env = vec![(name.into(), value.into())];
        session.request(request).0
    };
    assert_eq!(with("X.Y", "1", "env | grep -c '^X.Y='"), "1\n");
    assert_eq!(with("LD_LIBRARY_PATH", "/nowhere", IS_COPY), "0\n");
    assert_eq!(with("POSIXLY_CORRECT", "1", "set -o | grep -c 'posix.*on'"), "1\n");
    session.warm_up();
}

#[test]
fn input_and_output_of_a_copy_are_its_own() {
    let session = Session::warm();
    let mut request = ExecRequest::new("wc -c; head -c 300000 /dev/zero | tr '\\0' e >&2; echo end");
    request.stdin = Stdin::Bytes(vec![b'a'; 1 << 20]);
    let (output, _) = session.request(request);
    assert!(output.starts_with("1048576\n") && output.ends_with("eend\n") && output.len() == 300_012);
    let (output, _) = session.run("sleep 300 >/dev/null & echo $!; (sleep 0.2; echo late) &");
    let number = output.trim();
    assert_eq!(session.run(&format!("sleep 0.4; kill {number} && echo alive")).0, "alive\n");
}

#[test]
fn many_at_once_each_get_their_own() {
    let session = Session::warm();
    std::thread::scope(|scope| {
        for number in 0..50 {
            let session = &session;
            scope.spawn(move || {
                let (output, outcome) =
                    session.run(&format!("export V{number}=1; echo {number}; exit {number}"));
                assert_eq!((output, outcome.exit_code), (format!("{number}\n"), number));
            });
        }
    });
    assert_eq!(session.run("env | grep -c '^V'").0, "50\n");
}
