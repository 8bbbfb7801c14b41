//! Rules about the exit code and the output of a command.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::bench::{Bench, Ran};
use super::rule::{Found, Rule, Unmet, broken, hold, shown, skipped};
use crate::{Ended, ExecRequest};

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "create.environment",
        "an environment can be made, and answers",
        "hostel exec --backend BACKEND -- 'echo ready'",
        environment,
    ),
    Rule::command(
        "create.unknown-extras",
        "fields of a later version are ignored",
        "put a key that nobody knows into `extra` of `CreateEnvironment` and of `ExecRequest`",
        unknown_extras,
    ),
    Rule::command(
        "create.task-ids",
        "a task id may be any text",
        "hostel exec --backend BACKEND --task '../a \"b\" ü' -- 'echo ready'",
        task_ids,
    ),
    Rule::command(
        "exec.exit-code",
        "the exit code is the command's own",
        "hostel exec --backend BACKEND -- 'exit 7'; echo $?   # and 0, 1, 255, and 127 for a command that is not there",
        exit_code,
    ),
    Rule::command(
        "exec.signal",
        "a shell that a signal kills has 128 and the signal's number as its exit code",
        "hostel exec --backend BACKEND -- 'kill -9 $$'; echo $?   # 137",
        signal,
    ),
    Rule::command(
        "exec.output",
        "output arrives byte for byte, with or without a newline at its end, or not at all",
        "hostel exec --backend BACKEND -- 'printf abc' | od -c",
        output,
    ),
    Rule::command(
        "exec.stderr",
        "standard error is merged into the output, in the order written",
        "hostel exec --backend BACKEND -- 'echo one; echo two >&2; echo three; echo four >&2'",
        stderr,
    ),
    Rule::command(
        "exec.binary",
        "all 256 values of a byte pass unharmed",
        r#"hostel exec --backend BACKEND -- 'printf "\000\033\377"' | od -An -tx1   # 00 1b ff"#,
        binary,
    ),
    Rule::command(
        "exec.big-output",
        "8 MiB of output arrive whole and in order",
        "hostel exec --backend BACKEND -- 'seq 1000000 2048575' | cmp - <(seq 1000000 2048575)",
        big_output,
    ),
    Rule::command(
        "exec.streaming",
        "output is passed on as it comes, and not at the end",
        "hostel exec --backend BACKEND -- 'echo one; sleep 1; echo two'   # `one` is there a second before `two`",
        streaming,
    ),
    Rule::command(
        "exec.concurrent",
        "calls at once in one environment each get their own output",
        "for n in 1 2 3 4 5 6 7 8; do hostel exec --backend BACKEND --env N=$n -- 'echo $N; sleep 1; echo $N' & done; wait",
        concurrent,
    ),
];

fn environment(bench: &Bench) -> Found {
    bench.expect(bench.shared()?.as_ref(), ExecRequest::new("echo ready"), "ready\n")?;
    Ok(String::new())
}

fn unknown_extras(bench: &Bench) -> Found {
    let later = serde_json::json!({"a": [1, null, "text"]});
    let mut wish = bench.request("extras")?;
    wish.extra.insert("hostel_kit_later".into(), later.clone());
    let held = bench.create(wish)?;
    let mut request = ExecRequest::new("echo ready");
    request.extra.insert("hostel_kit_later".into(), later);
    bench.expect(&held, request, "ready\n")?;
    Ok(String::new())
}

fn task_ids(bench: &Bench) -> Found {
    let mut wish = bench.request("odd")?;
    wish.task_id.push_str("/../ü \"x\" 'y'\n$HOME");
    let held = bench.create(wish)?;
    bench.expect(&held, ExecRequest::new("echo ready"), "ready\n")?;
    Ok(String::new())
}

const CODES: [(&str, i32); 7] = [
    ("exit 0", 0),
    ("exit 1", 1),
    ("exit 7", 7),
    ("exit 255", 255),
    ("true; false", 1),
    ("echo 'exit code: 0'; exit 3", 3),
    ("hostel-kit-no-such-command", 127),
];

fn exit_code(bench: &Bench) -> Found {
    let held = bench.shared()?;
    for (command, code) in CODES {
        let outcome = bench.run(&held, ExecRequest::new(command))?.outcome;
        hold(outcome.exit_code == code && outcome.ended == Ended::EXITED, || {
            let (found, ended) = (outcome.exit_code, outcome.ended.as_str());
            format!("`{command}` gave exit code {found} (`{ended}`), and {code} (`exited`) is right")
        })?;
    }
    Ok(String::new())
}

fn signal(bench: &Bench) -> Found {
    let outcome = bench.run(bench.shared()?.as_ref(), ExecRequest::new("kill -9 $$; echo alive"))?.outcome;
    let (code, ended) = (outcome.exit_code, outcome.ended);
    // Something in between, such as a container engine, may have turned the signal into an exit code.
    let known = ended == Ended::EXITED || (ended == Ended::SIGNAL && outcome.signal == Some(9));
    hold(code == 137 && known, || {
        format!("`kill -9 $$` gave exit code {code} (`{}`), signal {:?}", ended.as_str(), outcome.signal)
    })?;
    Ok(format!("`{}`", ended.as_str()))
}

fn output(bench: &Bench) -> Found {
    let held = bench.shared()?;
    for (command, printed) in
        [("printf abc", "abc"), ("true", ""), (r"printf '\n\n a \n'", "\n\n a \n"), ("echo ''", "\n")]
    {
        bench.expect(&held, ExecRequest::new(command), printed)?;
    }
    Ok(String::new())
}

fn stderr(bench: &Bench) -> Found {
    let command = "echo one; echo two >&2; echo three; echo four >&2";
    bench.expect(bench.shared()?.as_ref(), ExecRequest::new(command), "one\ntwo\nthree\nfour\n")?;
    Ok(String::new())
}

fn binary(bench: &Bench) -> Found {
    let escapes: Vec<String> = (0..=u8::MAX).map(|byte| format!(r"\0{byte:03o}")).collect();
    let command = format!("printf '%b' '{}'", escapes.concat());
    let ran = bench.run(bench.shared()?.as_ref(), ExecRequest::new(command))?;
    let wanted: Vec<u8> = (0..=u8::MAX).collect();
    same(&ran.output, &wanted)?;
    Ok(String::new())
}

/// Holds a long output to what it should be, and says where it begins to differ.
pub(super) fn same(found: &[u8], wanted: &[u8]) -> Result<(), Unmet> {
    if found == wanted {
        return Ok(());
    }
    let at = found.iter().zip(wanted).take_while(|(one, other)| one == other).count();
    let rest = found.get(at..).unwrap_or_default();
    let (count, right) = (found.len(), wanted.len());
    broken(format!("{count} bytes came and {right} are right; from byte {at} on it is {}", shown(rest)))
}

fn big_output(bench: &Bench) -> Found {
    // Eight bytes a line, each line another one.
    let ran = bench.run(bench.shared()?.as_ref(), ExecRequest::new("seq 1000000 2048575"))?;
    if ran.outcome.exit_code == 127 {
        return skipped("there is no `seq` in the environment");
    }
    let mut wanted = Vec::with_capacity(8 * 1024 * 1024);
    for number in 1_000_000..=2_048_575 {
        // Writing into memory does not fail.
        let _ = writeln!(wanted, "{number}");
    }
    same(&ran.output, &wanted)?;
    Ok(format!("in {:.1?}", ran.took))
}

fn streaming(bench: &Bench) -> Found {
    let ran = bench.expect(
        bench.shared()?.as_ref(),
        ExecRequest::new("echo one; sleep 1; echo two"),
        "one\ntwo\n",
    )?;
    let Some(first) = ran.first else { return broken("no output came") };
    let before = ran.took.saturating_sub(first);
    hold(before >= Duration::from_millis(600), || {
        format!("the first output came {first:.1?} after the beginning, and the end {before:.1?} later")
    })?;
    Ok(format!("the first output came after {first:.1?}"))
}

fn concurrent(bench: &Bench) -> Found {
    let held = bench.shared()?;
    let held = held.as_ref();
    let call = |number: usize| {
        let command = "echo begin-$KIT_N; sleep 0.2 2>/dev/null || sleep 1; echo end-$KIT_N";
        let mut request = ExecRequest::new(command);
        request.env.push(("KIT_N".into(), number.to_string()));
        bench.expect(held, request, &format!("begin-{number}\nend-{number}\n"))
    };
    let answers: Vec<Result<Ran, Unmet>> = thread::scope(|scope| {
        let calls: Vec<_> = (1..=8).map(|number| scope.spawn(move || call(number))).collect();
        calls.into_iter().map(|call| call.join().unwrap_or_else(|_| broken("a call panicked"))).collect()
    });
    for answer in answers {
        answer?;
    }
    Ok(String::new())
}
