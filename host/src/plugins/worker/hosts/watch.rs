//! The keeper's thread that waits for calls, and has each made on a thread of its own: one that takes long holds up no other.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::super::serve::lock;
use super::caller::{self, Caller, Worker};
use super::handover::{Taken, take};
use super::perform::{Failure, closed, perform};
use super::raw::{self, Notice};

/// Calls that are made at once. One that is made beyond that waits for another to end.
const MOST: usize = 128;

/// Lines of the log that say who was refused. A plugin could go on forever.
const MOST_LINES: usize = 64;

/// Judges the calls of a worker on a thread, from when it hands them over until nobody is left to make any.
///
/// # Errors
///
/// Fails if there is no thread.
pub(in super::super) fn keep(gate: OwnedFd, worker: Pid) -> io::Result<()> {
    let watch = move || {
        let taken = take(&gate, worker);
        // It tells the worker, which waits for it, if there is nothing.
        drop(gate);
        match taken {
            Ok(Some(taken)) => Watch::new(taken).run(),
            Ok(None) => {}
            Err(error) => say(&format!("its connections cannot be judged: {error}")),
        }
    };
    thread::Builder::new().name("hosts".into()).spawn(watch).map(drop)
}

struct Watch {
    taken: Taken,
    /// How many calls are being made.
    busy: Mutex<usize>,
    free: Condvar,
    said: Mutex<HashSet<String>>,
}

impl Watch {
    fn new(taken: Taken) -> Arc<Self> {
        Arc::new(Self { taken, busy: Mutex::new(0), free: Condvar::new(), said: Mutex::default() })
    }

    fn run(self: Arc<Self>) {
        loop {
            let mut ready = [PollFd::new(&self.taken.listener, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                Ok(_) if ready[0].revents().contains(PollFlags::IN) => {}
                // Nobody has the filter any more.
                _ => return,
            }
            let Ok(notice) = raw::receive(&self.taken.listener) else { continue };
            self.begin();
            let watch = Arc::clone(&self);
            let made = thread::Builder::new().name("call".into()).spawn(move || {
                watch.make(&notice);
                watch.end();
            });
            if made.is_err() {
                raw::answer(&self.taken.listener, notice.id, Err(Errno::AGAIN));
                self.end();
            }
        }
    }

    fn begin(&self) {
        let busy = lock(&self.busy);
        let mut busy =
            self.free.wait_while(busy, |busy| *busy >= MOST).unwrap_or_else(PoisonError::into_inner);
        *busy += 1;
    }

    fn end(&self) {
        *lock(&self.busy) -= 1;
        self.free.notify_one();
    }

    fn make(&self, notice: &Notice) {
        let Taken { listener, worker, judge } = &self.taken;
        if notice.call == libc::SYS_socket {
            trapped(worker, notice);
            return raw::answer(listener, notice.id, Err(Errno::ACCESS));
        }
        // Everything that was taken of the caller's is let go before it runs on.
        let result = Caller::of(worker, listener, notice)
            .map_err(closed)
            .and_then(|caller| perform(notice, &caller, judge));
        let result = result.map_err(|failure| match failure {
            Failure::Errno(errno) => errno,
            Failure::Refused(why) => {
                self.log(why);
                Errno::ACCESS
            }
        });
        raw::answer(listener, notice.id, result);
    }

    fn log(&self, why: String) {
        let mut said = lock(&self.said);
        if said.len() < MOST_LINES && !said.contains(&why) {
            say(&format!("refused to reach {why}"));
            said.insert(why);
        }
    }
}

/// Ends the worker since it, or a program of its, makes a socket that leads out of this machine: see `syscalls::trap`.
fn trapped(worker: &Worker, notice: &Notice) {
    let status = fs::read_to_string(format!("/proc/{}/status", notice.thread)).unwrap_or_default();
    let own = worker.pid.as_raw_nonzero().get().cast_unsigned();
    let name = status.lines().find_map(|line| line.strip_prefix("Name:\t"));
    match name.filter(|_| caller::number(&status, "Tgid:", 0) != Some(own)) {
        Some(program) => say(&format!("its program `{program}` made a socket for another machine")),
        None => say("it made a socket for another machine"),
    }
    // It may have ended already. A signal that it could catch would not do.
    let _ = kill_process(worker.pid, Signal::KILL);
}

/// Says something where the host takes it into its log.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
