//! Where the time of one warm command goes.
//!
//! The stages are seen from outside: by when the call says that the command has started, by when its first output comes, and by what
//! commands take that leave one piece out or add one. Beneath each stands what such a piece costs at the least here. The last
//! column but one is the share of the whole.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{Process, Spawn, spawn};
use hostel_plugin_api::{ExecIo, ExecRequest, Flow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::sessions::Session;
use super::shuffled::{shuffled, timed};
use super::{Quiet, Row, line, quantile, shown};

/// Notes when something came.
#[derive(Default)]
struct Clock(Mutex<Vec<Instant>>);

impl ExecIo for Clock {
    fn output(&self, _bytes: &[u8]) -> Flow {
        self.0.lock().expect("nobody has panicked").push(Instant::now());
        Flow::Continue
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn deadline(&self) -> Option<Instant> {
        Quiet.deadline()
    }
}

/// Another process that answers with what it was sent, and ends when nobody can send any more.
struct Cat {
    process: Process,
    line: UnixStream,
}

impl Cat {
    fn new() -> Self {
        let (line, theirs) = UnixStream::pair().expect("a pair");
        let process = spawn(&Spawn {
            program: Path::new("/bin/cat"),
            argv: &["cat".into()],
            env: &[],
            cwd: Path::new("/"),
            descriptors: vec![theirs.as_fd(), theirs.as_fd(), theirs.as_fd()],
            terminal: false,
            cgroup: None,
        });
        let mut cat = Self { process: process.expect("cat starts"), line };
        cat.round_trip();
        cat
    }

    fn round_trip(&mut self) {
        let mut bytes = [7; 64];
        self.line.write_all(&bytes).expect("it is sent");
        self.line.read_exact(&mut bytes).expect("it comes back");
    }

    /// Lets it end, and waits for that as a call does.
    fn end(self) {
        drop(self.line);
        let pidfd = &self.process.pidfd;
        poll(&mut [PollFd::new(pidfd, PollFlags::IN)], None).expect("it is waited for");
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).expect("it ends");
    }
}

/// Makes what a call needs before it can ask: the command's file, the pipe for its output, and an empty input.
fn hand_over() {
    let mut script = File::from(memfd_create("bench", MemfdFlags::CLOEXEC).expect("a file"));
    script.write_all(&[b'x'; 512]).expect("it is written");
    script.rewind().expect("it is rewound");
    let (output, theirs) = std::io::pipe().expect("a pipe");
    // A smaller one is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&output, 1 << 20);
    let input = File::open("/dev/null").expect("it is there");
    drop((script, output, theirs, input));
}

/// Makes a record's file in `dir`, has it written, reads it and removes it.
fn record_on_disk(dir: &Path) {
    let file = tempfile::Builder::new().prefix("call-").tempfile_in(dir).expect("a file");
    // Some file systems cannot.
    let _ = fallocate(file.as_file(), FallocateFlags::KEEP_SIZE, 0, 16 * 1024);
    record(file.as_file(), file.path());
}

/// Does the same with a file without a name.
fn record_in_memory() {
    let file = File::from(memfd_create("bench", MemfdFlags::CLOEXEC).expect("a file"));
    record(&file, Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
}

/// Writes to the file at `path` as the shell does, and reads it as the session does.
fn record(mut file: &File, path: &Path) {
    // The shell opens it twice: for the list of functions, and for the whole.
    for bytes in [&b""[..], &[b'x'; 2048]] {
        let mut theirs = File::create(path).expect("it is opened");
        theirs.write_all(bytes).expect("it is written");
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("it is read");
    assert_eq!(bytes.len(), 2048);
}

/// Answers from a thread of its own, as the host has each call answered.
fn thread_that_answers() {
    let (end, alive) = std::io::pipe().expect("a pipe");
    let thread = thread::spawn(move || drop(alive));
    poll(&mut [PollFd::new(&end, PollFlags::IN)], None).expect("it is waited for");
    drop(thread);
}

/// So many subshells show what one costs.
const SUBSHELLS: u32 = 20;

/// The stages of one call that prints something.
#[derive(Default)]
struct Stages {
    answered: Vec<Duration>,
    printed: Vec<Duration>,
    ended: Vec<Duration>,
}

impl Stages {
    fn run(&mut self, session: &Session) -> Duration {
        let clock = Clock::default();
        let mut request = ExecRequest::new("echo");
        request.tell_start();
        let start = Instant::now();
        session.request_with(request, &clock);
        let end = Instant::now();
        let seen = clock.0.into_inner().expect("nobody has panicked");
        let [answered, printed] = seen[..] else { panic!("a start and one output, not {}", seen.len()) };
        self.answered.push(answered - start);
        self.printed.push(printed - answered);
        self.ended.push(end - printed);
        end - start
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    quantile(&times, 50)
}

/// Where the time of one warm `true` goes.
pub(crate) fn pieces() -> Vec<Row> {
    let (session, changing) = (Session::warm(), Session::warm());
    let dir = tempfile::tempdir().expect("a folder");
    let mut echo = Cat::new();
    let mut stages = Stages::default();
    let mut count = 0;
    let subshells = format!("for ((i = 0; i < {SUBSHELLS}; i++)); do (:); done");
    let [whole, _, unrecorded, changed, forks, handed, on_disk, in_memory, round_trip, end, thread] =
        shuffled(
            300,
            &mut [
                &mut || timed(|| session.run("true")),
                &mut || stages.run(&session),
                &mut || timed(|| session.run("trap - EXIT")),
                &mut || {
                    count += 1;
                    timed(|| changing.run(&format!("export BENCH={count}")))
                },
                &mut || timed(|| session.run(&subshells)),
                &mut || timed(hand_over),
                &mut || timed(|| record_on_disk(dir.path())),
                &mut || timed(record_in_memory),
                &mut || timed(|| echo.round_trip()),
                &mut || {
                    let cat = Cat::new();
                    timed(|| cat.end())
                },
                &mut || timed(thread_that_answers),
            ],
        );
    echo.end();
    assert!(session.is_warm() && changing.is_warm(), "copies were to be measured");
    let [whole, unrecorded, changed, forks] =
        [whole, unrecorded, changed, forks].map(|times| quantile(&times, 50));
    let print = |work: &str, piece: Duration| {
        let share = format!("{:.0} %", 100.0 * piece.as_secs_f64() / whole.as_secs_f64());
        line(work, &shown(piece), &shown(whole), &share, "");
    };
    let floor = |work: &str, times: &[Duration]| print(work, quantile(times, 50));
    print("warm `echo`: until the copy is there", median(stages.answered));
    floor("  making script, pipe and input", &handed);
    floor("  socketpair round trip to a process", &round_trip);
    print("  a fork, run and wait in bash", forks.saturating_sub(whole) / SUBSHELLS);
    print("warm `echo`: then until it has printed", median(stages.printed));
    print("warm `echo`: then until the call is over", median(stages.ended));
    print("  what the record adds", whole.saturating_sub(unrecorded));
    floor("  a record's file, made, written, read", &on_disk);
    floor("  the same in memory", &in_memory);
    floor("  a process ends, until waited for", &end);
    print("a change: until it is saved, besides", changed.saturating_sub(whole));
    floor("the host's thread for a call, besides", &thread);
    Vec::new()
}
