//! What the kernel knows of processes, and of what this one holds.
//!
//! A test asks here and not the program under test, which may be wrong about just that.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often something is looked at that nothing can wait for.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until this is true, and returns whether it has become so in time.
pub fn eventually(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(LOOK);
    }
}

/// Returns the command lines of all processes that hold `text`, a line each with their numbers. Zombies have none.
pub fn alive(text: &str) -> Vec<String> {
    found(text).into_iter().map(|(pid, line)| format!("{pid}: {line}")).collect()
}

/// Kills all processes whose command line holds `text`.
pub fn kill_all(text: &str) {
    for (pid, _) in found(text) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended in the meantime.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn found(text: &str) -> Vec<(i32, String)> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let line = |pid: i32| {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&bytes).replace('\0', " ")))
    };
    let lines = pids().into_iter().filter(|pid| *pid != own).filter_map(line);
    lines.filter(|(_, line)| line.contains(text)).collect()
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process: its number, its parent's, and the letter for its state.
type Process = (i32, i32, char);

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((pid, fields.next()?.parse().ok()?, state))
}

/// Returns all processes below this one.
fn descendants() -> Vec<Process> {
    let all: Vec<Process> = pids().into_iter().filter_map(process).collect();
    let mut parents = vec![i32::try_from(std::process::id()).unwrap_or(0)];
    let mut below = Vec::new();
    while let Some(parent) = parents.pop() {
        let children: Vec<Process> = all.iter().filter(|process| process.1 == parent).copied().collect();
        parents.extend(children.iter().map(|child| child.0));
        below.extend(children);
    }
    below
}

/// Catches `SIGCHLD` from here on, as the program itself does: the end of every child then interrupts whatever waits in a thread.
///
/// # Panics
///
/// Panics if it cannot be caught.
pub fn catch_ends_of_children() {
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::default())
        .expect("a signal can be caught");
}

/// Sends `SIGCHLD` to every thread of this process, and of Hostel's processes below it, again and again until `body` is done.
pub fn interrupting<T>(body: impl FnOnce() -> T) -> T {
    /// Says that it is over, also where `body` panics.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                for thread in threads_of_hostel() {
                    // It may have ended in the meantime.
                    let _ = kill_process(thread, Signal::CHILD);
                }
                thread::yield_now();
            }
        });
        body()
    })
}

fn threads_of_hostel() -> Vec<Pid> {
    let is_ours = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("hostel"))
    };
    let below = descendants().into_iter().map(|process| process.0).filter(is_ours);
    let all = below.chain([i32::try_from(std::process::id()).unwrap_or(0)]);
    let tasks = all.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
    tasks.filter_map(|task| Pid::from_raw(task.file_name().to_str()?.parse().ok()?)).collect()
}

/// What this process and those below it hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Descriptors of this process.
    pub descriptors: usize,
    /// Threads of this process.
    pub threads: usize,
    /// Processes below this one.
    pub processes: usize,
    /// Those of them that have ended and were not waited for.
    pub zombies: usize,
    /// Descriptors of the processes below this one.
    pub theirs: usize,
}

impl Held {
    /// Counts it.
    pub fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        let below = descendants();
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            processes: below.len(),
            zombies: below.iter().filter(|process| process.2 == 'Z').count(),
            theirs: below.iter().map(|process| count(&format!("/proc/{}/fd", process.0))).sum(),
        }
    }

    /// Returns whether this is no more than `before`, but for `slack` of each kind and as many descriptors of others as such
    /// processes may have. No zombie is too few to count.
    pub fn is_near(self, before: Self, slack: usize) -> bool {
        self.descriptors <= before.descriptors + slack
            && self.threads <= before.threads + slack
            && self.processes <= before.processes + slack
            && self.zombies <= before.zombies
            && self.theirs <= before.theirs + 10 * slack
    }
}

/// Begins to measure anew how much memory this process and those below it have at the most.
pub fn reset_peak() {
    let below = descendants().into_iter().map(|process| process.0.to_string());
    for process in below.chain(["self".to_owned()]) {
        // Where that is not allowed, the peak includes what was before, and a test is stricter than it says.
        let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
    }
}

/// Returns the numbers of Hostel's processes below this one, and how much memory each has had at the most, in bytes.
pub fn peaks_below() -> Vec<(i32, u64)> {
    let of = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let is_ours = status.starts_with("Name:\thostel");
        high_water(&status).filter(|_| is_ours).map(|bytes| (pid, bytes))
    };
    descendants().into_iter().filter_map(|process| of(process.0)).collect()
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?)
}

/// Returns how much memory this process has had at the most, in bytes.
///
/// # Panics
///
/// Panics if the kernel does not say.
pub fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    high_water(&status).expect("it tells the peak")
}

/// Returns the files below `dir`, and their sizes together in bytes.
pub fn files(dir: &Path) -> (usize, u64) {
    let mut sum = (0, 0);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        let (count, bytes) = if data.is_dir() { files(&entry.path()) } else { (1, data.len()) };
        sum = (sum.0 + count, sum.1 + bytes);
    }
    sum
}
