//! What is ended is all that the call has started, and nothing else.

use std::time::Duration;

use hostel::processes::Status;
use hostel_tests::call::Call;
use hostel_tests::kernel::{alive, kill_all};
use hostel_tests::provider::Subject;

use super::case::{Case, SURVIVORS, case};

pub(super) const CASES: &[Case] = &[
    case("trees-fifo", "the other end of a pipe is ended too", fifo),
    case("trees-leavers", "who left the group or the session, or lost its parent, is ended too", leavers),
    case("trees-deaf", "a grandchild in a session of its own that ignores signals is ended too", deaf),
    case("trees-many", "many are ended as one", many),
    case("trees-breeder", "who goes on starting others is ended with all of them", breeder),
    case("trees-others", "other calls and background processes are left alone", others),
    case("trees-earlier", "what an earlier call has left running is left alone", earlier).needs(SURVIVORS),
];

#[track_caller]
fn nobody_is_left(number: &str) {
    let left = alive(number);
    kill_all(number);
    assert!(left.is_empty(), "{left:#?}");
}

fn fifo(s: &Subject) {
    let number = s.unique();
    let script = format!(
        "mkfifo q.{number}\n(while :; do echo tick; sleep 0.1{number}; done) > q.{number} &\ncat q.{number}\n"
    );
    let ran = s.run(Call::new(script).limit(800)).times_out(800);
    assert!(ran.text().starts_with("tick\n"), "{ran:?}");
    nobody_is_left(&number);
    let script = format!("mkfifo r.{number}; cat r.{number} & cat > r.{number} < /dev/zero");
    let _ = s.run(Call::new(script).limit(500).kept_only(1000)).times_out(500);
    nobody_is_left(&number);
}

fn leavers(s: &Subject) {
    let number = s.unique();
    let script = format!(
        "setsid sleep 31.{number} &\n\
         (setsid sh -c 'sleep 32.{number} & exit' &)\n\
         bash -c 'exec -a renamed sleep 33.{number}' &\n\
         nohup sleep 34.{number} > /dev/null 2>&1 < /dev/null &\n\
         setsid -f sleep 35.{number} > /dev/null 2>&1 < /dev/null\n\
         sh -c 'sleep 36.{number} & sleep 37.{number} | cat' & disown\n\
         env -i sleep 38.{number} &\n\
         echo begun; sleep 30.{number}"
    );
    let ran = s.run(Call::new(script).limit(700)).times_out(700);
    assert_eq!(ran.text(), "begun\n", "{ran:?}");
    nobody_is_left(&number);
}

fn deaf(s: &Subject) {
    let number = s.unique();
    let script = format!(
        "setsid bash -c \"trap '' TERM INT HUP; while :; do sleep 0.05{number}; done\" &\nsleep 30.{number}"
    );
    let _ = s.run(Call::new(script).limit(400)).times_out(400);
    nobody_is_left(&number);
}

fn many(s: &Subject) {
    let number = s.unique();
    let script = format!(
        "for i in $(seq 60); do sleep 31.{number} & done\n\
         for i in $(seq 20); do setsid sleep 32.{number} & done; echo begun; sleep 30.{number}"
    );
    let ran = s.run(Call::new(script).limit(1000)).times_out(1000);
    assert_eq!(ran.text(), "begun\n", "{ran:?}");
    nobody_is_left(&number);
}

fn breeder(s: &Subject) {
    let number = s.unique();
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do setsid sleep 31.{number} & sleep 0.02{number}; done) &\n\
         sleep 30.{number}"
    );
    let _ = s.run(Call::new(script).limit(400)).times_out(400);
    nobody_is_left(&number);
}

fn others(s: &Subject) {
    let (number, own) = (s.unique(), s.unique());
    let id = s.background(format!("echo up; sleep 30.{own}"));
    s.until_printed(&id, b"up");
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| s.run(format!("echo a; sleep 1.5{own}; echo b")));
        let script = format!("setsid sleep 31.{number} & sleep 30.{number}");
        let _ = s.run(Call::new(script).limit(500)).times_out(500);
        let _ = whole.join().unwrap().prints("a\nb\n");
    });
    nobody_is_left(&number);
    let view = s.poll(&id);
    assert_eq!((view.status, view.exit_code), (Status::Running, None), "{view:?}");
    assert_eq!(alive(&format!("sleep 30.{own}")).len(), 1, "{:?}", alive(&own));
    s.processes().kill(&id).unwrap();
    nobody_is_left(&own);
}

fn earlier(s: &Subject) {
    let (number, own) = (s.unique(), s.unique());
    let _ = s.run(format!("sleep 31.{own} & setsid sleep 32.{own} & echo left")).prints("left\n").prompt();
    let _ = s.run(Call::new(format!("sleep 30.{number}")).limit(300)).times_out(300);
    let script = format!("setsid sleep 33.{number} & echo begun; sleep 34.{number}");
    let ran = s.run(Call::new(script).interrupted()).exits(130);
    assert!(ran.took < Duration::from_secs(3), "{ran:?}");
    nobody_is_left(&number);
    let left = alive(&own);
    kill_all(&own);
    assert_eq!(left.len(), 2, "{left:?}");
}
