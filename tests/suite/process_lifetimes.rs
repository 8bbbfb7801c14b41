//! What ends a background process besides itself: its task, a lease, the program that started it, a keeper that is killed, and
//! how many there may be.

use hostel::processes::{Lifetime, Processes, StartRequest};
use hostel_tests::marked::{Mark, PATIENCE};
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

fn now() -> f64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
}

on_every_backend! {
    fn its_tasks_cleanup_ends_it_and_no_others(home) {
        let (ours, theirs) = (Mark::new(), Mark::new());
        let id = home.start(&["--task", "a"], &format!("setsid sleep {ours} & sleep {ours}"));
        let other = home.start(&["--task", "ab"], &format!("exec sleep {theirs}"));
        ours.appear(2);
        theirs.appear(1);
        let done = home.hostel(&["env", "cleanup", "a", "--json"]).expect(0).json();
        let expected = json!([{
            "ok": true, "task": "a", "backend": home.backend(), "ended": [id], "left": [], "warnings": [],
            "error": null, "hint": null
        }]);
        assert_eq!(done, expected);
        ours.expect_gone();
        home.process(&["poll", &id]).fails(1, "there is no process");
        assert_eq!(home.process_json(&["poll", &other])["status"], "running");
        assert_eq!(theirs.pids().len(), 1);
    }

    fn a_detached_one_outlives_its_task_and_keeps_it_unless_forced(home) {
        let (kept, ended) = (Mark::new(), Mark::new());
        let id = home.start(&["--lifetime", "detached"], &format!("exec sleep {kept}"));
        let of_task = home.start(&[], &format!("exec sleep {ended}"));
        kept.appear(1);
        ended.appear(1);
        let refusal = format!("detached background processes are alive in it: `{id}`");
        home.hostel(&["env", "cleanup", "default"]).fails(1, &refusal);
        assert_eq!(home.process_json(&["poll", &id])["status"], "running");
        let states = home.hostel(&["env", "list", "--json"]).json();
        assert_eq!(states[0]["state"], "background", "{states}");
        let done = home.hostel(&["env", "cleanup", "default", "--force", "--json"]).expect(0).json();
        assert_eq!((&done[0]["ok"], &done[0]["left"]), (&json!(true), &json!([id])), "{done}");
        ended.expect_gone();
        home.process(&["poll", &of_task]).fails(1, "there is no process");
        assert_eq!(kept.pids().len(), 1);
        assert_eq!(home.process_json(&["kill", &id])["status"], "killed");
        kept.expect_gone();
    }

    fn a_keeper_that_is_killed_takes_its_command_along(home) {
        let mark = Mark::new();
        let command = format!("echo up; setsid sleep {mark} & (setsid sh -c 'sleep {mark} & exit' &) ; sleep {mark}");
        let id = home.start(&["--notify"], &command);
        home.hear(&id, "up\n");
        mark.appear(3);
        kill_process(home.keeper(&id), Signal::KILL).unwrap();
        // Before anybody looks for it.
        mark.expect_gone();
        let seen = home.process_json(&["poll", &id]);
        assert_eq!((&seen["status"], &seen["completion_reason"]), (&json!("lost"), &json!("lost")), "{seen}");
        assert!(seen.get("exit_code").is_none() && seen["error"]["kind"] == "lost", "{seen}");
        assert!(home.process(&["wait", &id]).expect(125).stderr.starts_with("error: "));
        assert_eq!(home.process_json(&["kill", &id])["status"], "already_exited");
        assert_eq!(home.process(&["logs", &id]).expect(0).text(), "up\n");
        // Its environment is none the worse for it.
        assert_eq!(home.exec("echo again").expect(0).text(), "again\n");
        let _ = home.hostel(&["env", "cleanup", "default"]).expect(0);
        assert_eq!(home.processes(), [] as [Value; 0]);
    }

    fn a_keeper_that_is_asked_to_end_ends_its_command_first(home) {
        let mark = Mark::new();
        let id = home.start(&[], &format!("setsid sleep {mark} & sleep {mark}"));
        mark.appear(2);
        kill_process(home.keeper(&id), Signal::TERM).unwrap();
        let waited = home.process_json(&["wait", &id]);
        assert_eq!(waited["completion_reason"], "killed", "{waited}");
        mark.expect_gone();
    }
}

#[test]
fn a_lease_ends_it_unless_it_is_renewed() {
    let home = TidyHome::new();
    let (short, long) = (Mark::new(), Mark::new());
    let begun = now();
    let id = home.start(&["--lifetime", "lease", "--lease", "1.5"], &format!("sleep {short}"));
    let renewed = home.start(&["--lifetime", "lease", "--lease", "1.5"], &format!("sleep {long}"));
    let until = home.process_json(&["poll", &id])["lease_until"].as_f64().unwrap();
    assert!((begun + 1.5..now() + 1.5).contains(&until), "{until}");
    let told = home.process_json(&["renew", &renewed, "--lease", "1000"]);
    let until = told["lease_until"].as_f64().unwrap();
    assert!(told["status"] == "ok" && (begun + 1000.0..now() + 1000.0).contains(&until), "{told}");
    let waited = home.process_json(&["wait", &id]);
    assert_eq!(
        (&waited["completion_reason"], &waited["termination_source"]),
        (&json!("killed"), &json!("lease")),
        "{waited}"
    );
    assert!(now() >= begun + 1.5);
    short.expect_gone();
    assert_eq!(home.process_json(&["poll", &renewed])["status"], "running");
    // Without a length it gets what it was given last.
    let again = home.process_json(&["renew", &renewed])["lease_until"].as_f64().unwrap();
    assert!((until..now() + 1000.0).contains(&again), "{again}");
    let ran = home.process(&["renew", "--json", &id]).expect(1);
    assert_eq!(ran.json()["kind"], "already_exited");
    let _ = home.hostel(&["env", "cleanup", "default"]).expect(0);
    long.expect_gone();
}

#[test]
fn one_of_the_host_does_not_outlive_it() {
    let home = TidyHome::new();
    home.set_config("terminal: {auto_source_bashrc: false}\n");
    let (of_host, of_task) = (Mark::new(), Mark::new());
    let processes = Processes::new(hostel::home::Home::at(home.path().to_owned()).unwrap());
    let start = |mark: &Mark, lifetime| {
        let command = format!("setsid sleep {mark} & sleep {mark}");
        let request = StartRequest { command, task: "t".into(), lifetime, ..StartRequest::default() };
        processes.start(&request).unwrap()
    };
    let (host, task) = (start(&of_host, Lifetime::Host), start(&of_task, Lifetime::Task));
    of_host.appear(2);
    of_task.appear(2);
    assert!(host.link.is_some() && task.link.is_none());
    let id = host.record.id.to_string();
    // As the kernel does when a host ends, however it does.
    drop(host);
    let waited = processes.wait(&id, Some(PATIENCE), None).unwrap();
    of_host.expect_gone();
    let waited = serde_json::to_value(waited).unwrap();
    assert_eq!(
        (&waited["completion_reason"], &waited["termination_source"]),
        (&json!("killed"), &json!("lifetime")),
        "{waited}"
    );
    let other = task.record.id.to_string();
    drop(task);
    assert_eq!(home.process_json(&["poll", &other])["status"], "running");
    assert_eq!(of_task.pids().len(), 2);
}

#[test]
fn there_are_no_more_than_may_be() {
    let home = TidyHome::new();
    assert_eq!(home.hostel(&["config", "get", "processes.max_running"]).expect(0).text(), "64\n");
    let ids: Vec<String> = std::thread::scope(|scope| {
        let home = &home;
        let many = move || (0..16).map(|_| home.start(&[], "exec sleep 100")).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(many)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    home.process(&["start", "--", "true"]).fails(1, "64 processes are running, which is the most that may");
    let told = home.process(&["start", "--json", "--", "true"]).expect(1).json();
    assert_eq!(told["kind"], "quota", "{told}");
    assert_eq!(home.processes().len(), 64);
    // One that has ended makes room at once.
    assert_eq!(home.process_json(&["kill", &ids[7]])["status"], "killed");
    let id = home.start(&[], "exit 3");
    let _ = home.process(&["wait", &id]).expect(3);
    let id = home.start(&[], "exit 4");
    let _ = home.process(&["wait", &id]).expect(4);
    let done = home.hostel(&["env", "cleanup", "default", "--json"]).expect(0).json();
    assert_eq!(done[0]["ended"].as_array().unwrap().len(), 63, "{done}");
    assert_eq!(home.processes(), [] as [Value; 0]);
}

#[test]
fn what_has_ended_is_forgotten_after_a_while() {
    let home = TidyHome::new();
    let _ = home.hostel(&["config", "set", "processes.keep_finished_s", "0.001"]).expect(0);
    let running = home.start(&[], "sleep 100");
    let id = home.start(&[], "true");
    // Its keeper forgets it, or the list does.
    let _ = home.process(&["wait", &id]);
    let until = std::time::Instant::now() + PATIENCE;
    while home.processes().len() > 1 {
        assert!(std::time::Instant::now() < until, "{:?}", home.processes());
    }
    assert_eq!(home.processes()[0]["session_id"], running);
    let folder = home.path().join("state/processes").join(&id);
    while folder.exists() {
        assert!(std::time::Instant::now() < until, "{}", folder.display());
    }
}
