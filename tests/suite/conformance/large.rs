//! However much a command prints, it costs the host no more memory, and nothing of what was promised is lost.

use std::time::Duration;

use hostel::processes::Status;
use hostel_tests::call::Call;
use hostel_tests::kernel::{eventually, files, peak, peaks_below, reset_peak};
use hostel_tests::provider::{LOG_LIMIT, Subject};

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("large-flood", "of a flood head and tail are kept, and the whole is in a file", flood),
    case(
        "large-memory",
        "sixteen times the output costs no more memory, nor more of the disk than it may",
        memory,
    ),
    case("large-endless", "an endless output ends at the limit", endless),
    case("large-streams", "both streams are read, in the order written", streams),
    case("large-lines", "neither a long line nor many short ones are too many", lines),
    case("large-together", "two floods at once do not mix", together),
    case("large-log", "a background process's log has a limit, and keeps what is newest", log),
];

const MEBIBYTE: u64 = 1024 * 1024;

fn flood(s: &Subject) {
    let _ = s.run("true").prints("");
    reset_peak();
    let before = peak();
    let script = "echo BEGIN; head -c 50331648 /dev/zero | tr '\\0' q; echo; echo END; exit 3";
    let ran = s.run(Call::new(script).kept_only(50_000)).exits(3);
    let grown = peak().saturating_sub(before);
    assert!(grown < 24 * MEBIBYTE, "the host has grown by {grown} bytes: {ran:?}");
    assert_eq!(ran.kept.total, 48 * MEBIBYTE + 11, "{ran:?}");
    let text = &ran.kept.text;
    assert!(
        text.starts_with("BEGIN\nqq") && text.ends_with("q\nEND\n") && text.len() < 51_000,
        "{}",
        text.len()
    );
    assert!(text.contains(&format!("{} of {} bytes left out", ran.kept.omitted, ran.kept.total)), "{ran:?}");
    let whole = ran.kept.path.clone().unwrap();
    assert_eq!(std::fs::metadata(&whole).unwrap().len(), ran.kept.total, "{ran:?}");
    std::fs::remove_file(whole).unwrap();
}

/// What ten gigabytes would cost shows in the difference between these.
fn memory(s: &Subject) {
    const CAP: u64 = 8 * MEBIBYTE;
    let costs = |mebibytes: u64| {
        reset_peak();
        let before = (peak(), peaks_below());
        let script = format!("head -c {} /dev/zero; exit 3", mebibytes * MEBIBYTE);
        let call = Call::new(script).limit(120_000).kept_only(50_000).spilled_only(CAP);
        let ran = s.run(call).exits(3);
        assert_eq!(ran.kept.total, mebibytes * MEBIBYTE, "{ran:?}");
        let whole = ran.kept.path.clone().unwrap();
        assert_eq!(std::fs::metadata(&whole).unwrap().len(), CAP, "{ran:?}");
        assert!(ran.kept.warnings.iter().any(|line| line.contains("holds only the first")), "{:?}", ran.kept);
        std::fs::remove_file(whole).unwrap();
        let grown = |pid: i32, bytes: u64| {
            let known = before.1.iter().find(|(known, _)| *known == pid);
            bytes.saturating_sub(known.map_or(bytes, |known| known.1))
        };
        let below = peaks_below().into_iter().map(|(pid, bytes)| grown(pid, bytes)).max();
        (peak().saturating_sub(before.0), below.unwrap_or(0))
    };
    let _ = costs(16);
    let (some, much) = (costs(64), costs(1024));
    eprintln!(
        "64 MiB of output cost {some:?} bytes of the host's and of a worker's memory, and 1 GiB {much:?}"
    );
    assert!(much.0 < some.0 + 4 * MEBIBYTE && much.0 < 24 * MEBIBYTE, "the host: {some:?}, {much:?}");
    assert!(much.1 < some.1 + 4 * MEBIBYTE && much.1 < 24 * MEBIBYTE, "a worker: {some:?}, {much:?}");
}

fn endless(s: &Subject) {
    reset_peak();
    let before = peak();
    let ran = s.run(Call::new("yes | head -c 400000000").kept_only(10_000).limit(500));
    // A fast machine may come to the end of that.
    let ran =
        if ran.code == 0 { s.run(Call::new("yes").kept_only(10_000).limit(500)) } else { ran }.times_out(500);
    let grown = peak().saturating_sub(before);
    assert!(grown < 24 * MEBIBYTE, "the host has grown by {grown} bytes: {ran:?}");
    assert!(ran.kept.total > MEBIBYTE && ran.kept.text.starts_with("y\ny\n"), "{ran:?}");
    std::fs::remove_file(ran.kept.path.unwrap()).unwrap();
    let _ = s.run("echo next").prints("next\n").prompt();
}

fn streams(s: &Subject) {
    let ran = s.run("head -c 500000 /dev/zero | tr '\\0' e >&2; echo out-done").exits(0).prompt();
    assert!(ran.output.len() == 500_009 && ran.text().ends_with("eout-done\n"), "{ran:?}");
    let wanted = (1..=50).fold(String::new(), |text, i| text + &format!("o{i}\ne{i}\n"));
    let _ = s.run("for i in $(seq 50); do echo o$i; echo e$i >&2; done").prints(&wanted);
    let _ = s.run("echo a >&2; printf b; echo c >&2; sh -c 'echo d; echo e >&2'").prints("a\nbc\nd\ne\n");
}

fn lines(s: &Subject) {
    let ran = s.run("head -c 3145728 /dev/zero | tr '\\0' l; exit 2").exits(2);
    assert!(ran.output.len() == 3 << 20 && ran.output.iter().all(|byte| *byte == b'l'), "{ran:?}");
    let ran = s.run("yes '' | head -n 400000").exits(0);
    assert_eq!(ran.output.len(), 400_000, "{ran:?}");
}

fn together(s: &Subject) {
    std::thread::scope(|scope| {
        for letter in ['a', 'b', 'c'] {
            scope.spawn(move || {
                let script = format!("head -c 4000000 /dev/zero | tr '\\0' {letter}; exit 6");
                let ran = s.run(script).exits(6);
                let own = u8::try_from(letter).unwrap();
                assert!(
                    ran.output.len() == 4_000_000 && ran.output.iter().all(|byte| *byte == own),
                    "{ran:?}"
                );
            });
        }
    });
}

fn log(s: &Subject) {
    let number = s.unique();
    let id = s.background(format!("seq 1 400000; echo LAST; sleep 30.{number}"));
    s.until_printed(&id, b"LAST\n");
    let log = s.processes().log_bytes(&id, 0, 10 * LOG_LIMIT).unwrap();
    assert!(log.dropped_bytes > 0 && log.offset_bytes == log.dropped_bytes, "{} dropped", log.dropped_bytes);
    assert!(log.bytes.ends_with(b"399999\n400000\nLAST\n"), "{:?}", log.output.lines().last());
    assert!(log.bytes.len() as u64 >= LOG_LIMIT / 4, "only {} bytes are kept", log.bytes.len());
    let endless = s.background(Call::new("yes").env("NUMBER", &number));
    s.until_printed(&endless, b"y\n");
    let much = || s.processes().log_bytes(&endless, 0, 1).unwrap().dropped_bytes > 4 * LOG_LIMIT;
    assert!(eventually(Duration::from_secs(10), much), "it is slowed to death");
    let (count, bytes) = files(&s.home().path().join("state/processes").join(&endless));
    assert!(bytes < 2 * LOG_LIMIT, "{count} files hold {bytes} bytes");
    assert_eq!(s.poll(&endless).status, Status::Running);
    for id in [&id, &endless] {
        s.processes().kill(id).unwrap();
    }
}
