//! Rules about what a command is given: its text, its input, its variables, its directory, and files.

use std::io::Write;
use std::time::Instant;

use super::bench::{Bench, COMMAND_LIMIT};
use super::commands::same;
use super::held::Held;
use super::recorder::Recorder;
use super::rule::{Found, Rule, Unmet, broken, hold, shown, skipped, told};
use crate::{Environment, ErrorKind, ExecRequest, Stdin};

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "exec.quoting",
        "the command is shell text, and reaches the shell whole and unchanged",
        r#"hostel exec --backend BACKEND -- "$(printf 'cat <<\\E\n$HOME "a" '"'b'"'\nE\n# end')"   # $HOME "a" 'b'"#,
        quoting,
    ),
    Rule::command(
        "exec.stdin",
        "bytes for the standard input arrive whole, more than a pipe holds as well, and then end",
        "head -c 1048576 /dev/urandom > f; hostel exec --backend BACKEND --stdin -- cat < f | cmp - f",
        stdin,
    ),
    Rule::command(
        "exec.stdin-descriptor",
        "what can be read from a descriptor arrives on the standard input",
        "echo hello | hostel exec --backend BACKEND --stdin -- cat",
        stdin_descriptor,
    ),
    Rule::command(
        "exec.stdin-empty",
        "without input, the command reads end-of-file at once",
        "hostel exec --backend BACKEND -- 'cat; echo end'",
        stdin_empty,
    ),
    Rule::command(
        "exec.stdin-unread",
        "input that the command does not read holds nothing up",
        "head -c 1048576 /dev/zero | hostel exec --backend BACKEND --stdin -- 'exit 3'; echo $?",
        stdin_unread,
    ),
    Rule::command(
        "exec.env",
        "variables of a call are there as they are, and gone in the next call",
        "hostel exec --backend BACKEND --env A='x  \"y\" $z' -- 'echo \"$A\"'; hostel exec --backend BACKEND -- 'echo ${A-gone}'",
        env,
    ),
    Rule::command(
        "exec.cwd",
        "the working directory of a call counts for that call only",
        "hostel exec --backend BACKEND --cwd / -- pwd; hostel exec --backend BACKEND -- pwd",
        cwd,
    ),
    Rule::command(
        "exec.cwd-missing",
        "a working directory that is not there is an error of the kind `bad_cwd`, and nothing runs",
        "hostel exec --backend BACKEND --cwd /no/such/dir -- 'echo ran'",
        cwd_missing,
    ),
    Rule::command(
        "exec.session",
        "the next command runs where the outcome says that the session stands",
        "hostel exec --backend BACKEND -- 'cd /; export A=1'; hostel exec --backend BACKEND -- 'pwd; echo $A'",
        session,
    ),
    Rule::command(
        "exec.files",
        "`read_file` returns the bytes that `write_file` wrote, and fails where there is no file",
        "call `write_file` and `read_file` with all 256 values of a byte in a test of the plugin's",
        files,
    ),
];

fn quoting(bench: &Bench) -> Found {
    let held = bench.shared()?;
    let command = r#"printf '%s\n' "it's" 'a "b"' '$HOME' 'back\slash' 'ünï ☃' '*'
cat <<'END'
  $HOME `id` \
END
# a remark at the end"#;
    let printed = "it's\na \"b\"\n$HOME\nback\\slash\nünï ☃\n*\n  $HOME `id` \\\n";
    bench.expect(&held, ExecRequest::new(command), printed)?;
    let long = format!(": '{}'; echo end", "x".repeat(64 * 1024));
    bench.expect(&held, ExecRequest::new(long), "end\n")?;
    Ok(String::new())
}

fn fed(command: &str, bytes: Vec<u8>) -> ExecRequest {
    let mut request = ExecRequest::new(command);
    request.stdin = Stdin::Bytes(bytes);
    request
}

/// Makes bytes among which every value comes, and whose order shows.
fn pattern(count: u32) -> Vec<u8> {
    let byte = |at: u32| u8::try_from((at + at / 256) % 256).unwrap_or_default();
    (0..count).map(byte).collect()
}

fn stdin(bench: &Bench) -> Found {
    let bytes = pattern(1024 * 1024);
    let ran = bench.run(bench.shared()?.as_ref(), fed("cat", bytes.clone()))?;
    same(&ran.output, &bytes)?;
    Ok(format!("in {:.1?}", ran.took))
}

fn stdin_descriptor(bench: &Bench) -> Found {
    let piped = || -> std::io::Result<Stdin> {
        let (reader, mut writer) = std::io::pipe()?;
        writer.write_all(b"from a pipe\n")?;
        Ok(Stdin::Fd(reader.into()))
    };
    let mut request = ExecRequest::new("cat");
    request.stdin = piped().map_err(|error| Unmet::Skipped(format!("the kit has no pipe: {error}")))?;
    bench.expect(bench.shared()?.as_ref(), request, "from a pipe\n")?;
    Ok(String::new())
}

fn stdin_empty(bench: &Bench) -> Found {
    bench.expect(bench.shared()?.as_ref(), ExecRequest::new("cat; echo end"), "end\n")?;
    Ok(String::new())
}

fn stdin_unread(bench: &Bench) -> Found {
    let outcome = bench.run(bench.shared()?.as_ref(), fed("exit 3", pattern(1024 * 1024)))?.outcome;
    hold(outcome.exit_code == 3, || format!("the exit code is {} and not 3", outcome.exit_code))?;
    Ok(String::new())
}

fn env(bench: &Bench) -> Found {
    let held = bench.shared()?;
    let show = r#"printf '%s' "${KIT_ONCE-gone}""#;
    for value in ["x  'y' \"z\" $HOME `id` \\", "two\nlines", "ünï ☃", ""] {
        let mut request = ExecRequest::new(show);
        request.env.push(("KIT_ONCE".into(), value.into()));
        bench.expect(&held, request, value)?;
        bench.expect(&held, ExecRequest::new(show), "gone")?;
    }
    Ok(String::new())
}

fn cwd(bench: &Bench) -> Found {
    let held = bench.shared()?;
    let before = bench.text(&held, ExecRequest::new("pwd"))?;
    let mut request = ExecRequest::new("pwd");
    request.cwd = Some("/".into());
    bench.expect(&held, request, "/\n")?;
    let after = bench.text(&held, ExecRequest::new("pwd"))?;
    hold(before == after, || {
        let (before, after) = (shown(before.as_bytes()), shown(after.as_bytes()));
        format!("the session stood in {before}, and after the call with a directory of its own in {after}")
    })?;
    Ok(format!("the session stands in {}", shown(after.as_bytes())))
}

fn cwd_missing(bench: &Bench) -> Found {
    let mut request = ExecRequest::new("echo kit-ran");
    request.cwd = Some(format!("/{}/no-such-directory", bench.mark));
    let recorder = Recorder::until(Instant::now() + COMMAND_LIMIT);
    let answer = bench.attempt(bench.shared()?.as_ref(), request, &recorder);
    let printed = recorder.recorded();
    let began = printed.windows(7).any(|window| window == b"kit-ran");
    hold(!began, || "the command ran all the same".to_owned())?;
    match answer {
        Err(error) if error.kind() == ErrorKind::BAD_CWD => Ok(format!("it fails with: {error}")),
        Err(error) => broken(told("the call", &error)),
        Ok(ran) if ran.outcome.exit_code == 0 => broken("the call returned exit code 0"),
        Ok(ran) => Ok(format!("the exit code is {}", ran.outcome.exit_code)),
    }
}

fn session(bench: &Bench) -> Found {
    let held = bench.create_for("session")?;
    let start = bench.text(&held, ExecRequest::new("pwd"))?;
    let elsewhere = if start == "/" { "/tmp" } else { "/" };
    let moved =
        bench.expect(&held, ExecRequest::new(format!("cd {elsewhere}; export KIT_KEPT='a  b'")), "")?;
    let stands = bench.text(&held, ExecRequest::new("pwd"))?;
    if let Some(told) = moved.outcome.cwd {
        hold(told == stands, || {
            format!(
                "the outcome says that the session stands in `{told}`, and the next command ran in `{stands}`"
            )
        })?;
    }
    let value = bench.text(&held, ExecRequest::new(r#"printf '%s' "${KIT_KEPT-gone}""#))?;
    match (stands == elsewhere, value == "a  b") {
        (true, true) => Ok("directory and exported variables last".into()),
        (true, false) => {
            skipped("directories last from one command to the next, and exported variables do not")
        }
        (false, true) => {
            skipped("exported variables last from one command to the next, and directories do not")
        }
        (false, false) => skipped("nothing lasts from one command to the next, which users expect it to do"),
    }
}

fn files(bench: &Bench) -> Found {
    let held = bench.shared()?;
    let find =
        r#"(for dir in /tmp "$HOME" "$PWD"; do if [ -w "$dir" ]; then cd "$dir" && pwd && exit; fi; done)"#;
    let folder = bench.text(&held, ExecRequest::new(find))?;
    if folder.is_empty() {
        return skipped("no folder can be written to");
    }
    let path = format!("{}/{} it's", folder.trim_end_matches('/'), bench.mark);
    let kept = round_trip(&held, &path);
    let mut remove = ExecRequest::new(r#"rm -f "$KIT_FILE""#);
    remove.env.push(("KIT_FILE".into(), path.clone()));
    bench.run(&held, remove)?;
    kept?;
    match held.environment().read_file(&path) {
        Ok(bytes) => broken(format!("a file that is not there reads as {}", shown(&bytes))),
        Err(_) => Ok(String::new()),
    }
}

fn round_trip(held: &Held, path: &str) -> Result<(), Unmet> {
    let environment: &dyn Environment = held.environment();
    for contents in [pattern(200_000), b"shorter, without a newline".to_vec(), Vec::new()] {
        environment
            .write_file(path, &contents)
            .map_err(|error| Unmet::Broken(told("`write_file`", &error)))?;
        let read = environment.read_file(path);
        same(&read.map_err(|error| Unmet::Broken(told("`read_file`", &error)))?, &contents)?;
    }
    Ok(())
}
