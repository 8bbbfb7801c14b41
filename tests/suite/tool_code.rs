//! The tool `execute_code`, as an agent calls it.

mod calls;
mod folder;

use std::fs;
use std::time::{Duration, Instant};

use hostel_tests::marked::Mark;
use hostel_tests::tidy::TidyHome;
use hostel_tests::{Home, Ran, finish, on_every_backend};
use serde_json::{Value, json};

/// Takes the result of `hostel tool`, whose exit code says whether the call failed.
#[track_caller]
fn result(ran: &Ran) -> Value {
    let value = ran.json();
    assert_eq!(ran.code, i32::from(!value["error"].is_null()), "{ran:?}");
    assert_eq!(value["status"] == "success", value["error"].is_null(), "{value}");
    let captured = value["stdout_bytes_captured"].as_u64().unwrap();
    let omitted = value["stdout_bytes_omitted"].as_u64().unwrap();
    assert_eq!(Some(captured + omitted), value["stdout_bytes_total"].as_u64(), "{value}");
    assert_eq!(value["stdout_truncated"], omitted > 0, "{value}");
    value
}

/// Calls the tool.
#[track_caller]
fn execute(home: &Home, arguments: &Value) -> Value {
    let command = home.command("hostel", &["tool", "execute_code", "--json", "-"]);
    result(&finish(command, arguments.to_string().as_bytes()))
}

#[track_caller]
fn script(home: &Home, language: &str, code: &str) -> Value {
    execute(home, &json!({ "language": language, "code": code }))
}

#[track_caller]
fn python(home: &Home, code: &str) -> Value {
    execute(home, &json!({ "code": code }))
}

#[track_caller]
fn terminal(home: &Home, command: &str) -> Value {
    home.hostel(&["tool", "terminal", "--json", &json!({ "command": command }).to_string()]).json()
}

/// Whether there is a program where commands run. Where everything is meant to be there, it must.
fn has(home: &Home, program: &str) -> bool {
    let found = terminal(home, &format!("command -v {program}"))["exit_code"] == 0;
    assert!(found || !hostel_tests::strict(), "`{program}` is not there");
    if !found {
        eprintln!("skipped: `{program}` is not there");
    }
    found
}

/// Requires success and an output.
#[track_caller]
fn expect(value: &Value, output: &str) {
    assert_eq!((&value["status"], &value["output"]), (&json!("success"), &json!(output)), "{value}");
    assert_eq!((&value["exit_code"], &value["error"]), (&json!(0), &Value::Null), "{value}");
    assert!(!value["warning"].to_string().contains("session"), "{value}");
}

/// Requires a failure with this exit code, and returns why.
#[track_caller]
fn fails(value: &Value, status: &str, exit_code: i32) -> String {
    assert_eq!((&value["status"], &value["exit_code"]), (&json!(status), &json!(exit_code)), "{value}");
    value["error"].as_str().unwrap().to_owned()
}

/// What each language says in the same words: where it is, what it reads, what a tool answers, and how it ends.
const PYTHON: &str = r#"
import os, sys
from hostel_tools import terminal, read_file, write_file, patch, search_files
print("at", os.path.basename(os.getcwd()), repr(sys.stdin.read()))
print(write_file("a.txt", "one\ntwo\n")["bytes_written"], patch("a.txt", "two", "zwei ü")["success"])
print(read_file("a.txt")["content"].split("\n")[1], len(search_files("zwei", path=".")["matches"]))
ran = terminal("echo said; exit 3")
print(ran["output"].strip(), ran["exit_code"], ran["error"], read_file("no.txt")["error"] is not None)
print("aside", file=sys.stderr)
sys.exit(7)
"#;
const NODE: &str = r#"
const { terminal, read_file, write_file, patch, search_files } = require('hostel_tools');
const read = JSON.stringify(require('fs').readFileSync(0, 'utf8')).replace(/"/g, "'");
console.log('at', require('path').basename(process.cwd()), read);
console.log(write_file('a.txt', 'one\ntwo\n').bytes_written, patch('a.txt', 'two', 'zwei ü').success ? 'True' : 'False');
console.log(read_file('a.txt').content.split('\n')[1], search_files('zwei', { path: '.' }).matches.length);
const ran = terminal({ command: 'echo said; exit 3' });
console.log(ran.output.trim(), ran.exit_code, ran.error === null ? 'None' : '', read_file('no.txt').error ? 'True' : 'False');
console.error('aside');
process.exit(7);
"#;
const BASH: &str = r#"
has() { case $1 in *"$2"*) echo True ;; *) echo False ;; esac; }
echo "at ${PWD##*/} '$(cat)'"
written=$(hostel_tools write_file '{"path": "a.txt", "content": "one\ntwo\n"}') || exit 1
edited=$(printf '{"path": "a.txt", "old_string": "two", "new_string": "zwei ü"}' | hostel_tools patch -) || exit 1
case $written in *'"bytes_written":8'*) echo "8 $(has "$edited" '"success":true')" ;; *) echo "$written" ;; esac
case $(hostel_tools read_file '{"path": "a.txt"}') in *'2|zwei ü'*) ;; *) exit 1 ;; esac
case $(hostel_tools search_files '{"pattern": "zwei", "path": "."}') in *'"line":2'*) echo '2|zwei ü 1' ;; *) exit 1 ;; esac
case $(hostel_tools terminal '{"command": "echo said; exit 3"}') in *'"output":"said\n"'*'"exit_code":3'*'"error":null'*) ;; *) exit 1 ;; esac
none=$(hostel_tools read_file '{"path": "no.txt"}') && exit 1
echo "said 3 None $(has "$none" '"error":"')"
echo aside >&2
exit 7
"#;

on_every_backend! {
    fn each_language_calls_tools_where_the_session_stands(home) {
        let _ = terminal(home, "mkdir -p sub && cd sub");
        for (language, program, code) in [("python", "python3", PYTHON), ("bash", "bash", BASH), ("node", "node", NODE)] {
            if !has(home, program) {
                continue;
            }
            let value = script(home, language, code);
            let why = fails(&value, "error", 7);
            let expected = "at sub ''\n8 True\n2|zwei ü 1\nsaid 3 None True\n";
            assert_eq!((&value["output"], &value["stderr"]), (&json!(expected), &json!("aside\n")), "{language}: {value}");
            assert!(why.contains("exit code 7") && value["tool_calls_made"] == 6, "{value}");
        }
    }

    fn what_a_script_changes_of_its_own_is_gone_with_it(home) {
        let _ = terminal(home, "export KEPT=yes; f() { echo f; }");
        let before = terminal(home, "pwd")["output"].clone();
        for (language, program, code) in [
            ("python", "python3", "import os\nos.chdir('/')\nos.environ['KEPT'] = 'no'"),
            ("bash", "bash", "cd /; export KEPT=no; f() { echo g; }; set -f"),
            ("node", "node", "process.chdir('/'); process.env.KEPT = 'no'"),
        ] {
            if has(home, program) {
                expect(&script(home, language, code), "");
            }
        }
        assert_eq!(terminal(home, "pwd")["output"], before);
        assert_eq!(terminal(home, "echo $KEPT; f")["output"], "yes\nf\n");
        // What it does by `terminal` is the session's.
        expect(&script(home, "bash", "hostel_tools terminal '{\"command\": \"cd /usr\"}' >/dev/null"), "");
        assert_eq!(terminal(home, "pwd")["output"], "/usr\n");
    }

    fn what_goes_wrong_in_a_script_is_told(home) {
        if !has(home, "python3") {
            return;
        }
        for (code, exit_code, why, stderr) in [
            ("import sys\nsys.exit('no more')", 1, "no more", "no more\n"),
            ("def f():\n    raise ValueError('ü')\nf()", 1, "ValueError: ü", "File \"script.py\", line 2, in f"),
            ("print('a'\nx = = 1", 1, "SyntaxError", "File \"script.py\", line"),
            ("import os\nos.kill(os.getpid(), 9)", 137, "signal 9", ""),
            ("import os\nos._exit(3)", 3, "exit code 3", ""),
        ] {
            let value = python(home, code);
            let said = fails(&value, "error", exit_code);
            assert!(said.contains(why) && value["stderr"].as_str().unwrap().contains(stderr), "{value}");
            assert!(!value["stderr"].as_str().unwrap().contains("run.py"), "{value}");
        }
        let value = script(home, "bash", "echo a\nif then\n");
        assert!(fails(&value, "error", 2).contains("syntax error") && value["output"] == "a\n", "{value}");
        expect(&python(home, "import sys\nsys.exit()"), "");
    }

    fn secrets_are_not_in_its_environment(home) {
        let exports = "export MY_API_KEY=s3 HOME_SECRET=s3 PATH_token=s3 LC_AUTHOR=s3 PLAIN=s3 LC_TIME=C";
        assert_eq!(terminal(home, exports)["exit_code"], 0);
        for (language, program, code) in [
            ("python", "python3", "import os\nprint(' '.join(k for k, v in os.environ.items() if 's3' in v or k == 'LC_TIME'))"),
            ("bash", "bash", "env | grep -e s3 -e LC_TIME | cut -d= -f1"),
            ("node", "node", "console.log(Object.entries(process.env).filter(([k, v]) => v.includes('s3') || k === 'LC_TIME').map(([k]) => k).join(' '))"),
        ] {
            if has(home, program) {
                expect(&script(home, language, code), "LC_TIME\n");
            }
        }
    }

    fn output_of_any_kind_and_size_becomes_text(home) {
        let value = script(home, "bash", "printf 'caf\\351 \\377\\000end\\n'; printf '\\033[31mred\\033[0m\\n' >&2");
        expect(&value, "caf\u{fffd} \u{fffd}end\n");
        assert_eq!(value["stderr"], "red\n");
        if !has(home, "python3") {
            return;
        }
        expect(&python(home, "print('é€😀')\nimport sys\nsys.stdout.buffer.write(b'\\xe2'); sys.stdout.flush(); sys.stdout.buffer.write(b'\\x82\\xac\\n')"), "é€😀\n€\n");
        let large = format!("text = '''{}'''\nprint(len(text))", "0123456789ü\n".repeat(25_000));
        expect(&python(home, &large), "300000\n");
        let value = python(home, "import sys\nfor n in range(40000): print('line', n)\nsys.stderr.write('x' * 20000)");
        assert_eq!((&value["status"], &value["stdout_truncated"]), (&json!("success"), &json!(true)), "{value}");
        let output = value["output"].as_str().unwrap();
        assert!(output.starts_with("line 0\n") && output.ends_with("line 39999\n") && output.len() < 50_100, "{output}");
        assert!(value["stderr"].as_str().unwrap().len() < 10_100 && value["warning"].as_str().unwrap().contains("standard error"));
        let whole = fs::read_to_string(value["full_output_path"].as_str().unwrap()).unwrap();
        assert_eq!(Some(whole.len() as u64), value["stdout_bytes_total"].as_u64());
    }

    fn no_more_than_fifty_calls_are_made(home) {
        if !has(home, "python3") {
            return;
        }
        let code = "from hostel_tools import terminal\n\
                    errors = [terminal('true').get('error') for _ in range(52)]\n\
                    print(errors[:50] == [None] * 50, errors[50] == errors[51], errors[50])";
        let value = python(home, code);
        assert_eq!((&value["status"], &value["tool_calls_made"]), (&json!("success"), &json!(50)), "{value}");
        assert!(value["output"].as_str().unwrap().starts_with("True True a script may call 50 tools"), "{value}");
    }

    fn calls_may_be_made_at_once(home) {
        if has(home, "python3") {
            let code = "from concurrent.futures import ThreadPoolExecutor\n\
                        from hermes_tools import terminal\n\
                        with ThreadPoolExecutor(8) as pool:\n    \
                            print(''.join(pool.map(lambda n: terminal('echo %d' % n)['output'].strip(), range(24))))";
            expect(&python(home, code), "01234567891011121314151617181920212223\n");
        }
        let code = "for n in 1 2 3 4 5 6; do hostel_tools terminal \"{\\\"command\\\": \\\"echo out-$n\\\"}\" & done | grep -o 'out-[0-9]' | sort; wait";
        expect(&script(home, "bash", code), "out-1\nout-2\nout-3\nout-4\nout-5\nout-6\n");
    }

    fn when_its_time_is_up_everything_ends(home) {
        for (language, program, code) in [
            ("python", "python3", "import subprocess, sys\nprint('half', flush=True)\nsubprocess.run(['sleep', 'MARK'])"),
            ("bash", "bash", "trap '' TERM; echo half; while :; do sleep MARK; done"),
            ("node", "node", "console.log('half'); require('child_process').spawnSync('sleep', ['MARK'])"),
            // A call that is under way.
            ("bash", "bash", "echo half; hostel_tools terminal '{\"command\": \"sleep MARK\"}'"),
        ] {
            if !has(home, program) {
                continue;
            }
            let mark = Mark::new();
            let start = Instant::now();
            let code = code.replace("MARK", &mark.to_string());
            let value = execute(home, &json!({ "language": language, "code": code, "timeout": 2 }));
            let why = fails(&value, "timeout", 124);
            assert!(why.contains("2 s") && value["output"] == "half\n", "{value}");
            assert!(start.elapsed() < Duration::from_secs(20), "{value}");
            mark.expect_gone();
        }
    }

    fn a_child_in_the_background_holds_nobody_up(home) {
        for (language, program, code) in [
            ("python", "python3", "import subprocess\nsubprocess.Popen(['sleep', 'MARK'])\nprint('end')"),
            ("bash", "bash", "sleep MARK & echo end"),
            ("node", "node", "require('child_process').spawn('sleep', ['MARK'], { stdio: 'inherit' }).unref(); console.log('end')"),
        ] {
            if has(home, program) {
                let mark = Mark::new();
                let value = script(home, language, &code.replace("MARK", &mark.to_string()));
                expect(&value, "end\n");
                assert!(value["duration_seconds"].as_f64().unwrap() < 10.0, "{value}");
            }
        }
    }

    // upstream #13142, where the program is missing
    fn a_script_without_its_program_is_no_success(home) {
        let _ = terminal(home, "export PATH=/nowhere");
        for (language, program) in [("python", "python3"), ("node", "node")] {
            let value = script(home, language, "print(1)");
            let why = fails(&value, "error", -1);
            assert!(why.contains(&format!("`{program}`")) && why.contains(home.backend()), "{value}");
            assert!(value["tool_calls_made"] == 0 && value["hint"].as_str().unwrap().contains("\"bash\""), "{value}");
        }
    }
}

#[test]
fn fifty_megabytes_are_taken_and_soon() {
    let home = TidyHome::new();
    let code = "import sys\nfor stream in sys.stdout, sys.stderr:\n    for n in range(512): stream.write('0123456789abcde\\n' * 6400)";
    for (language, code, total) in [
        ("python", code, 52_428_800_u64),
        (
            "bash",
            "yes 0123456789abcde | head -c 20000000; yes 0123456789abcde | head -c 2000000 >&2",
            20_000_000,
        ),
    ] {
        let value = script(&home, language, code);
        assert_eq!(
            (&value["status"], &value["stdout_bytes_total"]),
            (&json!("success"), &json!(total)),
            "{value}"
        );
        assert!(value["output"].as_str().unwrap().ends_with("0123456789abcde\n"));
        assert!(value["duration_seconds"].as_f64().unwrap() < 120.0, "{value}");
    }
}

#[test]
fn a_rejection_that_nobody_handles_is_told_as_node_tells_it() {
    let home = TidyHome::new();
    if !has(&home, "node") {
        return;
    }
    let thrown = "class Odd extends Error { constructor(m) { super(m); this.name = 'Odd'; } }\nPromise.reject(new Odd('no'))";
    for (code, why, shown) in [
        ("Promise.reject(new Error('boom'))", "Error: boom", "Error: boom\n    at "),
        (
            "import fs from 'fs';\nPromise.reject(new TypeError('boom'))",
            "TypeError: boom",
            "TypeError: boom\n    at ",
        ),
        ("await Promise.reject(new Error('boom'))", "Error: boom", "Error: boom\n    at "),
        (
            "Promise.reject(5)",
            "a promise was rejected with the reason \"5\"",
            "The promise rejected with the reason \"5\".",
        ),
        (thrown, "Odd: no", "Odd: no\n    at "),
    ] {
        let value = script(&home, "node", code);
        assert_eq!(fails(&value, "error", 1), format!("the script ended with exit code 1: {why}"), "{value}");
        assert_eq!(value["stderr"].as_str().unwrap().matches(shown).count(), 1, "{value}");
    }
}
