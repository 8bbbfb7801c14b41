//! O-07, O-08 and O-56: what runs on behind a call.

use std::time::Duration;

use hostel::processes::{KillStatus, Status};
use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, eventually, files, kill_all};
use hostel_tests::provider::{LOG_LIMIT, Subject};

use super::super::case::{Case, SURVIVORS, case};

pub(in super::super) const CASES: &[Case] = &[
    case("o-07", "what is left running runs on, and nobody waits for it", o_07_what_is_left_running_runs_on)
        .needs(SURVIVORS),
    case("o-08", "a process that closes its output has not ended", o_08_a_process_that_closes_its_output),
];

pub(in super::super) const LARGE: &[Case] =
    &[case("o-56", "a log has a limit, also where it is fed to itself", o_56_a_log_that_never_ends)];

fn o_07_what_is_left_running_runs_on(s: &Subject) {
    let number = s.unique();
    let script = format!("(sleep 0.5; echo late; exec sleep 80.{number}) & echo $! > bg.pid; echo started");
    let _ = s.run(Call::new(script).limit(20_000)).prints("started\n").prompt();
    let script = format!("setsid sleep 81.{number} >/dev/null 2>&1 </dev/null & disown; echo started-too");
    let _ = s.run(Call::new(script).limit(20_000)).prints("started-too\n").prompt();
    let _ = s.run("sleep 1; kill -0 \"$(cat bg.pid)\" && echo alive").prints("alive\n");
    assert_eq!(alive(&number).len(), 2, "{:?}", alive(&number));
    kill_all(&number);
}

fn o_08_a_process_that_closes_its_output(s: &Subject) {
    let number = s.unique();
    let a = s.background(format!("exec >/dev/null 2>&1; sleep 2.{number}; exit 9"));
    let b = s.background(format!("exec >&- 2>&-; sleep 60.{number}"));
    assert!(eventually(Duration::from_secs(5), || alive(&number).len() >= 2), "{:?}", alive(&number));
    for id in [&a, &b] {
        let view = s.poll(id);
        assert_eq!((view.status, view.exit_code), (Status::Running, None), "{view:?}");
    }
    assert_eq!(s.processes().kill(&b).unwrap().status, KillStatus::Killed);
    let view = s.poll(&b);
    assert_eq!((view.status, view.exit_code.is_some()), (Status::Killed, true), "{view:?}");
    assert_eq!(s.wait(&a).exit_code, Some(9));
    assert!(alive(&number).is_empty(), "{:?}", alive(&number));
}

fn o_56_a_log_that_never_ends(s: &Subject) {
    let logs = s.home().path().join("state/processes");
    let a = s.background("yes");
    let much = || s.processes().log_bytes(&a, 0, 1).unwrap().dropped_bytes > 4 * LOG_LIMIT;
    assert!(eventually(Duration::from_secs(20), much), "it is slowed to death, or nothing is dropped");
    assert_eq!(s.poll(&a).status, Status::Running);
    s.processes().kill(&a).unwrap();
    assert!(s.logs(&a).ends_with(b"y\ny\n"));
    // Where it cannot be seen, there is nothing to feed on.
    let script = format!(
        "cd '{}'/*/ 2>/dev/null; for f in *; do tail -n 5 \"$f\"; done; sleep 0.2; while cat *; do :; done",
        logs.display()
    );
    let b = s.background(Call::new(script));
    std::thread::sleep(Duration::from_secs(1));
    let held = files(&logs).1;
    let processes = std::fs::read_dir(&logs).unwrap().count() as u64;
    assert!(held < processes * 2 * LOG_LIMIT, "{processes} processes hold {held} bytes");
    s.processes().kill(&b).unwrap();
}
