//! What a background process prints: its log, which is bounded, and what is told of it unasked.

use std::fs;

use hostel_tests::conversation::Conversation;
use hostel_tests::on_every_backend;
use hostel_tests::tidy::TidyHome;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Takes the notices that there are.
fn notices(home: &TidyHome, more: &[&str]) -> Vec<Value> {
    let words = [&["notices"], more].concat();
    home.process_json(&words)["notices"].as_array().unwrap().clone()
}

/// Waits until there are so many notices, and leaves them there. Nothing tells of one that comes.
#[track_caller]
fn noticed(home: &TidyHome, count: usize) -> Vec<Value> {
    let until = std::time::Instant::now() + hostel_tests::marked::PATIENCE;
    loop {
        let found = notices(home, &["--keep"]);
        if found.len() == count {
            return found;
        }
        assert!(std::time::Instant::now() < until, "{count} wanted, there are {found:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns these numbers, a line each.
fn seq(from: u32, to: u32) -> String {
    (from..=to).flat_map(|number| [number.to_string(), "\n".to_owned()]).collect()
}

on_every_backend! {
    fn its_log_is_bytes_to_a_pipe_and_text_in_an_object(home) {
        let script = "printf '\\360\\237'; read -r line; printf '\\230\\200 caf\\351\\n'; exit 2";
        let id = home.start(&["--stdin"], script);
        home.hear(&id, b"\xf0\x9f");
        // A character that is not all there yet is waited for.
        assert_eq!(home.process_json(&["poll", &id])["output_preview"], "");
        let log = home.process_json(&["logs", &id]);
        assert_eq!((&log["output"], &log["next_offset_bytes"]), (&json!(""), &json!(0)), "{log}");
        let _ = home.process(&["write", &id, "go", "--newline"]).expect(0);
        let waited = home.process_json(&["wait", &id]);
        assert_eq!((&waited["output"], &waited["exit_code"]), (&json!("\u{1f600} caf\u{fffd}\n"), &json!(2)));
        assert_eq!(home.process_json(&["logs", &id])["output"], "\u{1f600} caf\u{fffd}\n");
        assert_eq!(home.process(&["logs", &id]).expect(0).stdout, b"\xf0\x9f\x98\x80 caf\xe9\n");
        let rest = home.process_json(&["logs", &id, "--bytes-from", "4"]);
        assert_eq!((&rest["output"], &rest["next_offset_bytes"]), (&json!(" caf\u{fffd}\n"), &json!(10)), "{rest}");
    }

    fn what_prints_without_end_keeps_the_newest_part(home) {
        let _ = home.hostel(&["config", "set", "processes.log_max_bytes", "65536"]).expect(0);
        let id = home.start(&[], "yes 1234567");
        let dropped = |id: &str| home.process_json(&["logs", id])["dropped_bytes"].as_u64().unwrap();
        let until = std::time::Instant::now() + hostel_tests::marked::PATIENCE;
        while dropped(&id) == 0 {
            assert!(std::time::Instant::now() < until, "nothing was ever dropped");
        }
        assert_eq!(home.process_json(&["kill", &id])["status"], "killed");
        let folder = home.path().join("state/processes").join(&id);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let kept: u64 = files
            .iter()
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("log-"))
            .map(|path| fs::metadata(path).unwrap().len())
            .sum();
        assert!((1..=65536).contains(&kept), "{kept} bytes in {files:?}");
        let log = home.process_json(&["logs", &id, "--limit", "2"]);
        let (end, gone) = (log["next_offset_bytes"].as_u64().unwrap(), log["dropped_bytes"].as_u64().unwrap());
        assert_eq!((gone + kept, log["showing"].clone()), (end, json!("2 lines")), "{log}");
        // A kill may come in the middle of a line.
        assert!(log["total_lines"].as_u64().unwrap().abs_diff(end / 8) <= 1, "{log}");
        let ran = home.process(&["logs", &id, "--bytes-from", "0"]).expect(0);
        assert_eq!(ran.stdout.len() as u64, kept, "{}", ran.stderr);
        assert_eq!(ran.stderr, format!("note: {gone} bytes of the output are not kept any more\n"));
    }

    fn a_text_in_its_output_and_its_end_are_told_once(home) {
        let script = "echo starting; printf 'lis\\033[32mtening\\033[0m on 80\\n'; read -r line; exit 4";
        let id = home.start(&["--stdin", "--notify", "--watch", "listening on", "--watch", "never"], script);
        let found = noticed(home, 1);
        let told = ["session_id", "task", "kind", "patterns", "text", "omitted", "suppressed"]
            .map(|key| found[0][key].clone());
        let expected =
            json!([id, "default", "matched", ["listening on"], "listening on 80", 0, 0]);
        assert_eq!(json!(told), expected, "{found:?}");
        let _ = home.process(&["write", &id, "", "--newline"]).expect(0);
        let found = noticed(home, 2);
        let told = ["session_id", "kind", "status", "exit_code"].map(|key| found[1][key].clone());
        assert_eq!(json!(told), json!([id, "completed", "exited", 4]), "{found:?}");
        assert!(found[1]["output"].as_str().unwrap().starts_with("starting\n"), "{found:?}");
        assert_eq!(notices(home, &["--task", "other"]), [] as [Value; 0]);
        assert_eq!(notices(home, &[]).len(), 2);
        assert_eq!(notices(home, &[]), [] as [Value; 0]);
    }

    fn an_end_that_somebody_has_waited_for_is_no_news(home) {
        for verb in ["wait", "logs", "kill"] {
            let id = home.start(&["--notify"], "echo x; exit 4");
            noticed(home, 1);
            let _ = home.process(&[verb, &id]);
            assert_eq!(notices(home, &["--keep"]), [] as [Value; 0], "{verb}");
        }
        let quiet = home.start(&[], "echo x");
        let _ = home.process(&["wait", &quiet]);
        assert_eq!(notices(home, &[]), [] as [Value; 0]);
    }
}

#[test]
fn lines_are_the_last_ones_or_those_from_an_offset() {
    let home = TidyHome::new();
    let id = home.start(&[], "seq 1 500; printf 501");
    let _ = home.process(&["wait", &id]).expect(0);
    let lines = |more: &[&str]| home.process(&[&["logs", &id], more].concat()).expect(0).text();
    assert_eq!(lines(&[]), format!("{}501", seq(302, 500)));
    assert_eq!(lines(&["--limit", "2"]), "500\n501");
    assert_eq!(lines(&["--offset", "10", "--limit", "3"]), seq(11, 13));
    assert_eq!(lines(&["--offset", "501"]), "");
    assert_eq!(lines(&["--offset", "100000"]), "");
    assert_eq!(lines(&["--bytes-from", "0"]), format!("{}501", seq(1, 500)));
    assert_eq!(lines(&["--bytes-from", "1891"]), format!("{}501", &seq(500, 500)[3..]));
    assert_eq!(lines(&["--bytes-from", "99999"]), "");
    let log = home.process_json(&["logs", &id, "--offset", "499"]);
    assert_eq!(
        (&log["output"], &log["showing"], &log["total_lines"], &log["next_offset_bytes"]),
        (&json!("500\n501"), &json!("2 lines"), &json!(501), &json!(1895)),
        "{log}"
    );
    let preview = home.process_json(&["poll", &id])["output_preview"].as_str().unwrap().to_owned();
    assert!(preview.chars().count() == 1000 && preview.ends_with("500\n501"), "{preview}");
}

#[test]
fn a_follower_hears_everything_and_ends_with_the_process() {
    let home = TidyHome::new();
    let id = home.start(&["--stdin"], "seq 1 50000; read -r line; echo \"last $line\"; exit 5");
    let mut follower = home.follow(&id);
    follower.hear("50000\n");
    let other = Conversation::begin(
        home.command("hostel", &["process", "logs", "--follow", "--bytes-from", "0", &id]),
    );
    let _ = home.process(&["write", &id, "one", "--newline"]).expect(0);
    follower.hear("last one\n");
    let ran = follower.finish().expect(0);
    assert!(ran.text().ends_with("\n50000\nlast one\n"), "{}", ran.text().len());
    let expected = seq(1, 50_000);
    assert!(other.finish().expect(0).text() == format!("{expected}last one\n"));
    let id = home.start(&[], "echo up; sleep 100");
    let mut follower = home.follow(&id);
    follower.hear("up\n");
    follower.signal(Signal::INT);
    // A pipe's follower ends as any filter does.
    assert_eq!(follower.finish().code, -1);
    assert_eq!(home.process_json(&["poll", &id])["status"], "running");
}

#[test]
fn a_reader_that_leaves_or_does_not_read_holds_up_no_process() {
    let home = TidyHome::new();
    let id = home.start(&[], "seq 1 300000; exit 6");
    // It never reads on.
    let stuck = home.follow(&id);
    assert_eq!(home.process(&["wait", &id, "--timeout", "20"]).expect(6).stderr, "");
    drop(stuck);
    let log = home.process_json(&["logs", &id, "--limit", "1"]);
    assert_eq!((&log["output"], &log["total_lines"]), (&json!("300000\n"), &json!(300_000)), "{log}");
}

#[test]
fn what_matches_without_end_is_told_little() {
    let home = TidyHome::new();
    let id = home.start(&["--watch", "up"], "seq -f 'up %.0f' 1 20000; exit 3");
    let _ = home.process(&["wait", &id]).expect(3);
    let found = notices(&home, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.starts_with("up 1\n") && text.lines().count() <= 20, "{text}");
}
