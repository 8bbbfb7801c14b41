//! The guard: a process that ends the commands of a host that was killed.
//!
//! A host that dies of SIGKILL, or of a lack of memory, can end nothing any more, and its commands would run on with nobody to
//! read them. So a second process of this program knows which calls are in flight: the host tells it on a socket, and when
//! that is closed without a good-bye, it kills the processes of those calls, which it finds by their mark. A plugin's worker has
//! its own keeper for this.
//!
//! The guard is started by the first call and not waited for: the socket keeps what is said until it is read. It holds
//! nothing else of the host's, so it keeps nobody's pipe open.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use hostel_plugin_api::shell::{Process, Spawn, end_call, spawn};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The hidden command.
pub const GUARD_COMMAND: &str = "guard";

/// The host has nothing in flight that is to be ended.
const GOODBYE: &str = "bye";

/// How much may wait for a guard that does not read, in bytes. One that is so far behind is replaced.
const MOST_WAITING: usize = 256 * 1024;

/// The file of the program that runs, also where an update has replaced it since.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Whether this program itself can be a guard.
static SERVES: AtomicBool = AtomicBool::new(false);

/// Says that this program itself handles the hidden command, so that guards are made of it. Without this there are none: a
/// program that only uses this library would be started in their place.
pub fn this_program_serves_guards() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Runs the guard: standard input is the host.
#[must_use]
pub fn guard_main(_words: &[String]) -> ExitCode {
    // A signal to the host's whole group or by name is the host's to deal with: this process ends with the host.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    // Only for whoever lists processes.
    let _ = rustix::thread::set_name(c"hostel-guard");
    for call in in_flight_at_end(io::stdin().lock()) {
        end_call(&call);
    }
    ExitCode::SUCCESS
}

/// Follows what the host says to its end. Returns the calls that were in flight then; none after a good-bye.
fn in_flight_at_end(host: impl Read) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    // Small: this process is one that waits.
    for line in BufReader::with_capacity(1024, host).split(b'\n') {
        // The socket of a host that was killed may end in an error, which is an end like any other.
        let Ok(line) = line else { break };
        let Ok(line) = String::from_utf8(line) else { continue };
        if line == GOODBYE {
            return BTreeSet::new();
        }
        if let Some(call) = line.strip_prefix('+') {
            calls.insert(call.to_owned());
        } else if let Some(call) = line.strip_prefix('-') {
            calls.remove(call);
        }
    }
    calls
}

/// A guard that was started.
struct Line {
    socket: UnixStream,
    /// None in tests.
    process: Option<Process>,
}

/// Starts a guard. None where this program cannot be one.
type Start = Box<dyn Fn() -> io::Result<Option<Line>> + Send + Sync>;

/// The host's side of its guard.
pub struct Guard {
    start: Start,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    line: Option<Line>,
    in_flight: BTreeSet<String>,
    /// What the socket has not taken yet.
    waiting: Vec<u8>,
    /// Guards that have ended or will, and that nobody has waited for.
    former: Vec<Process>,
}

/// Says that a call is in flight for as long as it lives.
#[must_use = "the call is no longer guarded once this is dropped"]
pub struct Watching<'a> {
    guard: &'a Guard,
    /// None where the call cannot be guarded.
    call: Option<String>,
}

impl Guard {
    /// The guard of this process.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Guard> = LazyLock::new(|| Guard::new(Box::new(start)));
        &SHARED
    }

    fn new(start: Start) -> Self {
        Self { start, said: Mutex::default() }
    }

    /// Has the processes of call `call_id` killed if this process dies before what is returned is dropped. Never fails and never
    /// waits: without a guard the call is merely not guarded.
    pub fn watch(&self, call_id: &str) -> Watching<'_> {
        if call_id.is_empty() || call_id.contains('\n') {
            return Watching { guard: self, call: None };
        }
        let mut said = self.lock();
        said.in_flight.insert(call_id.to_owned());
        if said.line.is_some() {
            said.tell(&format!("+{call_id}\n"));
        }
        // The first call, or the guard was found dead.
        if said.line.is_none() {
            said.begin(&self.start);
        }
        Watching { guard: self, call: Some(call_id.to_owned()) }
    }

    /// Ends what is in flight at once, for a process that is about to end before its time.
    pub fn end_in_flight(&self) {
        let calls = self.lock().in_flight.clone();
        for call in calls {
            end_call(&call);
        }
    }

    /// Ends the guard, since this process ends as it should: whatever is in flight may live on.
    pub fn goodbye(&self) {
        let mut said = self.lock();
        said.tell(&format!("{GOODBYE}\n"));
        said.give_up();
        // It has nothing left to do, so it is not asked to end but killed, and is gone at once. Without this each command would
        // leave a zombie where the first process of a container waits for nobody.
        for process in said.former.drain(..) {
            let _ = waitpid(Some(process.pid), WaitOptions::empty());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let mut said = self.guard.lock();
        said.in_flight.remove(&call);
        said.tell(&format!("-{call}\n"));
        if said.line.is_none() && !said.in_flight.is_empty() {
            said.begin(&self.guard.start);
        }
    }
}

impl Said {
    /// Starts a guard, and tells it what is in flight.
    fn begin(&mut self, start: &Start) {
        self.former.retain(|process| {
            matches!(waitpid(Some(process.pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
        });
        match start() {
            Ok(None) => {}
            Ok(line) => {
                self.line = line;
                let lines: String =
                    self.in_flight.iter().flat_map(|call| ["+", call.as_str(), "\n"]).collect();
                self.tell(&lines);
            }
            // The next call tries again.
            Err(error) => tracing::debug!(%error, "starting the guard failed"),
        }
    }

    /// Sends lines, and what could not be sent before. Gives up a guard that is dead or far behind.
    fn tell(&mut self, lines: &str) {
        let Some(line) = &self.line else { return };
        self.waiting.extend_from_slice(lines.as_bytes());
        loop {
            match send(&line.socket, &self.waiting, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.waiting.drain(..sent);
                    if sent == 0 || self.waiting.is_empty() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) if self.waiting.len() < MOST_WAITING => {
                    return;
                }
                Err(_) => break,
            }
        }
        self.give_up();
    }

    /// Lets go of a guard, which does nothing more.
    fn give_up(&mut self) {
        self.waiting.clear();
        let Some(Line { socket, process }) = self.line.take() else { return };
        if let Some(process) = process {
            // Before its socket is closed, which it would take for the end of this process.
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
            self.former.push(process);
        }
        drop(socket);
    }
}

/// Starts a guard of this program, with nothing of this process's but one end of a socket.
fn start() -> io::Result<Option<Line>> {
    if !SERVES.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (socket, theirs) = UnixStream::pair()?;
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    let argv: [OsString; 2] = ["hostel".into(), GUARD_COMMAND.into()];
    let descriptors = vec![theirs.as_fd(), null.as_fd(), null.as_fd()];
    let process = spawn(&Spawn {
        program: Path::new(OWN_PROGRAM),
        argv: &argv,
        // Whoever looks for what a call has left must not take it for that.
        env: &[("HOSTEL_CALL".into(), "guard".into())],
        cwd: Path::new("/"),
        descriptors,
        terminal: false,
        cgroup: None,
    })
    .map_err(|error| error.error)?;
    Ok(Some(Line { socket, process: Some(process) }))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};
    use std::time::Duration;

    use super::*;

    fn left(said: &str) -> Vec<String> {
        in_flight_at_end(said.as_bytes()).into_iter().collect()
    }

    #[test]
    fn only_what_is_in_flight_at_an_end_without_good_bye_is_ended() {
        assert_eq!(left("+a\n+b\n-a\n+c\n"), ["b", "c"]);
        assert_eq!(left("+a\n-a\n-never\n"), [""; 0]);
        assert_eq!(left("+a\nbye\n"), [""; 0]);
        assert_eq!(left("+a\n-a"), [""; 0], "what was cut after its last letter counts");
    }

    /// A guard whose other ends come out of the channel.
    fn guard() -> (Guard, Receiver<UnixStream>) {
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        let start = move || {
            let (socket, theirs) = UnixStream::pair()?;
            theirs.set_read_timeout(Some(Duration::from_secs(20)))?;
            sender.lock().unwrap().send(theirs).unwrap();
            Ok(Some(Line { socket, process: None }))
        };
        (Guard::new(Box::new(start)), receiver)
    }

    fn lines(socket: UnixStream) -> Vec<String> {
        BufReader::new(socket).lines().map(|line| line.unwrap()).collect()
    }

    #[test]
    fn it_is_told_of_each_call_and_is_started_once() {
        let (guard, ends) = guard();
        let one = guard.watch("one");
        drop(guard.watch("two"));
        drop(one);
        guard.goodbye();
        assert_eq!(lines(ends.recv().unwrap()), ["+one", "+two", "-two", "-one", "bye"]);
        assert!(ends.try_recv().is_err());
    }

    #[test]
    fn one_that_has_died_is_replaced_and_told_all() {
        let (guard, ends) = guard();
        let one = guard.watch("one");
        drop(ends.recv().unwrap());
        let two = guard.watch("two");
        drop((one, two));
        guard.goodbye();
        assert_eq!(lines(ends.recv().unwrap()), ["+one", "+two", "-one", "-two", "bye"]);
    }

    #[test]
    fn one_that_does_not_read_holds_nothing_up_and_loses_nothing() {
        let (guard, ends) = guard();
        for call in 0..2000 {
            drop(guard.watch(&format!("call_{call}")));
        }
        let theirs = ends.recv().unwrap();
        let reader = std::thread::spawn(move || lines(theirs));
        // What has waited goes with the next line, as soon as there is room.
        while !guard.lock().waiting.is_empty() {
            guard.lock().tell("");
            std::thread::yield_now();
        }
        guard.goodbye();
        let read = reader.join().unwrap();
        let calls: Vec<&String> = read.iter().filter(|line| line.starts_with("+call_")).collect();
        assert_eq!(calls.len(), 2000);
        assert!(ends.try_recv().is_err(), "it was replaced");
    }

    #[test]
    fn one_that_never_reads_is_replaced() {
        let (guard, ends) = guard();
        let kept = guard.watch("kept");
        let old = ends.recv().unwrap();
        let name = "x".repeat(1000);
        let new = loop {
            drop(guard.watch(&name));
            if let Ok(new) = ends.try_recv() {
                break new;
            }
        };
        drop((kept, old));
        guard.goodbye();
        let told = lines(new);
        assert_eq!((told[0].as_str(), told.last().map(String::as_str)), ("+kept", Some("bye")));
    }

    #[test]
    fn a_program_that_cannot_be_one_starts_none() {
        assert!(matches!(start(), Ok(None)));
        drop(Guard::shared().watch("call"));
        assert!(Guard::shared().lock().line.is_none());
    }

    #[test]
    fn what_would_be_two_lines_is_not_said() {
        let (guard, ends) = guard();
        drop(guard.watch("a\n+b"));
        drop(guard.watch(""));
        assert!(ends.try_recv().is_err());
    }
}
