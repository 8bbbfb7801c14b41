//! `hostel env`: the environments that tasks have left, and their cleanup.

use hostel_tests::conversation::Conversation;
use hostel_tests::marked::Mark;
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use serde_json::{Value, json};

fn list(home: &TidyHome) -> Vec<Value> {
    home.hostel(&["env", "list", "--json"]).expect(0).json().as_array().unwrap().clone()
}

/// Begins a call of `task`, and returns it once its command runs.
fn in_flight(home: &TidyHome, task: &str, command: &str) -> Conversation {
    let command = format!("echo up; {command}");
    let words = ["exec", "--stdin", "--task", task, "--", &command];
    let mut call = Conversation::begin(home.command("hostel", &words));
    call.hear("up\n");
    call
}

on_every_backend! {
    fn a_call_in_flight_keeps_its_environment_unless_forced(home) {
        let mark = Mark::new();
        let call = in_flight(home, "b", "cat; echo over; exit 3");
        let row = list(home).remove(0);
        let told = [&row["task"], &row["backend"], &row["state"], &row["idle_s"]];
        assert_eq!(told, [&json!("b"), &json!(home.backend()), &json!("busy"), &json!(0)], "{row}");
        home.hostel(&["env", "cleanup", "b"]).fails(1, "a call is in flight in it");
        let done = home.hostel(&["env", "cleanup", "--all", "--json"]).expect(1).json();
        assert_eq!(done[0]["ok"], false, "{done}");
        assert_eq!(home.hostel(&["env", "cleanup", "--idle", "0", "--json"]).expect(0).json(), json!([]));
        let ran = call.finish().expect(3);
        assert_eq!(ran.text(), "up\nover\n", "{ran:?}");
        assert_eq!(list(home)[0]["state"], "idle");
        let call = in_flight(home, "b", &format!("sleep {mark}; echo never"));
        mark.appear(1);
        let done = home.hostel(&["env", "cleanup", "b", "--force", "--json"]).expect(0).json();
        assert_eq!(done[0]["ok"], true, "{done}");
        mark.expect_gone();
        let ran = call.finish();
        assert!(ran.code != 0 && !ran.text().contains("never"), "{ran:?}");
        assert_eq!(home.hostel(&["exec", "--task", "b", "--", "echo anew"]).expect(0).text(), "anew\n");
    }

    fn a_cleanup_forgets_all_of_one_task_and_nothing_of_another(home) {
        for task in ["a", "a/b", "", "..", "ä ö"] {
            let command = "export A=1; touch kept; mkdir -p sub; cd sub";
            let _ = home.hostel(&["exec", "--task", task, "--", command]).expect(0);
        }
        let rows = list(home);
        let tasks: Vec<&str> = rows.iter().map(|row| row["task"].as_str().unwrap()).collect();
        assert_eq!(tasks, ["", "..", "a", "a/b", "ä ö"]);
        let _ = home.hostel(&["env", "cleanup", "a/b", ".."]).expect(0);
        assert_eq!(list(home).len(), 3);
        let seen = |task: &str| home.hostel(&["exec", "--task", task, "--", "echo \"[$A] ${PWD##*/}\""]).text();
        assert_eq!(seen("a"), "[1] sub\n");
        assert!(seen("a/b").starts_with("[] "), "{}", seen("a/b"));
        // Each environment has an id that no other has had.
        let id = |rows: &[Value], task: &str| {
            rows.iter().find(|row| row["task"] == task).map(|row| row["id"].clone()).unwrap()
        };
        let now = list(home);
        assert_eq!(id(&now, "a"), id(&rows, "a"));
        assert_ne!(id(&now, "a/b"), id(&rows, "a/b"));
        let _ = home.hostel(&["env", "cleanup", "--all"]).expect(0);
        assert_eq!(list(home), [] as [Value; 0]);
    }

    fn a_cleanup_ends_what_calls_have_left_with_an_ampersand(home) {
        let (left, other) = (Mark::new(), Mark::new());
        let command = format!("setsid sleep {left} >/dev/null 2>&1 & sleep {left} & disown; echo left");
        assert_eq!(home.hostel(&["exec", "--task", "k", "--", &command]).expect(0).text(), "left\n");
        let command = format!("sleep {other} & echo left");
        assert_eq!(home.hostel(&["exec", "--task", "k2", "--", &command]).expect(0).text(), "left\n");
        // Each command of a sandbox takes along what it has started.
        let lasts = usize::from(home.backend() != "bubblewrap");
        left.appear(2 * lasts);
        other.appear(lasts);
        let _ = home.hostel(&["env", "cleanup", "k"]).expect(0);
        left.expect_gone();
        assert_eq!(other.pids().len(), lasts);
        let _ = home.hostel(&["env", "cleanup", "k2"]).expect(0);
        other.expect_gone();
    }
}

#[test]
fn what_is_not_there_cannot_be_cleaned_up() {
    let home = TidyHome::new();
    home.hostel(&["env", "cleanup", "nosuch"]).fails(1, "there is no environment of task `nosuch`");
    let _ = home.exec("export A=1").expect(0);
    home.hostel(&["env", "cleanup", "default", "--backend", "acmebox"]).fails(1, "on `acmebox`");
    // One that is not there keeps the others as they are.
    home.hostel(&["env", "cleanup", "default", "nosuch"]).fails(1, "`nosuch`");
    assert_eq!(home.exec("echo $A").text(), "1\n");
    assert_eq!(home.hostel(&["env", "cleanup", "--idle", "1000"]).expect(0).text(), "");
    for words in [&["env", "cleanup"][..], &["env", "cleanup", "--all", "x"], &["env"]] {
        let _ = home.hostel(words).expect(2);
    }
    assert_eq!(list(&home).len(), 1);
}

#[test]
fn the_environment_of_a_plugin_that_is_gone_is_cleaned_up_by_force_only() {
    let home = TidyHome::on("acmebox", "process").unwrap();
    let _ = home.exec("touch kept").expect(0);
    let _ = home.hostel(&["config", "unset", "terminal.backend"]).expect(0);
    let _ = home.hostel(&["plugins", "disable", "acmebox"]).expect(0);
    home.hostel(&["env", "cleanup", "default"]).fails(1, "acmebox");
    assert_eq!(list(&home).len(), 1);
    let done = home.hostel(&["env", "cleanup", "default", "--force", "--json"]).expect(0).json();
    assert_eq!((&done[0]["ok"], done[0]["warnings"].as_array().unwrap().len()), (&json!(true), 1), "{done}");
    assert_eq!(list(&home), [] as [Value; 0]);
}
