//! Faults of the agent whose tools these are, as its users have reported them: none of them is ours.
//!
//! The number is that of the report, the words say what went wrong. Where another test shows it already, the number stands there.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::mcp_http::McpHttp;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{Home, built, by_both_roads, finish, is_root, on_every_backend};
use serde_json::{Value, json};

by_both_roads! {
    a_child_that_holds_the_output_does_not_hide_the_end login_files_cannot_take_programs_away
    the_ordinary_keys_of_a_cloud_stay no_spelling_gets_past_a_person the_calls_of_a_script_need_a_person_too
    settings_of_another_backend_stop_nothing
}

#[track_caller]
fn sh(home: &Home, command: &str) -> Value {
    home.tool("terminal", &json!({ "command": command }))
}

#[track_caller]
fn prints(home: &Home, command: &str, output: &str) {
    let value = sh(home, command);
    assert_eq!(json!([value["exit_code"], value["output"]]), json!([0, output]), "{value}");
}

fn write(home: &Home, name: &str, text: &str, mode: u32) {
    fs::write(home.path().join(name), text).unwrap();
    fs::set_permissions(home.path().join(name), Permissions::from_mode(mode)).unwrap();
}

// upstream #17327: a background process had ended, and was shown as running as long as a child of it held the pipe of its output
fn a_child_that_holds_the_output_does_not_hide_the_end(road: Road) {
    let home = TidyHome::new().by(road);
    let mark = Mark::new();
    let command = format!("sleep {mark} & echo done; exit 3");
    let started = home.tool("terminal", &json!({ "command": command, "background": true }));
    let act = |action: &str| {
        home.tool("process", &json!({ "action": action, "session_id": started["session_id"] }))
    };
    let waited = act("wait");
    assert_eq!(
        json!([waited["status"], waited["exit_code"], waited["output"]]),
        json!(["exited", 3, "done\n"])
    );
    let seen = act("poll");
    assert_eq!(json!([seen["status"], seen["exit_code"]]), json!(["exited", 3]), "{seen}");
    assert_eq!(mark.pids().len(), 1, "its child held the output all the time");
}

// upstream #71893, #56634: the login files set `PATH` anew, and the programs that the host had found were gone from every command
fn login_files_cannot_take_programs_away(road: Road) {
    let path = std::env::var("PATH").unwrap();
    let home = TidyHome::new().by(road);
    let programs = home.path().join("programs");
    let home = home.with("PATH", &format!("{}:{path}", programs.display()));
    fs::create_dir(&programs).unwrap();
    write(&home, "programs/only-here", "#!/bin/sh\necho found\n", 0o755);
    for file in [".bash_profile", ".bashrc"] {
        write(&home, file, "export PATH=/nowhere LOGIN=read\n", 0o644);
    }
    prints(&home, "echo $LOGIN; only-here; cat /dev/null && echo whole", "read\nfound\nwhole\n");
    prints(&home, "only-here", "found\n");
    // What a command of the agent's own does is another thing, and lasts.
    prints(&home, "export PATH=/usr/bin:/bin", "");
    assert_eq!(sh(&home, "only-here")["exit_code"], 127);
}

#[test]
// upstream #65583: a session whose directory could not be entered any more could run nothing
fn a_directory_that_is_closed_gives_way_to_one_above_it() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    chown(home.path(), Some(65534), Some(65534)).unwrap();
    let program = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    let run = |command: &str| {
        let mut ran = Command::new("setpriv");
        ran.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
        ran.args(["exec", "--", command]).env("HOSTEL_HOME", home.path()).env("HOME", home.path());
        ran.current_dir(home.path()).env_remove("HOSTEL_CALL");
        finish(ran, b"").expect(0)
    };
    let _ = run("mkdir -p a/b && cd a/b");
    fs::set_permissions(home.path().join("a"), Permissions::from_mode(0o0)).unwrap();
    let ran = run("pwd");
    assert_eq!(ran.text(), format!("{}\n", home.path().display()));
    assert!(ran.stderr.contains("/a/b` is gone; this command ran in"), "{ran:?}");
    fs::set_permissions(home.path().join("a"), Permissions::from_mode(0o755)).unwrap();
}

// upstream #55878: the keys by which programs of a cloud work were taken out of the environment along with those of the host's own
fn the_ordinary_keys_of_a_cloud_stay(road: Road) {
    let home = TidyHome::new().by(road).with("MODAL_TOKEN_SECRET", "of-the-host");
    let home = home
        .with("AWS_ACCESS_KEY_ID", "plain-id")
        .with("AWS_SECRET_ACCESS_KEY", "plain-key")
        .with("AWS_PROFILE", "p");
    let question = "[ \"$AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY $AWS_PROFILE\" = 'plain-id plain-key p' ] && echo kept; \
                    echo ${MODAL_TOKEN_SECRET-hidden}";
    prints(&home, question, "kept\nhidden\n");
}

fn gate(home: &Home, tools: &str) {
    let _ = home.hostel(&["config", "set", "approvals.tools", tools]).expect(0);
}

#[track_caller]
fn waits(value: &Value) {
    assert_eq!(json!([value["status"], value["exit_code"]]), json!(["pending_approval", -1]), "{value}");
}

// upstream #104308: a rule for `sudo *` let `/usr/bin/sudo` through
// upstream #36846, #30100: what a rule forbids was run in another spelling
// upstream #91002: in a container nobody was asked, whatever the user's own rules said
fn no_spelling_gets_past_a_person(road: Road) {
    for backend in ["local", "acmebox", "bubblewrap"] {
        let Some(home) = TidyHome::on(backend, "process").map(|home| home.by(road)) else { continue };
        gate(&home, "terminal");
        for command in [
            "sudo touch ran",
            "/usr/bin/sudo touch ran",
            "s\\udo touch ran",
            "$(echo sudo) touch ran",
            "env sudo touch ran",
            "bash -c 'touch ran'",
            "echo dG91Y2ggcmFu | base64 -d | sh",
            "touch${IFS}ran",
            "$'\\x74ouch' ran",
        ] {
            waits(&sh(&home, command));
            waits(&home.tool("terminal", &json!({ "command": command, "background": true })));
        }
        assert_eq!(home.processes(), [] as [Value; 0]);
        home.hang_up();
        gate(&home, "[]");
        prints(&home, "ls ran 2>/dev/null; echo none", "none\n");
    }
}

// upstream #41, #30101: a script could do what the agent was not allowed to, since nobody was asked about it or about its calls
fn the_calls_of_a_script_need_a_person_too(road: Road) {
    let home = TidyHome::new().by(road);
    let code = "hostel_tools terminal '{\"command\": \"touch ran\"}'";
    let execute = || home.tool("execute_code", &json!({ "code": code, "language": "bash" }));
    gate(&home, "execute_code");
    let value = execute();
    assert_eq!(json!([value["status"], value["tool_calls_made"]]), json!(["pending_approval", 0]), "{value}");
    home.hang_up();
    gate(&home, "terminal");
    let value = execute();
    assert!(value["output"].as_str().unwrap().contains("pending_approval"), "{value}");
    assert!(!home.path().join("ran").exists());
    home.hang_up();
    gate(&home, "[]");
    assert_eq!(execute()["tool_calls_made"], 1);
    assert!(home.path().join("ran").exists());
}

// upstream #25402: what stood in the configuration for docker kept commands from running by ssh
fn settings_of_another_backend_stop_nothing(road: Road) {
    let home = TidyHome::on("acmebox", "process").unwrap().by(road);
    let broken = |backend: &str| {
        format!(
            "terminal:\n  backend: {backend}\n  docker: {{image: [], network: perhaps, volumes: 7}}\n  ssh: none\n\
             \x20 docker_image: 5\n  backends: {{nosuch: {{x: [1]}}, other: 7}}\nplugins: {{enabled: [acmebox]}}\n"
        )
    };
    for backend in ["local", "acmebox"] {
        home.set_config(broken(backend));
        home.hang_up();
        prints(&home, "echo runs", "runs\n");
    }
    // It is told all the same, and of the backend itself nothing is passed over.
    let told = home.hostel(&["config", "check"]).expect(1).text();
    for key in [
        "`terminal.docker.image`",
        "`terminal.docker.network`",
        "`terminal.ssh`",
        "`terminal.backends.other`",
    ] {
        assert!(told.contains(key), "{key}: {told}");
    }
    home.set_config("terminal: {backend: acmebox, backends: {acmebox: 7}}\nplugins: {enabled: [acmebox]}\n");
    home.exec("true").fails(125, "`terminal.backends.acmebox`");
}

#[test]
// upstream #29186: a variable in `.env` that nobody remembered beat what the configuration said
fn a_file_of_secrets_does_not_select_the_backend() {
    let home = TidyHome::on("acmebox", "process").unwrap();
    let _ = home.hostel(&["config", "set", "terminal.backend", "local"]).expect(0);
    write(&home, ".env", "HOSTEL_TERMINAL_BACKEND=acmebox\nTERMINAL_ENV=acmebox\nOTHER=told\n", 0o600);
    let ran = home.exec("echo in=$ACMEBOX").expect(0);
    assert_eq!(ran.text(), "in=\n");
    assert_eq!(
        ran.stderr,
        "warning: `HOSTEL_TERMINAL_BACKEND` in `.env` is not used: set `terminal.backend`\n"
    );
    // Whoever starts it can still say so.
    let mut command = home.command("hostel", &["exec", "--", "echo in=$ACMEBOX"]);
    command.env("HOSTEL_TERMINAL_BACKEND", "acmebox");
    let ran = finish(command, b"").expect(0);
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("in=1\n", ""));
}

#[test]
// upstream #66019, #63141: some ways in did not read the configuration, and ran their commands on the host itself
fn every_way_in_runs_where_the_configuration_says() {
    let home = TidyHome::on("acmebox", "process").unwrap();
    let (question, call) = ("echo in=$ACMEBOX", json!({ "command": "echo in=$ACMEBOX" }));
    assert_eq!(home.exec(question).expect(0).text(), "in=1\n");
    let words = ["tool", "terminal", "--json", &call.to_string()];
    assert_eq!(home.hostel(&words).expect(0).json()["output"], "in=1\n");
    let mut shell = Conversation::begin(home.command("hostel", &["shell"]));
    shell.say(&format!("{question}\n"));
    shell.hear("in=1\n");
    let _ = shell.finish().expect(0);
    home.hear(&home.start(&[], question), "in=1\n");
    home.with_server("stdio", |server| assert_eq!(server.call("terminal", &call)["output"], "in=1\n"));
    let mut server = McpHttp::begin(home.command("hostel", &["mcp", "--http", "127.0.0.1:0"]));
    assert_eq!(server.call("terminal", &call)["output"], "in=1\n");
    let code =
        json!({ "language": "bash", "code": "hostel_tools terminal '{\"command\": \"echo in=$ACMEBOX\"}'" });
    let value = server.call("execute_code", &code);
    assert!(value["output"].as_str().unwrap().contains("in=1\\n"), "{value}");
    let started = server.call("terminal", &json!({ "command": question, "background": true }));
    home.hear(started["session_id"].as_str().unwrap(), "in=1\n");
}

on_every_backend! {
    // upstream #96268: variables of commands stood in arguments, where every user of the machine can read them
    fn a_variable_is_in_no_list_of_arguments(home) {
        let value = format!("zq-{}-zq", Mark::new());
        let mark = Mark::new();
        // Not itself in an argument.
        let command = home.command("hostel", &["exec", "--stdin", "--", "read -r KEPT; export KEPT"]);
        let _ = finish(command, format!("{value}\n").as_bytes()).expect(0);
        let mut running = Conversation::begin(home.command("hostel", &["exec", "--", &format!("echo ${{#KEPT}}; exec sleep {mark}")]));
        running.hear(format!("{}\n", value.len()));
        mark.appear(1);
        let mut seen = 0;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(arguments) = fs::read(entry.path().join("cmdline")) else { continue };
            seen += 1;
            assert!(!String::from_utf8_lossy(&arguments).contains(&value), "{}", entry.path().display());
        }
        assert!(seen > 1);
    }
}

#[test]
// upstream #65051: inside of a container the doctor took every backend for the machine's own
fn the_doctor_speaks_of_the_backend_that_is_selected_wherever_it_runs() {
    let home = TidyHome::on("acmebox", "process").unwrap();
    for words in [&["doctor", "--json"][..], &["status", "--json"], &["backends", "--json"]] {
        let inside = || {
            let mut command = home.command("hostel", words);
            command.env("container", "docker").env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
            finish(command, b"").expect(0).text()
        };
        assert!(inside().contains("acmebox"), "{words:?}: {}", inside());
    }
    let status = home.hostel(&["status"]).expect(0).text();
    assert!(status.contains("acmebox"), "{status}");
}

#[test]
// upstream #76577: the path of a file on the host was told to an agent whose commands could not see it
fn a_whole_output_is_had_where_its_path_leads_nowhere() {
    for backend in ["acmebox", "bubblewrap"] {
        let Some(home) = TidyHome::on(backend, "process") else { continue };
        home.with_server("default", |server| {
            let value = server.call("terminal", &json!({ "command": "seq 1 60000" }));
            let note = value["truncation_note"].as_str().unwrap();
            assert!(note.contains("Hostel's own machine") && note.contains("hostel://output/"), "{note}");
            let name = value["full_output_path"].as_str().unwrap().rsplit('/').next().unwrap();
            let read = server.ask("resources/read", &json!({ "uri": format!("hostel://output/{name}") }));
            let text = read["result"]["contents"][0]["text"].as_str().unwrap();
            assert!(text.starts_with("1\n2\n") && text.ends_with("59999\n60000\n"), "{read}");
        });
    }
}
