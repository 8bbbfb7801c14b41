//! What sessions cost in memory.
//!
//! What earlier benches have left in a heap hides what later ones take, so each figure comes from a process of its own: this
//! program once more, told to measure one thing and to print it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::sessions::{Road, Session};
use super::streams::{OUTPUT, read_from_a_pipe, zeros};
use super::{Row, line};

/// Says what a process of its own is to measure.
const ASK: &str = "--measure";

const IDLE: usize = 200;

/// Measures what this process was told to, and prints it, in KiB. Returns whether it was told to.
pub(crate) fn was_asked() -> bool {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(ASK) {
        return false;
    }
    let figures = match words.next().as_deref() {
        Some("pipe") => vec![growth(read_from_a_pipe)],
        Some("session") => {
            let session = Session::warm();
            vec![growth(|count| session.run(&zeros(count)))]
        }
        Some("road") => {
            let road = Road::warm();
            vec![growth(|count| road.run(&zeros(count)))]
        }
        Some("idle") => idle(),
        other => panic!("nothing is measured under {other:?}"),
    };
    for figure in figures {
        println!("{figure}");
    }
    true
}

/// Has a process of its own measure `what`.
fn measured(what: &str) -> Vec<u64> {
    let own = std::env::current_exe().expect("a bench has a path");
    let output = Command::new(own).args([ASK, what]).stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it prints numbers");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Returns the figure of that name in a file of `/proc`, in KiB.
fn figure(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let value =
        words.filter(|words| words.first() == Some(&name)).find_map(|words| words.get(1)?.parse().ok());
    value.unwrap_or_else(|| panic!("there is no {name} in {file}"))
}

/// Returns by how much a lot of output raises what this process has resident at the most, after a little of it.
fn growth(work: impl Fn(u32)) -> u64 {
    work(1);
    // Where the peak cannot be set back to what is resident now, it may hide some of the growth.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let most = || figure("/proc/self/status", "VmHWM:");
    let before = most();
    work(OUTPUT);
    most().saturating_sub(before)
}

/// Returns what a process has for itself, and its share of what it shares.
fn share(process: u32) -> u64 {
    figure(&format!("/proc/{process}/smaps_rollup"), "Pss:")
}

/// Starts a bash that does nothing and is ready to.
fn idle_bash() -> Child {
    let mut command = Command::new("/bin/bash");
    command.args(["--noprofile", "--norc", "-c", "echo; read -r line"]);
    let mut bash = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash starts");
    let output = bash.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut String::new()).expect("it is ready");
    bash
}

/// Returns the resident shells of this process, and those that stand ready beside them.
fn residents() -> Vec<u32> {
    let own = std::process::id().to_string();
    let is_ours = |process: &u32| {
        // Others come and go.
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let name = b"hostel_serve";
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|id| id.trim() == own))
            && command.windows(name.len()).any(|part| part == name)
    };
    let all = fs::read_dir("/proc").expect("there is /proc").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

/// Measures so many idle bashes, and so many idle sessions: their shells, and what this process has grown by.
fn idle() -> Vec<u64> {
    let mut plain: Vec<Child> = (0..IDLE).map(|_| idle_bash()).collect();
    let floor = plain.iter().map(|bash| share(bash.id())).sum();
    for bash in &mut plain {
        bash.kill().expect("it is killed");
        bash.wait().expect("it ends");
    }
    drop(plain);
    let before = share(std::process::id());
    let sessions: Vec<Session> = (0..IDLE).map(|_| Session::new()).collect();
    for session in &sessions {
        for _ in 0..3 {
            session.run("true");
        }
        session.warm_up();
    }
    let grown = share(std::process::id()).saturating_sub(before);
    let residents = residents();
    // Only so many sessions keep theirs.
    assert!(residents.len() >= 2, "no session has a resident");
    vec![floor, residents.into_iter().map(share).sum(), grown]
}

fn shown(kibibytes: u64) -> String {
    format!("{kibibytes} KiB")
}

/// Memory under a lot of output, and of sessions that wait.
pub(crate) fn memory() -> Vec<Row> {
    let row = |work: &str, floor: u64, ours: u64, goal: &str| {
        let ratio = if floor > 0 { format!("{:.2}×", times(ours, floor)) } else { String::new() };
        line(work, &shown(floor), &shown(ours), &ratio, goal);
    };
    let one = |what: &str| measured(what)[0];
    let floor = one("pipe");
    row("100 MB of output, peak grows, session / pipe", floor, one("session"), "1024 KiB");
    row("100 MB of output, peak grows, road / pipe", floor, one("road"), "1024 KiB");
    let figures: Vec<u64> = measured("idle").iter().map(|all| all / IDLE as u64).collect();
    let [bash, resident, host] = figures[..] else { panic!("three figures") };
    row("one of 200 idle sessions, its shell / bash", bash, resident, "");
    row("one of 200 idle sessions, in all / bash", bash, resident + host, "");
    Vec::new()
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of two places")]
fn times(ours: u64, floor: u64) -> f64 {
    ours as f64 / floor as f64
}
