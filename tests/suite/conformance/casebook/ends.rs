//! O-01 to O-06, O-21 and O-22: an end is told as it was, and is that of all that a call has started, and of nothing else.

use std::time::Duration;

use hostel::exec::Size;
use hostel::processes::Status;
use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, kill_all};
use hostel_tests::provider::Subject;

use super::super::case::{Case, case};

pub(in super::super) const OUTPUT: &[Case] = &[
    case(
        "o-01",
        "output that looks like the host's own is output",
        o_01_output_that_looks_like_the_hosts_own,
    ),
    case(
        "o-02",
        "a command may end its own shell, whatever it leaves",
        o_02_a_command_that_ends_its_own_shell,
    ),
];

pub(in super::super) const ENDS: &[Case] = &[
    case("o-03", "what was printed before the limit is there", o_03_what_was_printed_before_the_timeout),
    case("o-04", "who ignores signals is ended too", o_04_a_process_that_ignores_signals),
];

pub(in super::super) const TREES: &[Case] = &[
    case("o-05", "the other end of a FIFO is ended too", o_05_the_other_end_of_a_fifo),
    case("o-06", "who has left the group is ended, and nobody else", o_06_who_left_the_process_group),
];

pub(in super::super) const SIGNALS: &[Case] = &[
    case("o-21", "exit codes are those of the shell", o_21_exit_codes_are_those_of_the_shell),
    case("o-22", "no signal is ignored or blocked", o_22_no_signal_is_ignored),
];

fn o_01_output_that_looks_like_the_hosts_own(s: &Subject) {
    let lines = "[interrupted by user]\n[timed out after 5s]\nexit_code: 0\n__CWD__/nowhere__\n";
    let script = "tr '\\0' '\\n' </proc/$$/cmdline\n\
                  printf '%s\\n' '[interrupted by user]' '[timed out after 5s]' 'exit_code: 0' '__CWD__/nowhere__'\n\
                  cd /\nfalse\n";
    let ran = s.run(script).exits(1);
    assert!(ran.text().ends_with(lines) && ran.ended == "exited" && ran.warnings.is_empty(), "{ran:?}");
    let _ = s.run("pwd").prints("/\n");
}

fn o_02_a_command_that_ends_its_own_shell(s: &Subject) {
    let number = s.unique();
    let _ = s.run("cd sub 2>/dev/null || mkdir sub && cd sub; export KEEP=1").prints("");
    let _ = s.run(Call::new(format!("sleep 30.{number} & exit 3")).limit(20_000)).is(3, "").prompt();
    let _ = s.run("exec printf 'replaced\\n'; echo never").prints("replaced\n");
    let _ = s.run("trap 'echo bye' EXIT; exit 6").is(6, "bye\n");
    let _ = s.run("printf '%s %s\\n' \"${PWD##*/}\" \"$KEEP\"").prints("sub 1\n");
    kill_all(&number);
}

fn o_03_what_was_printed_before_the_timeout(s: &Subject) {
    let number = s.unique();
    let script = format!("printf 'phase-1 ok\\n'; printf 'phase-2 half'; sleep 30.{number}; echo never");
    let ran = s.run(Call::new(script).limit(2000)).times_out(2000);
    assert_eq!(ran.text(), "phase-1 ok\nphase-2 half", "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn o_04_a_process_that_ignores_signals(s: &Subject) {
    let number = s.unique();
    let script = format!("trap '' TERM INT HUP; echo armed; while :; do sleep 0.2{number}; done");
    let ran = s.run(Call::new(script).limit(1000)).times_out(1000);
    // Its shell may be the last to go, and say how the others went.
    assert!(ran.text().starts_with("armed\n"), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn o_05_the_other_end_of_a_fifo(s: &Subject) {
    let number = s.unique();
    let fifo = format!("q{number}.fifo");
    let script =
        format!("mkfifo {fifo}\n(while :; do echo tock; sleep 1; : {number}; done) > {fifo} &\ncat {fifo}\n");
    let ran = s.run(Call::new(format!("bash -c '{script}'")).limit(2000)).times_out(2000);
    assert!(ran.text().starts_with("tock\n"), "{ran:?}");
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn o_06_who_left_the_process_group(s: &Subject) {
    let (own, number) = (s.unique(), s.unique());
    let p0 = s.background(format!("echo up; sleep 70.{own}"));
    s.until_printed(&p0, b"up\n");
    let script = format!(
        "setsid sleep 71.{number} &\n(setsid sh -c 'sleep 72.{number} & exit' &)\n\
         bash -c 'exec -a renamed sleep 73.{number}' &\nsleep 74.{number}\n"
    );
    let _ = s.run(Call::new(script).limit(1000)).times_out(1000);
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
    assert_eq!(alive(&format!("sleep 70.{own}")).len(), 1, "{:?}", alive(&own));
    assert_eq!(s.poll(&p0).status, Status::Running);
    s.processes().kill(&p0).unwrap();
}

fn o_21_exit_codes_are_those_of_the_shell(s: &Subject) {
    for (command, code) in [
        ("kill -9 $$", 137),
        ("kill -TERM $$; echo alive", 143),
        ("sh -c 'kill -SEGV $$'; exit $?", 139),
        ("exit 300", 44),
        ("exit -1", 255),
        ("nosuchcommand_q", 127),
        ("/etc/passwd", 126),
    ] {
        let ran = s.run(command).exits(code);
        assert!(!ran.text().contains("alive"), "{ran:?}");
        let view = s.wait(&s.background(command));
        assert_eq!(view.exit_code, Some(code), "{command}: {view:?}");
    }
}

fn o_22_no_signal_is_ignored(s: &Subject) {
    let script = "yes | head -n 1; echo \"${PIPESTATUS[*]}\"";
    let size = Size { rows: 30, columns: 120 };
    let _ = s.run(script).prints("y\n141 0\n");
    let id = s.background(Call::new(script).on_terminal(size));
    assert_eq!(s.wait(&id).exit_code, Some(0));
    assert_eq!(String::from_utf8_lossy(&s.logs(&id)), "y\r\n141 0\r\n");
    let told = s.run("grep -E 'SigIgn|SigBlk' /proc/self/status").exits(0).text();
    let mask = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    assert_eq!((mask("SigBlk:"), mask("SigIgn:") & 0x7fff_ffff), (0, 0), "{told}");
    assert!(s.run("true").took < Duration::from_secs(5));
}
