//! `hostel exec`: the contract that scripts stand on.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use hostel_tests::{Home, Ran, finish};

#[test]
fn output_that_looks_like_a_status_changes_nothing() {
    let home = Home::new();
    let script = "tr '\\0' '\\n' </proc/$$/cmdline\n\
                  printf '%s\\n' '[interrupted by user]' '[timed out after 5s]' 'exit_code: 0' '__CWD__/nowhere__'\n\
                  cd /\nfalse";
    let ran = home.exec(script).expect(1);
    assert!(
        ran.text()
            .ends_with("[interrupted by user]\n[timed out after 5s]\nexit_code: 0\n__CWD__/nowhere__\n"),
        "{ran:?}"
    );
    assert_eq!(home.exec("pwd").expect(0).text(), "/\n");
}

#[test]
fn a_command_may_end_its_own_shell() {
    let home = Home::new();
    let _ = home.exec("cd sub 2>/dev/null || mkdir sub && cd sub; export KEEP=1").expect(0);
    let ran = home.exec("sleep 3 & exit 3").expect(3);
    assert!(ran.stdout.is_empty() && ran.took < Duration::from_secs(2), "{ran:?}");
    assert_eq!(home.exec("exec printf 'replaced\n'; echo never").expect(0).text(), "replaced\n");
    assert_eq!(home.exec("trap 'echo bye' EXIT; exit 6").expect(6).text(), "bye\n");
    assert_eq!(home.exec("printf '%s %s\n' \"${PWD##*/}\" \"$KEEP\"").expect(0).text(), "sub 1\n");
}

#[test]
fn one_word_is_shell_text_and_several_are_a_list() {
    let home = Home::new();
    assert_eq!(home.exec("echo a   b | tr a-z A-Z").text(), "A B\n");
    let words = ["exec", "--", "printf", "[%s]", "a  b", "$HOME", "it's", "", "*"];
    assert_eq!(home.hostel(&words).expect(0).text(), "[a  b][$HOME][it's][][*]");
    // To a shell, `if` is a word of its grammar; in a list it is a program's name.
    let ran = home.hostel(&["exec", "--", "if", "true"]).expect(127);
    assert!(ran.text().contains("if: command not found"), "{ran:?}");
}

#[test]
fn a_session_that_keeps_shells_from_starting_recovers() {
    let home = Home::new();
    let broken = home.path().join("libc.so.6");
    fs::write(&broken, "not a library").unwrap();
    let _ = home.exec(&format!("export LD_LIBRARY_PATH={}", home.path().display())).expect(0);
    let ran = home.exec("echo hi").expect(125);
    assert!(ran.stderr.contains("`LD_LIBRARY_PATH` was dropped from the session; try again"), "{ran:?}");
    assert_eq!(home.exec("echo hi").expect(0).text(), "hi\n");
}

#[test]
fn the_json_object_has_the_contracts_keys() {
    let home = Home::new();
    let object = home.exec_json(&["--task", "t 1"], "cd /; echo hi; kill -9 $$");
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "output",
            "exit_code",
            "ended",
            "signal",
            "cwd",
            "duration_ms",
            "output_bytes",
            "omitted_bytes",
            "full_output_path",
            "backend",
            "task",
            "warnings"
        ]
    );
    assert_eq!(
        (&object["exit_code"], &object["ended"], &object["signal"]),
        (&137.into(), &"signal".into(), &"SIGKILL".into())
    );
    assert_eq!(
        (&object["backend"], &object["task"], &object["output"]),
        (&"local".into(), &"t 1".into(), &"hi\n".into())
    );
    let ran = home.hostel(&["exec", "--json", "--backend", "nosuch", "--", "true"]).expect(125);
    let object = ran.json();
    assert!(object["exit_code"].is_null() && object["ended"].is_null());
    assert_eq!(object["error"]["kind"], "not_configured");
    assert!(object["error"]["hint"].as_str().unwrap().contains("`local`"));
    assert!(
        ran.stderr
            .starts_with("error: `terminal.backend` (flag: --backend): there is no backend `nosuch`\nhint: "),
        "{ran:?}"
    );
}

#[test]
fn a_large_output_is_cut_in_the_object_and_whole_in_the_file() {
    let home = Home::new();
    let object = home.exec_json(&["--max-output", "1000"], "seq 1 100000; echo END; exit 3");
    assert_eq!(object["exit_code"], 3);
    let text = object["output"].as_str().unwrap();
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("END\n") && text.contains("bytes left out"),
        "{text}"
    );
    let whole = fs::read_to_string(object["full_output_path"].as_str().unwrap()).unwrap();
    assert_eq!(whole.len() as u64, object["output_bytes"].as_u64().unwrap());
    assert!(whole.starts_with("1\n2\n3\n") && whole.ends_with("100000\nEND\n"));
    assert_eq!(object["omitted_bytes"].as_u64().unwrap() + 1000, object["output_bytes"].as_u64().unwrap());
}

#[test]
fn bytes_pass_to_a_pipe_unchanged_and_as_text_into_the_object() {
    let home = Home::new();
    let ran = home.exec("printf 'caf\\351 \\377\\376 \\033]0;x\\007 end\\n'; exit 2").expect(2);
    assert_eq!(ran.stdout, b"caf\xe9 \xff\xfe \x1b]0;x\x07 end\n");
    let object = home.exec_json(&[], "printf 'price \\342\\202'; sleep 0.2; printf '\\254 5\\n\\377'");
    assert_eq!(object["output"], "price € 5\n\u{fffd}");
}

#[test]
fn input_is_empty_unless_it_is_passed_on() {
    let home = Home::new();
    let with = |words: &[&str], input: &[u8]| -> Ran { finish(home.command("hostel", words), input) };
    assert_eq!(with(&["exec", "--", "cat; echo done"], b"not for you").expect(0).text(), "done\n");
    assert_eq!(
        with(&["exec", "--stdin", "--", "cat; echo done"], b"for you ").expect(0).text(),
        "for you done\n"
    );
    let mebibyte = vec![b'a'; 1 << 20];
    assert_eq!(with(&["exec", "--stdin", "--", "wc -c"], &mebibyte).expect(0).text(), "1048576\n");
    assert_eq!(with(&["exec", "--stdin", "--", "head -c 3; exit 4"], &mebibyte).expect(4).text(), "aaa");
}

#[test]
fn variables_and_directory_are_for_one_call() {
    let home = Home::new().with("FROM_OUTSIDE", "o");
    fs::create_dir(home.path().join("sub")).unwrap();
    let words = [
        "exec",
        "--env",
        "A=1 2",
        "--env",
        "FROM_OUTSIDE",
        "--cwd",
        "sub",
        "--",
        "echo \"$A $FROM_OUTSIDE ${PWD##*/}\"",
    ];
    assert_eq!(home.hostel(&words).expect(0).text(), "1 2 o sub\n");
    assert_eq!(home.exec("echo ${A-unset}").text(), "unset\n");
    home.hostel(&["exec", "--env", "NOT_THERE_AT_ALL", "--", "true"]).fails(2, "`--env NOT_THERE_AT_ALL`");
    home.hostel(&["exec", "--env", "A;touch p=1", "--", "true"])
        .fails(125, "is not the name of an environment variable");
    home.hostel(&["exec", "--cwd", "$(touch pwned)", "--", "true"]).fails(126, "does not exist");
    let object = home.exec_json(&["--cwd", "/no/such"], "true");
    assert_eq!(
        (&object["exit_code"], &object["error"]["kind"]),
        (&126.into(), &"bad_cwd".into()),
        "{object}"
    );
    assert!(object["ended"].is_null(), "{object}");
    assert!(!home.path().join("pwned").exists());
}

#[test]
fn sessions_are_apart_and_ids_are_only_names() {
    let home = Home::new();
    for (task, value) in [("a/b", "1"), ("a%2fb", "2"), ("s'; touch pwned; '", "3"), ("..", "4")] {
        let _ = home.hostel(&["exec", "--task", task, "--", &format!("export V={value}")]).expect(0);
    }
    for (task, value) in
        [("a/b", "1\n"), ("a%2fb", "2\n"), ("s'; touch pwned; '", "3\n"), ("..", "4\n"), ("new", "\n")]
    {
        assert_eq!(home.hostel(&["exec", "--task", task, "--", "echo $V"]).text(), value, "{task}");
    }
    assert!(!home.path().join("pwned").exists());
}

#[test]
fn wrong_usage_is_told_before_anything_runs() {
    let home = Home::new();
    for words in [
        &["exec", "--timeout", "0", "--", "touch ran"][..],
        &["exec", "--timeout", "-1", "--", "touch ran"],
        &["exec", "--timeout", "nan", "--", "touch ran"],
        &["exec", "--max-output", "0", "--", "touch ran"],
        &["exec", "--nosuch", "--", "touch ran"],
        &["exec", "touch ran"],
    ] {
        let _ = home.hostel(words).expect(2);
    }
    assert!(!home.path().join("ran").exists());
}

#[test]
fn many_processes_at_once_share_a_task_without_loss() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for number in 1..=12 {
            let home = &home;
            scope.spawn(move || home.exec(&format!("export V{number}=1")).expect(0).text());
        }
    });
    assert_eq!(home.exec("env | grep -c '^V[0-9]*='").text(), "12\n");
}

#[test]
fn an_output_that_cannot_be_written_is_no_success() {
    let home = Home::new();
    for words in [&["exec", "--", "echo hi; exit 7"][..], &["exec", "--json", "--", "exit 7"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = home.command("hostel", words).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("error: failed to write the output: No space left on device"), "{said}");
    }
}

#[test]
fn functions_of_the_starters_do_not_stand_in_for_the_shells_own() {
    let home = Home::new();
    let mut command = home.command("hostel", &["exec", "--", "echo ran; greet"]);
    for name in ["builtin", "exec", "export", "trap"] {
        command.env(format!("BASH_FUNC_{name}%%"), "() { :; }");
    }
    command.env("BASH_FUNC_greet%%", "() { echo hello; }");
    assert_eq!(finish(command, b"").expect(0).text(), "ran\nhello\n");
}

#[test]
fn a_wrong_start_is_an_error_and_not_another_directory() {
    let home = Home::new();
    let _ = home.hostel(&["config", "set", "terminal.cwd", "/nope"]).expect(0);
    home.exec("pwd").fails(126, "the directory `/nope`, in which the session starts, does not exist");
    let _ = home.hostel(&["config", "unset", "terminal.cwd"]).expect(0);
    let gone = home.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let program = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let mut command = std::process::Command::new("bash");
    let script = format!(
        "cd '{0}' && rmdir '{0}' && '{program}' exec --cwd / -- pwd && '{program}' exec -- pwd",
        gone.display()
    );
    command.args(["-c", &script]).env("HOSTEL_HOME", home.path());
    // Only who needs it is refused.
    let ran = finish(command, b"").expect(126);
    assert_eq!(ran.stdout, b"/\n", "{ran:?}");
    let reason = format!("the directory `{}`, in which the session starts", gone.display());
    assert!(ran.stderr.contains(&reason), "{ran:?}");
}

#[test]
fn a_variable_that_cannot_be_passed_is_told_once() {
    let home = Home::new();
    let _ = home.exec("export BIG=$(head -c 200000 /dev/zero | tr '\\0' x) SMALL=s").expect(0);
    assert!(home.exec("echo $SMALL").expect(0).stderr.contains("`BIG` is too long"));
    assert_eq!(home.exec("echo $SMALL").expect(0).stderr, "");
}

#[test]
fn nothing_of_a_name_reaches_the_terminal_as_a_control() {
    let home = Home::new();
    let _ = home.exec("mkdir $'d\\e[2Jx' && cd $'d\\e[2Jx' && rmdir ../$'d\\e[2Jx'").expect(0);
    let ran = home.exec("true").expect(0);
    assert!(ran.stderr.starts_with("warning: the directory") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    let ran = home.hostel(&["exec", "--cwd", "/\u{1b}]0;x\u{7}\nsecond", "--", "true"]).expect(126);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}') && ran.stderr.lines().count() == 2, "{ran:?}");
}
