//! `hostel exec`: the end of a command, whoever brings it about, and readers of every speed.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hostel_tests::{Home, finish};
use rustix::process::{Pid, Signal, kill_process};

fn gone(pattern: &str) -> bool {
    let output =
        std::process::Command::new("pgrep").args(["-f", pattern]).output().expect("pgrep is installed");
    output.stdout.is_empty()
}

/// Waits until a process whose command line matches is there.
fn wait_for(pattern: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while gone(pattern) {
        assert!(Instant::now() < until, "`{pattern}` did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_timeout_keeps_what_was_printed() {
    let home = Home::new();
    let command = "printf 'phase-1 ok\n'; printf 'phase-2 half'; sleep 30; echo never";
    let ran = home.hostel(&["exec", "--timeout", "1", "--", command]).expect(124);
    assert_eq!(ran.text(), "phase-1 ok\nphase-2 half");
    assert_eq!(ran.stderr, "note: the command was ended at its limit of 1 s\n");
    assert!((1..4).contains(&ran.took.as_secs()), "{ran:?}");
    let object = home.exec_json(&["--timeout", "0.5"], command);
    assert_eq!((&object["exit_code"], &object["ended"]), (&124.into(), &"timeout".into()));
    assert_eq!(object["output"], "phase-1 ok\nphase-2 half");
}

#[test]
fn what_ignores_the_polite_signals_is_killed() {
    let home = Home::new();
    let command = "trap '' TERM INT HUP; echo armed; while :; do sleep 0.27; done";
    let ran = home.hostel(&["exec", "--timeout", "1", "--", command]).expect(124);
    assert_eq!(ran.text(), "armed\n");
    assert!(ran.took < Duration::from_secs(4), "{ran:?}");
    assert!(gone("sleep 0[.]27"));
}

#[test]
fn a_timeout_reaches_what_has_left_the_group() {
    let home = Home::new();
    let command = "setsid sleep 7771 &\n(setsid sh -c 'sleep 7772 & exit' &)\nbash -c 'exec -a renamed sleep 7773' &\nsleep 7774";
    let _ = home.hostel(&["exec", "--timeout", "1", "--", command]).expect(124);
    assert!(gone("sleep 777[0-9]|renamed 777[3]"));
    let fifo = "mkfifo q.fifo\n(while :; do echo tock; sleep 1; done) > q.fifo &\ncat q.fifo";
    let ran = home.hostel(&["exec", "--timeout", "1", "--", fifo]).expect(124);
    assert!(ran.text().starts_with("tock\n") && gone("cat q[.]fifo"), "{ran:?}");
}

#[test]
fn an_interrupt_ends_the_tree_and_gives_130() {
    let home = Home::new();
    for signal in [Signal::INT, Signal::TERM] {
        let mut command =
            home.command("hostel", &["exec", "--", "setsid sleep 8881 & echo started; sleep 8882"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 8];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        let start = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(start.elapsed() < Duration::from_secs(3));
        assert!(gone("sleep 888[12]"));
    }
    let object = {
        let mut command = home.command("hostel", &["exec", "--json", "--", "echo half; sleep 8883"]);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        wait_for("^sleep 8883");
        kill_process(pid, Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(
        (&object["output"], &object["ended"], &object["exit_code"]),
        (&"half\n".into(), &"interrupted".into(), &130.into())
    );
}

#[test]
fn a_reader_that_leaves_ends_the_command() {
    let home = Home::new();
    let program = home.command("hostel", &[]).get_program().to_owned();
    let line =
        format!("'{}' exec -- 'yes 9993' | head -n 1; echo ${{PIPESTATUS[0]}}", program.to_string_lossy());
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &line]).env("HOSTEL_HOME", home.path());
    let ran = finish(command, b"");
    assert_eq!(ran.text(), "9993\n141\n");
    assert!(gone("yes 999[3]"));
}

#[test]
fn ten_times_the_output_costs_no_more_memory() {
    let home = Home::new();
    let peak = |mebibytes: u32| {
        let mut command = std::process::Command::new("bash");
        let program = home.command("hostel", &[]).get_program().to_owned();
        let script = format!(
            "'{}' exec --json -- 'head -c {mebibytes}M /dev/zero | tr \"\\0\" q' >/dev/null & \
                              pid=$!; most=0; while now=$(sed -n 's/^VmHWM: *\\([0-9]*\\) kB/\\1/p' /proc/$pid/status 2>/dev/null); [ -n \"$now\" ]; \
                              do most=$now; done; wait; echo $most",
            program.to_string_lossy()
        );
        command.args(["-c", &script]).env("HOSTEL_HOME", home.path());
        finish(command, b"").text().trim().parse::<u64>().expect("a number of kilobytes")
    };
    let (small, large) = (peak(30), peak(300));
    assert!(large < small + 16 * 1024, "{small} kB for 30 MiB, {large} kB for 300 MiB");
}

#[test]
fn a_reader_that_does_not_read_holds_up_neither_limit_nor_signal() {
    let home = Home::new();
    let start = Instant::now();
    let mut child = home
        .command("hostel", &["exec", "--timeout", "1", "--", "yes 9994"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    assert!(start.elapsed() < Duration::from_secs(5) && gone("^yes 9994"));
    let mut child =
        home.command("hostel", &["exec", "--", "yes 9995"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("^yes 9995");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(gone("^yes 9995"));
}

#[test]
fn signals_that_the_starter_ignores_change_nothing() {
    let home = Home::new();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let run = |script: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script.replace("HOSTEL", &program)]).env("HOSTEL_HOME", home.path());
        command.current_dir(home.path());
        finish(command, b"")
    };
    let ran = run("trap '' CHLD; HOSTEL exec --timeout 5 -- 'exit 7'").expect(7);
    assert!(ran.took < Duration::from_secs(3), "{ran:?}");
    let ran = run("trap '' HUP; HOSTEL exec -- 'echo up > up; sleep 1; echo done' & until [ -e up ]; do sleep 0.05; done; kill -HUP $!; wait $!")
        .expect(0);
    assert_eq!(ran.text(), "done\n");
}

#[test]
fn what_is_left_in_the_background_may_go_on_writing() {
    let home = Home::new();
    let ran = home.exec("(sleep 0.4; echo late; echo alive > flag) & echo started").expect(0);
    assert_eq!(ran.text(), "started\n");
    let (flag, until) = (home.path().join("flag"), Instant::now() + Duration::from_secs(20));
    while fs::read_to_string(&flag).unwrap_or_default() != "alive\n" {
        assert!(Instant::now() < until, "it died of its first late write");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    let home = Home::new();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let read = |options: &str, bytes: u32, pause: &str| {
        let script = format!(
            "set -o pipefail; '{program}' exec {options} -- 'head -c {bytes} /dev/zero; exit 3' | (sleep {pause}; wc -c); echo ${{PIPESTATUS[0]}}"
        );
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]).env("HOSTEL_HOME", home.path());
        finish(command, b"").text()
    };
    // The command is over long before its limit; only the reader is not.
    assert_eq!(read("--timeout 1", 900_000, "2.5"), "900000\n3\n");
    assert_eq!(read("", 3_000_000, "1.5"), "3000000\n3\n");
}

#[test]
fn more_processes_than_descriptors_are_all_killed() {
    let home = Home::new();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let mark = format!("4242.{}", std::process::id());
    let many =
        format!("for i in $(seq 150); do (trap \"\" TERM; exec sleep {mark}) & done; echo started; wait");
    let mut command = std::process::Command::new("bash");
    let script = format!("ulimit -n 64; '{program}' exec --timeout 2 -- '{many}'");
    command.args(["-c", &script]).env("HOSTEL_HOME", home.path());
    let ran = finish(command, b"").expect(124);
    assert_eq!(ran.text(), "started\n");
    assert!(gone(&format!("^sleep {mark}")), "{ran:?}");
}

#[test]
fn a_limit_on_files_is_the_commands_and_not_its_exit_code() {
    let home = Home::new();
    let ran = home.exec("ulimit -f 0; export Q=1; echo a; exit 3").expect(3);
    assert_eq!(ran.text(), "a\n");
}
