//! What is started to go on goes on, and nobody waits for it.

use std::time::Duration;

use hostel::exec::Size;
use hostel::processes::{KillStatus, ProcessError, Status};
use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, eventually, kill_all};
use hostel_tests::provider::Subject;

use super::case::{Case, OWN_SHELL, SURVIVORS, case};

pub(super) const CASES: &[Case] = &[
    case("background-prompt", "whatever is left running, the call ends with its shell", prompt),
    case("background-lives", "what is left running runs on", lives).needs(SURVIVORS),
    case("background-late", "what it prints late is in no later call", late),
    case("background-pipe", "what prints after its call does not die of it", pipe).needs(SURVIVORS),
    case("background-chatter", "what prints without pause holds up nobody", chatter),
    case("background-closed", "a process that closes its output has not ended", closed),
    case("background-codes", "the end of a process is told as that of a command", codes),
    case("background-signals", "the end by a signal is told by its name", by_signal).needs(OWN_SHELL),
    case(
        "background-session",
        "a process starts where the session stands, and changes nothing of it",
        session,
    ),
    case("background-input", "a process reads what it is given, and nothing if nothing is", input),
    case("background-terminal", "a process can have a terminal", on_terminal),
    case("background-kill", "all of a process is killed, once", killed),
];

fn prompt(s: &Subject) {
    let number = s.unique();
    for (script, output) in [
        ("sleep 15.N & echo started", "started\n"),
        ("setsid sleep 15.N > /dev/null 2>&1 < /dev/null & disown; echo too", "too\n"),
        ("nohup sleep 15.N & echo and this", "and this\n"),
        ("(sleep 15.N | cat) & (sleep 15.N; echo late) & echo pipes", "pipes\n"),
        ("{ sleep 15.N; } 2>&1 & :", ""),
        ("coproc sleep 15.N; echo co", "co\n"),
    ] {
        let ran = s.run(script.replace('N', &number)).exits(0).prompt();
        assert!(ran.text().ends_with(output), "{script}: {ran:?}");
    }
    assert!(s.leaves_survivors() || alive(&number).is_empty(), "{:?}", alive(&number));
    kill_all(&number);
}

fn lives(s: &Subject) {
    let number = s.unique();
    let _ = s.run(format!("sleep 15.{number} & echo $! > pid; echo started")).prints("started\n");
    let _ = s.run(format!("setsid sleep 16.{number} >/dev/null 2>&1 </dev/null & disown")).prints("");
    // Longer than anything that is done at the end of a call.
    let _ = s.run("sleep 1.2; kill -0 \"$(cat pid)\" && echo alive").prints("alive\n");
    let left = alive(&number);
    assert_eq!(left.len(), 2, "{left:?}");
    let _ = s.run("kill \"$(cat pid)\" && echo killed").prints("killed\n");
    assert!(eventually(Duration::from_secs(5), || alive(&number).len() == 1), "{:?}", alive(&number));
    kill_all(&number);
}

fn late(s: &Subject) {
    let _ =
        s.run("(for i in 1 2 3 4 5 6; do sleep 0.2; echo late; done) & echo now").prints("now\n").prompt();
    let _ = s.run("sleep 0.7; echo clean").prints("clean\n");
    let _ = s.run("sleep 0.7; echo clean").prints("clean\n");
}

fn pipe(s: &Subject) {
    let script = "(sleep 0.5; for i in 1 2 3; do echo late || exit 1; sleep 0.1; done; seq 1 50000; echo whole > wrote) &";
    let _ = s.run(script).prints("").prompt();
    let seen = || s.run("cat wrote 2>/dev/null; true").text() == "whole\n";
    assert!(eventually(Duration::from_secs(10), seen), "it did not come to its end");
}

fn chatter(s: &Subject) {
    let number = s.unique();
    let script = format!("(while :; do echo spam; sleep 0.01{number}; done) & echo $! > pid; exit 4");
    let ran = s.run(script).exits(4);
    assert!(ran.took < Duration::from_secs(3), "{ran:?}");
    let _ = s.run("kill \"$(cat pid)\" 2>/dev/null; echo next").prints("next\n").prompt();
    let ran = s.run(Call::new("yes & echo $! > pid; exit 5").kept_only(1000)).exits(5);
    assert!(ran.took < Duration::from_secs(4), "{ran:?}");
    let _ = s.run("kill \"$(cat pid)\" 2>/dev/null; echo next").prints("next\n");
    let gone = || alive(&number).is_empty();
    assert!(eventually(Duration::from_secs(5), gone), "{:?}", alive(&number));
}

fn closed(s: &Subject) {
    let number = s.unique();
    let quiet = s.background(format!("exec > /dev/null 2>&1; sleep 1.5{number}; exit 9"));
    let shut = s.background(format!("exec >&- 2>&-; sleep 40.{number}"));
    // Each has done so by then.
    assert!(eventually(Duration::from_secs(5), || alive(&number).len() >= 2), "{:?}", alive(&number));
    for id in [&quiet, &shut] {
        let view = s.poll(id);
        assert_eq!((view.status, view.exit_code), (Status::Running, None), "{view:?}");
    }
    let view = s.processes().kill(&shut).unwrap();
    assert_eq!(view.status, KillStatus::Killed, "{view:?}");
    let view = s.poll(&shut);
    assert_eq!(
        (view.status, view.completion_reason.as_deref()),
        (Status::Killed, Some("killed")),
        "{view:?}"
    );
    let view = s.wait(&quiet);
    assert_eq!((view.exit_code, view.completion_reason.as_deref()), (Some(9), Some("exited")), "{view:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn codes(s: &Subject) {
    for (command, code) in
        [("exit 0", 0), ("exit 7", 7), ("nosuchcommand_q", 127), ("/usr", 126), ("kill -9 $$", 137)]
    {
        let view = s.wait(&s.background(command));
        assert_eq!(view.exit_code, Some(code), "{command}: {view:?}");
    }
    let id = s.background("cat <<'END'\nin $HOME\nEND\necho err >&2; exit 3");
    assert_eq!(s.wait(&id).exit_code, Some(3));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "in $HOME\nerr\n");
}

fn by_signal(s: &Subject) {
    for (signal, code) in [("SIGKILL", 137), ("SIGTERM", 143), ("SIGINT", 130), ("SIGSEGV", 139)] {
        let view = s.wait(&s.background(format!("kill -{} $$; sleep 5", &signal[3..])));
        let told = (view.exit_code, view.signal.as_deref(), view.completion_reason.as_deref());
        assert_eq!(told, (Some(code), Some(signal), Some("signal")), "{view:?}");
    }
}

fn session(s: &Subject) {
    let _ = s.run("mkdir there; cd there; export X='a b'; f() { echo \"f $1\"; }").prints("");
    let id = s.background(Call::new("echo \"${PWD##*/} $X $Y\"; f z; cd /; export X=c NEW=d").env("Y", "y"));
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "there a b y\nf z\n");
    let _ = s.run("echo \"${PWD##*/} $X ${NEW-none} ${Y-none}\"").prints("there a b none none\n");
    let id = s.background(Call::new("pwd").within("/usr"));
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(s.logs(&id), b"/usr\n");
    // So what it loses is not worth a word.
    let id = s.background("exec true");
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert!(s.poll(&id).warnings.is_empty(), "{:?}", s.poll(&id));
}

fn input(s: &Subject) {
    let view = s.wait(&s.background("cat; read -r line; echo \"rc=$?\""));
    assert_eq!((view.exit_code, view.output.as_str()), (Some(0), "rc=1\n"), "{view:?}");
    let id = s.background(Call::new("read -r a; echo \"got [$a]\"; cat; echo end").stdin(""));
    s.processes().write(&id, b"one $HOME `x`\n").unwrap();
    s.until_printed(&id, b"got [one $HOME `x`]\n");
    s.processes().write(&id, b"two").unwrap();
    s.processes().close_stdin(&id).unwrap();
    let view = s.wait(&id);
    assert_eq!(view.exit_code, Some(0), "{view:?}");
    assert!(s.logs(&id).ends_with(b"twoend\n"), "{view:?}");
}

fn on_terminal(s: &Subject) {
    let size = Size { rows: 21, columns: 77 };
    let id = s.background(
        Call::new("[ -t 0 ] && [ -t 1 ] && stty size; read -r a; echo \"got $a\"; exit 3").on_terminal(size),
    );
    s.until_printed(&id, b"21 77\r\n");
    s.processes().write(&id, b"typed\n").unwrap();
    let view = s.wait(&id);
    assert_eq!(view.exit_code, Some(3), "{view:?}");
    assert!(s.logs(&id).ends_with(b"got typed\r\n"), "{view:?}");
}

fn killed(s: &Subject) {
    let number = s.unique();
    let script =
        format!("setsid sleep 41.{number} & (trap '' TERM; sleep 42.{number}) & echo up; sleep 40.{number}");
    let id = s.background(script);
    s.until_printed(&id, b"up\n");
    let view = s.processes().kill(&id).unwrap();
    assert_eq!(view.status, KillStatus::Killed, "{view:?}");
    let left = alive(&number);
    kill_all(&number);
    assert!(left.is_empty(), "{left:?}");
    let view = s.processes().kill(&id).unwrap();
    assert_eq!(view.status, KillStatus::AlreadyExited, "{view:?}");
    let unknown = s.processes().poll("proc_000000000000");
    assert!(matches!(unknown, Err(ProcessError::NotFound(_))), "{unknown:?}");
}
