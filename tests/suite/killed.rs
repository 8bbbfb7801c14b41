//! A host that is killed: its command goes with it, and what an earlier call has left stays.

use std::time::Duration;

use hostel_tests::conversation::Conversation;
use hostel_tests::kernel::eventually;
use hostel_tests::marked::{Mark, PATIENCE};
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use rustix::process::{Pid, Signal, kill_process};

/// Starts a call, and returns it once its command has printed `up`.
fn call(home: &TidyHome, options: &[&str], command: &str) -> Conversation {
    let words = [&["exec", "--task", "k"], options, &["--", command]].concat();
    let mut call = Conversation::begin(home.command("hostel", &words));
    call.hear("up");
    call
}

/// Everything that a shell can do to get out of sight, with `marks` processes that sleep.
fn hidden(mark: &Mark) -> String {
    format!(
        "echo up; setsid sleep {mark} & (setsid sh -c 'sleep {mark} & exit' &) ; \
         bash -c 'exec -a renamed sleep {mark}' & sleep {mark} & sleep {mark}"
    )
}

on_every_backend! {
    fn nothing_of_a_killed_hosts_command_is_left_and_nothing_else_is_touched(home) {
        let (left, other, mark) = (Mark::new(), Mark::new(), Mark::new());
        let earlier = format!("setsid sleep {left} & sleep {left} & echo left");
        assert_eq!(home.hostel(&["exec", "--task", "k", "--", &earlier]).expect(0).text(), "left\n");
        // Each command of a sandbox takes along what it has started.
        let lasts = if home.backend() == "bubblewrap" { 0 } else { 2 };
        left.appear(lasts);
        // Another host, of the same task.
        let bystander = call(home, &[], &format!("echo up; sleep {other}"));
        let killed = call(home, &[], &hidden(&mark));
        mark.appear(5);
        other.appear(1);
        killed.signal(Signal::KILL);
        mark.expect_gone();
        assert_eq!(killed.finish().code, -1);
        assert_eq!((left.pids().len(), other.pids().len()), (lasts, 1));
        // The session is none the worse for it.
        assert_eq!(home.hostel(&["exec", "--task", "k", "--", "echo again"]).expect(0).text(), "again\n");
        bystander.signal(Signal::TERM);
        let _ = bystander.finish().expect(130);
        other.expect_gone();
        assert_eq!(left.pids().len(), lasts);
        let _ = home.hostel(&["env", "cleanup", "k"]).expect(0);
        left.expect_gone();
    }

    fn what_has_put_off_its_mark_its_session_and_its_parent_ends_at_the_time_limit(home) {
        let mark = Mark::new();
        let command = format!("(env -i setsid sh -c 'sleep {mark} & exit' &); sleep {mark}");
        let words = ["exec", "--task", "k", "--timeout", "1", "--", &command];
        let _ = home.hostel(&words).expect(124);
        mark.expect_gone();
    }

    fn what_ignores_every_polite_signal_is_gone_too(home) {
        let mark = Mark::new();
        let command = format!("trap '' TERM INT HUP PIPE; echo up; sleep {mark} & sleep {mark}; sleep {mark}");
        let killed = call(home, &[], &command);
        mark.appear(2);
        killed.signal(Signal::KILL);
        mark.expect_gone();
        drop(killed);
    }

    fn a_command_on_a_terminal_goes_with_its_host(home) {
        let mark = Mark::new();
        let killed = call(home, &["--pty"], &format!("trap '' HUP; {}", hidden(&mark)));
        mark.appear(5);
        killed.signal(Signal::KILL);
        mark.expect_gone();
        drop(killed);
    }

    fn a_command_that_is_stopped_goes_with_its_host(home) {
        let mark = Mark::new();
        // It is a copy of the shell before it is a `sleep`.
        let stopped = format!(
            "echo up; sleep {mark} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep {mark}"
        );
        let killed = call(home, &[], &stopped);
        mark.appear(2);
        killed.signal(Signal::KILL);
        mark.expect_gone();
        drop(killed);
    }

    fn a_host_that_ends_leaves_what_its_call_has_left(home) {
        let mark = Mark::new();
        let words = ["exec", "--", &format!("sleep {mark} & exit 3")];
        let _ = home.hostel(&words).expect(3);
        let lasts = usize::from(home.backend() != "bubblewrap");
        // All of Hostel is gone, and what would kill it has had its time.
        assert_eq!(mark.gone_within(Duration::from_millis(500)), lasts == 0, "{:?}", mark.pids());
        let _ = home.hostel(&["env", "cleanup", "default"]).expect(0);
        mark.expect_gone();
    }
}

/// Returns the processes whose parent this is.
fn children(parent: Pid) -> Vec<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", parent.as_raw_nonzero());
    let numbers = std::fs::read_to_string(path).unwrap_or_default();
    numbers.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// Returns whether a process has this name.
fn is_called(pid: Pid, name: &str) -> bool {
    let found = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
    found.trim_end() == name
}

/// Returns the guards of a host.
fn guards(host: &Conversation) -> Vec<Pid> {
    let mut of_host = children(host.pid());
    of_host.retain(|pid| is_called(*pid, "hostel-guard"));
    of_host
}

/// Kills a guard, and waits for the next one.
fn replaced(host: &Conversation) {
    let before = guards(host);
    assert_eq!(before.len(), 1);
    kill_process(before[0], Signal::KILL).unwrap();
    let is_there = || guards(host).iter().any(|pid| !before.contains(pid));
    assert!(eventually(PATIENCE, is_there), "it was not replaced");
}

#[test]
fn a_guard_that_is_killed_before_its_host_is_followed_by_another() {
    let home = TidyHome::new();
    let mark = Mark::new();
    let host = call(&home, &[], &format!("echo up; setsid sleep {mark} & sleep {mark}"));
    mark.appear(2);
    replaced(&host);
    host.signal(Signal::KILL);
    mark.expect_gone();
    drop(host);
}

#[test]
fn a_guard_that_was_killed_harms_no_call() {
    let home = TidyHome::new();
    let words = ["exec", "--stdin", "--", "echo up; cat; echo over; exit 3"];
    let mut host = Conversation::begin(home.command("hostel", &words));
    host.hear("up\n");
    replaced(&host);
    let ran = host.finish().expect(3);
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("up\nover\n", ""), "{ran:?}");
}
