//! Rules about commands that are ended from outside.

use std::thread;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::held::Held;
use super::options::Options;
use super::processes;
use super::recorder::Recorder;
use super::rule::{Found, Rule, Unmet, hold};
use crate::{Ended, ExecRequest};

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "ends.background",
        "a child in the background that holds the output does not hold the call",
        "time hostel exec --backend BACKEND -- 'sleep 8 & echo started'   # back at once",
        background,
    ),
    Rule::command(
        "ends.timeout",
        "at its deadline a command is killed with all that it has started, and the exit code is 124",
        "hostel exec --backend BACKEND --timeout 1 -- 'setsid sleep 61.5 & sleep 61.5'; echo $?; pgrep -f 'sleep 61[.]5'",
        timeout,
    )
    .within(patience),
    Rule::command(
        "ends.stubborn",
        "a command that ignores signals is killed at its deadline all the same",
        "hostel exec --backend BACKEND --timeout 1 -- 'trap \"\" TERM INT HUP; while :; do sleep 1; done'; echo $?",
        stubborn,
    )
    .within(patience),
    Rule::command(
        "ends.cancel",
        "a call that is cancelled ends its command and all that it has started, with exit code 130",
        "hostel exec --backend BACKEND -- 'sleep 61.5 & sleep 61.5' and Ctrl-C; pgrep -f 'sleep 61[.]5'",
        cancel,
    )
    .within(patience),
    Rule::command(
        "ends.stop",
        "a call whose output nobody wants any more ends as if it had been cancelled",
        "answer `Flow::Stop` to the first output of `echo first; sleep 61`, in a test of the plugin's",
        stop,
    )
    .within(patience),
];

/// When a command that is to be cancelled has surely begun.
const BEFORE_CANCEL: Duration = Duration::from_millis(500);

/// How long a killed process may still be seen.
const SETTLE: Duration = Duration::from_secs(1);

/// The end itself, and some time for the commands that look at what it has left.
fn patience(options: &Options) -> Duration {
    options.deadline.max(BEFORE_CANCEL) + options.slack + Duration::from_secs(5)
}

/// What ends a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Deadline,
    Cancel,
    Stop,
}

/// Holds the end of `command`, whose processes have `marker` as an argument, to what the way asks for.
fn ends(bench: &Bench, way: Way, command: &str, marker: &str) -> Found {
    let held = bench.shared()?;
    let (deadline, slack) = (bench.options.deadline, bench.options.slack);
    let start = Instant::now();
    let far = start + slack + Duration::from_secs(30);
    let recorder = match way {
        Way::Deadline => Recorder::until(start + deadline),
        Way::Cancel => Recorder::until(far),
        Way::Stop => Recorder::until(far).stopping_after(1),
    };
    let answer = thread::scope(|scope| {
        if way == Way::Cancel {
            scope.spawn(|| {
                thread::sleep(BEFORE_CANCEL);
                recorder.cancel();
            });
        }
        bench.attempt(&held, ExecRequest::new(command), &recorder)
    });
    let ran = answer?;
    let (due, right, code) = match way {
        Way::Deadline => (deadline, Ended::TIMEOUT, 124),
        Way::Cancel => (BEFORE_CANCEL, Ended::INTERRUPTED, 130),
        Way::Stop => (ran.first.unwrap_or_default(), Ended::INTERRUPTED, 130),
    };
    let took = ran.took;
    hold(took <= due + slack, || format!("the call ended after {took:.1?}, and was to end after {due:.1?}"))?;
    let outcome = ran.outcome;
    hold(outcome.ended == right && outcome.exit_code == code, || {
        let (ended, found) = (outcome.ended.as_str(), outcome.exit_code);
        let right = right.as_str();
        format!(
            "it ended as `{ended}` with exit code {found} after {took:.1?}; `{right}` with {code} is right"
        )
    })?;
    let early = way == Way::Deadline && took + Duration::from_millis(100) < deadline;
    hold(!early, || format!("it ended after {took:.1?}, before its deadline"))?;
    nothing_left(bench, &held, marker)?;
    bench.expect(&held, ExecRequest::new("echo alive"), "alive\n")?;
    Ok(format!("{:.1?} after the moment", took.saturating_sub(due)))
}

/// Holds what was killed to being gone, seen from here and from inside.
fn nothing_left(bench: &Bench, held: &Held, marker: &str) -> Result<(), Unmet> {
    let until = Instant::now() + SETTLE;
    while bench.is_local()? {
        let left = processes::with_argument(marker).len();
        if left == 0 {
            break;
        }
        hold(Instant::now() < until, || format!("{left} processes of the command are still running"))?;
        thread::sleep(Duration::from_millis(50));
    }
    // The pattern does not match itself, wherever it stands.
    let pattern = marker.replace('.', "[.]");
    let look = format!("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '{pattern}' || :");
    loop {
        let ran = bench.run(held, ExecRequest::new(look.as_str()))?;
        let count = String::from_utf8_lossy(&ran.output).trim().parse().unwrap_or(0_usize);
        if count == 0 {
            return Ok(());
        }
        hold(Instant::now() < until, || {
            format!("inside, {count} processes of the command are still running")
        })?;
        thread::sleep(Duration::from_millis(50));
    }
}

/// Starts one child in the group, one whose parent is gone, and one outside the session, and waits beside them.
fn family(marker: &str) -> String {
    format!(
        "sleep {marker} & (sleep {marker} &); if command -v setsid >/dev/null 2>&1; then setsid sleep {marker} & fi; \
         echo started; sleep {marker}"
    )
}

fn timeout(bench: &Bench) -> Found {
    let marker = bench.marker();
    ends(bench, Way::Deadline, &family(&marker), &marker)
}

fn stubborn(bench: &Bench) -> Found {
    let marker = bench.marker();
    let command = format!("trap '' TERM INT HUP; echo armed; while :; do sleep {marker}; done");
    ends(bench, Way::Deadline, &command, &marker)
}

fn cancel(bench: &Bench) -> Found {
    let marker = bench.marker();
    ends(bench, Way::Cancel, &family(&marker), &marker)
}

fn stop(bench: &Bench) -> Found {
    let marker = bench.marker();
    ends(bench, Way::Stop, &format!("echo first; sleep {marker}; echo second"), &marker)
}

fn background(bench: &Bench) -> Found {
    let ran =
        bench.expect(bench.shared()?.as_ref(), ExecRequest::new("sleep 8 & echo started"), "started\n")?;
    hold(ran.took < Duration::from_secs(5), || format!("the call took {:.1?}", ran.took))?;
    Ok(format!("in {:.1?}", ran.took))
}
