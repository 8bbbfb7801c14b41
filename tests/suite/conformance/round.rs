//! Runs the cases of a class on one provider, as often as is asked for.
//!
//! `HOSTEL_TEST_REPEAT` says how often, since what fails once in fifty times is wrong too. Each time each case gets a session and
//! a folder of its own. Every other time, beginning with the first, the session is a warm one, whose commands run in copies of a
//! shell that is there already. Cases mostly wait, so some run at once, except those that look at the whole process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use hostel_tests::kernel::catch_ends_of_children;
use hostel_tests::own_process::in_own_process;
use hostel_tests::provider::{Subject, bubblewrap_works};

use super::case::{Case, of};

/// What the tests' own process has in its environment besides.
const VARIABLES: [(&str, &str); 2] = [("ACMEBOX_TOKEN", "demo"), ("HOSTVAR", "h")];

/// How many cases run at once.
const AT_ONCE: usize = 4;

/// The classes whose cases look at what the whole process holds, or change what is configured.
const ONE_BY_ONE: [&str; 3] = ["large", "leaks", "login"];

/// Runs the cases of `class` on `backend`, in the test `name`, with its path.
pub(super) fn class(name: &str, backend: &str, isolation: &str, class: &str) {
    if backend == "bubblewrap" && !bubblewrap_works() {
        return;
    }
    // The name of a test does not have that of its program.
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    in_own_process(name, &VARIABLES, || {
        catch_ends_of_children();
        let subject = Subject::open(backend, isolation);
        let threads = if ONE_BY_ONE.contains(&class) { 1 } else { AT_ONCE };
        let failed: Vec<String> =
            (0..repetitions()).flat_map(|round| run_all(&subject, class, round, threads)).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}

fn repetitions() -> u32 {
    std::env::var("HOSTEL_TEST_REPEAT").map_or(1, |text| text.parse().unwrap())
}

/// Runs all cases of a class, and returns a line for each that fails.
fn run_all(subject: &Subject, class: &str, round: u32, threads: usize) -> Vec<String> {
    let cases = Mutex::new(of(class));
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            // A statement of its own, so that nobody waits for it while the case runs.
            let next = cases.lock().unwrap().next();
            let Some(case) = next else { return };
            let line = run(subject, case, round);
            failed.lock().unwrap().extend(line);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap()
}

/// Runs one case, and returns a line if it fails.
fn run(subject: &Subject, case: Case, round: u32) -> Option<String> {
    let Case { id, about, needs, run } = case;
    if let Some(reason) = needs.missing(subject.backend()) {
        eprintln!("{id} does not apply to {subject}: {reason}");
        return None;
    }
    let session = subject.session(&format!("{id} {round}"));
    let attempt = || {
        session.enter_fresh_folder();
        if round.is_multiple_of(2) {
            session.warm_up();
        }
        run(&session);
    };
    let failed = catch_unwind(AssertUnwindSafe(attempt)).is_err();
    failed.then(|| format!("{id} ({about}) does not hold of {subject} in round {}", round + 1))
}
