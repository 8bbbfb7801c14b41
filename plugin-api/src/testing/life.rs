//! Rules about environments as a whole: how they stand beside one another, and how they end.

use std::thread;
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::held::Held;
use super::options::Options;
use super::recorder::Recorder;
use super::rule::{Found, Rule, Unmet, broken, hold, shown, skipped, told};
use crate::ExecRequest;

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "life.cleanup",
        "`cleanup` works, works a second time, and comes back in time",
        "call `cleanup` twice on one environment in a test of the plugin's",
        cleanup,
    )
    .within(patience),
    Rule::command(
        "life.fresh",
        "what is not persistent is gone after `cleanup`, also for the same task id",
        "make an environment that is not `persistent`, run `export A=1`, clean it up, make it again, and run `echo $A`",
        fresh,
    )
    .within(patience),
    Rule::command(
        "life.persistent",
        "`cleanup` leaves what is persistent for the next environment of the same task id",
        "hostel exec --backend BACKEND --task keep -- 'export A=1'; hostel exec --backend BACKEND --task keep -- 'echo $A'",
        persistent,
    )
    .within(patience),
    Rule::command(
        "life.apart",
        "environments of different task ids share neither variables nor directory, and end apart",
        "hostel exec --backend BACKEND --task a -- 'cd /; export A=1'; hostel exec --backend BACKEND --task b -- 'pwd; echo $A'",
        apart,
    )
    .within(patience),
    Rule::command(
        "life.after-cleanup",
        "a call after `cleanup` works or fails, and neither hangs nor panics",
        "call `cleanup` and then `execute` in a test of the plugin's",
        after_cleanup,
    )
    .within(patience),
    Rule::command(
        "life.cleanup-in-call",
        "neither `cleanup` during a call nor that call hangs",
        "call `cleanup` while another thread is in `execute` with `sleep 2`, in a test of the plugin's",
        cleanup_in_call,
    )
    .within(patience),
];

fn patience(options: &Options) -> Duration {
    options.cleanup_limit * 4 + Duration::from_secs(45)
}

fn exporting() -> ExecRequest {
    ExecRequest::new("export KIT_LEFT=yes")
}

const SHOW: &str = r#"printf '%s' "${KIT_LEFT-gone}""#;

fn cleanup(bench: &Bench) -> Found {
    let held = bench.create_for("cleanup")?;
    bench.expect(&held, ExecRequest::new("echo ready"), "ready\n")?;
    let mut times = Vec::new();
    for which in ["the first `cleanup`", "the second `cleanup`"] {
        let start = Instant::now();
        match held.cleanup() {
            Ok(Ok(())) => times.push(format!("{:.1?}", start.elapsed())),
            Ok(Err(error)) => return broken(told(which, &error)),
            Err(silent) => return broken(format!("{which}: {silent}")),
        }
    }
    Ok(format!("in {}", times.join(" and ")))
}

fn fresh(bench: &Bench) -> Found {
    let held = bench.create_for("fresh")?;
    bench.run(&held, exporting())?;
    held.let_go()?;
    let again = bench.create_for("fresh")?;
    let value = bench.text(&again, ExecRequest::new(SHOW))?;
    hold(value == "gone", || {
        format!("the variable that was exported before is {}", shown(value.as_bytes()))
    })?;
    Ok(String::new())
}

fn persistent(bench: &Bench) -> Found {
    let make = |persistent: bool| -> Result<Held, Unmet> {
        let mut wish = bench.request("persistent")?;
        wish.persistent = persistent;
        bench.create(wish)
    };
    let first = make(true)?;
    bench.run(&first, exporting())?;
    let lasts = bench.text(&first, ExecRequest::new(SHOW))? == "yes";
    first.environment().persist().map_err(|error| Unmet::Broken(told("`persist`", &error)))?;
    first.let_go()?;
    let second = make(true)?;
    let value = bench.text(&second, ExecRequest::new(SHOW))?;
    second.let_go()?;
    // As a host destroys what an earlier process left.
    make(false)?.let_go()?;
    if !lasts {
        return skipped(
            "exported variables do not last from one command to the next, so nothing can be found again",
        );
    }
    hold(value == "yes", || "the next environment did not find the variable that was exported".to_owned())?;
    Ok(String::new())
}

fn apart(bench: &Bench) -> Found {
    let (one, other) = (bench.create_for("one")?, bench.create_for("other")?);
    let stood = bench.text(&other, ExecRequest::new("pwd"))?;
    let elsewhere = if stood == "/" { "/tmp" } else { "/" };
    bench.run(&one, ExecRequest::new(format!("cd {elsewhere}; export KIT_LEFT=yes")))?;
    let value = bench.text(&other, ExecRequest::new(SHOW))?;
    hold(value == "gone", || "a variable that one exported is there in the other".to_owned())?;
    let stands = bench.text(&other, ExecRequest::new("pwd"))?;
    hold(stands == stood, || format!("`cd` in one moved the other from `{stood}` to `{stands}`"))?;
    one.let_go()?;
    let after = bench.run(&other, ExecRequest::new("echo alive"));
    let alive = after.is_ok_and(|ran| ran.output == b"alive\n");
    hold(alive, || "after the `cleanup` of one the other does not answer".to_owned())?;
    Ok(String::new())
}

fn after_cleanup(bench: &Bench) -> Found {
    let held = bench.create_for("after")?;
    held.let_go()?;
    let recorder = Recorder::until(Instant::now() + Duration::from_secs(5));
    Ok(match bench.attempt(&held, ExecRequest::new("echo late"), &recorder) {
        Ok(ran) => format!("it works, with exit code {}", ran.outcome.exit_code),
        Err(error) => told("it", &error),
    })
}

fn cleanup_in_call(bench: &Bench) -> Found {
    let held = bench.create_for("during")?;
    // Where it hangs anyhow, this rule has nothing to say.
    bench.create_for("before")?.let_go()?;
    let limit = Duration::from_secs(5);
    let recorder = Recorder::until(Instant::now() + limit);
    let (took, cleaned) = thread::scope(|scope| {
        let call = scope.spawn(|| {
            let start = Instant::now();
            // What comes of the call is open: it may have been ended.
            let _ = bench.attempt(&held, ExecRequest::new("echo begun; sleep 2"), &recorder);
            start.elapsed()
        });
        thread::sleep(Duration::from_millis(500));
        let cleaned = held.cleanup();
        (call.join(), cleaned)
    });
    if let Err(silent) = cleaned {
        return broken(format!("`cleanup`: {silent}"));
    }
    let Ok(took) = took else { return broken("the call panicked") };
    hold(took <= limit + bench.options.slack, || format!("the call took {took:.1?}"))?;
    Ok(format!("the call took {took:.1?}"))
}
