//! Rules about what calls and environments leave behind.
//!
//! What a process holds is counted before and after the same things were done again and again. A provider may keep something for
//! later, such as a connection, so it is warmed up first, and a little more is no leak.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::limit::lock;
use super::options::Options;
use super::processes;
use super::rule::{Found, Rule, Unmet, broken, skipped};
use crate::ExecRequest;

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "leaks.descriptors",
        "calls and environments leave no descriptors open",
        "make 20 calls in a test of the plugin's, and compare `ls /proc/self/fd` before and after",
        descriptors,
    )
    .within(patience),
    Rule::command(
        "leaks.threads",
        "calls and environments leave no threads running",
        "make 20 calls in a test of the plugin's, and compare `ls /proc/self/task` before and after",
        threads,
    )
    .within(patience),
    Rule::command(
        "leaks.processes",
        "calls and environments leave no processes behind",
        "make 20 calls in a test of the plugin's, and look at `ps --ppid PID` before and after",
        children,
    )
    .within(patience),
];

/// How many calls are counted.
const CALLS: usize = 20;

/// How many environments are counted. One that leaks at all so leaks more than is tolerated.
const ENVIRONMENTS: usize = 3;

/// So much more than before is no leak.
const TOLERATED: usize = 2;

/// What ends by itself after a call has this long to do so.
const SETTLE: Duration = Duration::from_secs(3);

fn patience(_options: &Options) -> Duration {
    Duration::from_secs(240)
}

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    descriptors: usize,
    threads: usize,
    /// Its children, those that its adopter has got of it, and whatever on this machine carries the id of a call of the kit's.
    processes: usize,
}

impl Count {
    fn take(bench: &Bench) -> io::Result<Self> {
        let process = bench.options.process_of_provider.unwrap_or_else(std::process::id);
        let entries =
            |part: &str| Ok::<_, io::Error>(std::fs::read_dir(format!("/proc/{process}/{part}"))?.count());
        Ok(Self {
            descriptors: entries("fd")?,
            threads: entries("task")?,
            processes: processes::related(process, bench.options.adopter_of_provider, &bench.mark),
        })
    }

    fn is_above(self, before: Self) -> bool {
        let above = |after: usize, before: usize| after > before + TOLERATED;
        above(self.descriptors, before.descriptors)
            || above(self.threads, before.threads)
            || above(self.processes, before.processes)
    }
}

/// What a process held before and after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    before: Count,
    after: Count,
}

/// Counts once for all three rules.
fn growth(bench: &Bench) -> Result<Growth, Unmet> {
    if let Some(known) = lock(&bench.growth).clone() {
        return known;
    }
    // What stands here if this does not come to its end.
    let unknown = skipped("nothing could be counted: see `leaks.descriptors`");
    *lock(&bench.growth) = Some(unknown);
    let measured = measure(bench)?;
    *lock(&bench.growth) = Some(Ok(measured));
    Ok(measured)
}

fn measure(bench: &Bench) -> Result<Growth, Unmet> {
    let uncounted = |error: io::Error| {
        Unmet::Skipped(match error.kind() {
            io::ErrorKind::NotFound => {
                "the process that was to be counted has ended: see what crashed".to_owned()
            }
            _ => format!("`/proc` shows nothing to count: {error}"),
        })
    };
    let held = bench.shared()?;
    for _ in 0..3 {
        bench.expect(&held, ExecRequest::new("echo warm"), "warm\n")?;
    }
    round(bench, "warm")?;
    let mut before = Count::take(bench).map_err(uncounted)?;
    let until = Instant::now() + SETTLE;
    loop {
        thread::sleep(Duration::from_millis(50));
        let now = Count::take(bench).map_err(uncounted)?;
        let settled = now == before;
        before = now;
        if settled || Instant::now() >= until {
            break;
        }
    }
    for _ in 0..CALLS {
        bench.expect(&held, ExecRequest::new("echo call"), "call\n")?;
    }
    for number in 0..ENVIRONMENTS {
        round(bench, &format!("round{number}"))?;
    }
    let until = Instant::now() + SETTLE;
    loop {
        let after = Count::take(bench).map_err(uncounted)?;
        if !after.is_above(before) || Instant::now() >= until {
            return Ok(Growth { before, after });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Makes an environment, uses it, and takes it down.
fn round(bench: &Bench, task: &str) -> Result<(), Unmet> {
    let held = bench.create_for(task)?;
    bench.expect(&held, ExecRequest::new("echo round"), "round\n")?;
    held.let_go()
}

fn judged(what: &str, before: usize, after: usize) -> Found {
    let found =
        format!("{before} {what} before and {after} after {CALLS} calls and {ENVIRONMENTS} environments");
    if after > before + TOLERATED { broken(found) } else { Ok(found) }
}

fn descriptors(bench: &Bench) -> Found {
    let Growth { before, after } = growth(bench)?;
    judged("descriptors", before.descriptors, after.descriptors)
}

fn threads(bench: &Bench) -> Found {
    let Growth { before, after } = growth(bench)?;
    judged("threads", before.threads, after.threads)
}

fn children(bench: &Bench) -> Found {
    let Growth { before, after } = growth(bench)?;
    judged("processes", before.processes, after.processes)
}
