//! What the bytes cost that go into a command and come out of it.
//!
//! The floor has the best pipe that an unprivileged user may have, as the session's output has, and no shell between.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use hostel_plugin_api::{ExecRequest, Stdin};

use super::sessions::{Road, Session};
use super::shuffled::{shuffled, timed};
use super::{Row, line, quantile};

pub(crate) const OUTPUT: u32 = 100_000_000;
const INPUT: usize = 1_000_000;
const PIPE: usize = 1 << 20;
const BUFFER: usize = 256 << 10;

/// What reading so many bytes costs at the least.
pub(crate) fn read_from_a_pipe(count: u32) {
    let (mut output, theirs) = std::io::pipe().expect("a pipe");
    // A smaller one is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE);
    let mut head = Command::new("head")
        .args(["-c", &count.to_string(), "/dev/zero"])
        .stdin(Stdio::null())
        .stdout(theirs)
        .spawn()
        .expect("head starts");
    let (mut bytes, mut total) = (vec![0; BUFFER], 0);
    loop {
        match output.read(&mut bytes).expect("it is read") {
            0 => break,
            read => total += read,
        }
    }
    assert_eq!(total, count as usize);
    assert!(head.wait().expect("it ends").success());
}

/// The command that prints so many bytes.
pub(crate) fn zeros(count: u32) -> String {
    format!("head -c {count} /dev/zero")
}

/// A lot of output.
pub(crate) fn output() -> Vec<Row> {
    let (session, road, command) = (Session::warm(), Road::warm(), zeros(OUTPUT));
    let [floor, own, whole] = shuffled(
        15,
        &mut [
            &mut || timed(|| read_from_a_pipe(OUTPUT)),
            &mut || timed(|| session.run(&command)),
            &mut || timed(|| road.run(&command)),
        ],
    );
    let rate = |time: Duration| format!("{:.0} MB/s", f64::from(OUTPUT) / 1e6 / time.as_secs_f64());
    let floor = quantile(&floor, 50);
    for (name, ours) in [("session", own), ("whole road", whole)] {
        let ours = quantile(&ours, 50);
        let ratio = format!("{:.2}×", ours.as_secs_f64() / floor.as_secs_f64());
        line(&format!("100 MB of output, {name} / pipe"), &rate(floor), &rate(ours), &ratio, "1.25×");
    }
    Vec::new()
}

/// What writing the input costs at the least.
fn write_to_a_pipe(bytes: &[u8]) {
    let (theirs, mut input) = std::io::pipe().expect("a pipe");
    // A smaller one is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&input, PIPE);
    let mut cat = Command::new("cat").stdin(theirs).stdout(Stdio::null()).spawn().expect("cat starts");
    input.write_all(bytes).expect("it is written");
    drop(input);
    assert!(cat.wait().expect("it ends").success());
}

/// A lot of input, to `cat`.
pub(crate) fn input() -> Vec<Row> {
    let session = Session::warm();
    let bytes = vec![7; INPUT];
    let [floor, ours] = shuffled(
        200,
        &mut [&mut || timed(|| write_to_a_pipe(&bytes)), &mut || {
            let mut request = ExecRequest::new("cat >/dev/null");
            request.stdin = Stdin::Bytes(bytes.clone());
            timed(|| session.request(request))
        }],
    );
    let row = |percent, name: &str| Row {
        work: format!("1 MB of input, session, {name} / pipe"),
        floor: quantile(&floor, percent),
        ours: quantile(&ours, percent),
        goal: "",
    };
    vec![row(50, "median"), row(99, "p99")]
}
