//! The guard: a process that ends the commands of a host that was killed.
//!
//! A host that dies of SIGKILL, or of a lack of memory, can end nothing any more, and its commands would run on with nobody to
//! read them. So a second process of this program shares a list of the calls in flight with it (`list`), and waits at a socket. When
//! that is closed, the host is gone, and the guard kills the processes of those calls, which it finds by their mark. A plugin's
//! worker has its own keeper for this.
//!
//! The guard is started by the first call and not waited for. It holds nothing else of the host's, so it keeps nobody's pipe open. One that
//! ends before its host is followed by another (`follow`).

mod follow;
mod list;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use hostel_plugin_api::shell::{Process, Spawn, end_call, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use list::List;

/// The hidden command.
pub const GUARD_COMMAND: &str = "guard";

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
    let list = io::stdout().as_fd().try_clone_to_owned();
    wait_for_the_end(&mut io::stdin().lock());
    // Without a list there is nothing to do.
    for call in list.and_then(|list| list::read(list.into())).unwrap_or_default() {
        end_call(&call);
    }
    ExitCode::SUCCESS
}

/// Waits until the host is gone. The socket of one that was killed may end in an error, which is an end like any other.
fn wait_for_the_end(host: &mut impl Read) {
    let mut said = [0; 64];
    loop {
        match host.read(&mut said) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}

/// A guard that was started.
struct Line {
    socket: UnixStream,
    /// None in tests.
    process: Option<Process>,
}

/// Starts a guard, which gets the list. None where this program cannot be one.
type Start = Box<dyn Fn(BorrowedFd<'_>) -> io::Result<Option<Line>> + Send + Sync>;

/// The host's side of its guard.
pub struct Guard(Arc<Shared>);

/// What whoever follows the guard has in hand as well.
struct Shared {
    start: Start,
    said: Mutex<Said>,
}

#[derive(Default)]
struct Said {
    line: Option<Line>,
    /// Made by the first call.
    list: Option<List>,
    /// Guards that have ended or will, and that nobody has waited for.
    former: Vec<Process>,
}

/// Says that a call is in flight for as long as it lives.
#[must_use = "the call is no longer guarded once this is dropped"]
pub struct Watching<'a> {
    guard: &'a Guard,
    /// Where it stands in the list. None where the call cannot be guarded.
    place: Option<usize>,
}

impl Guard {
    /// The guard of this process.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Guard> = LazyLock::new(|| Guard::new(Box::new(start)));
        &SHARED
    }

    fn new(start: Start) -> Self {
        Self(Arc::new(Shared { start, said: Mutex::default() }))
    }

    /// Has the processes of call `call_id` killed if this process dies before what is returned is dropped. Never fails and never
    /// waits: without a guard the call is merely not guarded.
    pub fn watch(&self, call_id: &str) -> Watching<'_> {
        let mut said = self.lock();
        let place = said.enter(call_id).inspect_err(|error| {
            tracing::debug!(call_id, %error, "the call is not guarded");
        });
        // The first call, or the guard was found dead.
        if place.is_ok() && !said.has_guard() {
            said.begin(&self.0.start);
            follow::begin(&self.0, &said);
        }
        Watching { guard: self, place: place.ok() }
    }

    /// Ends what is in flight at once, for a process that is about to end before its time.
    pub fn end_in_flight(&self) {
        let calls = self.lock().list.as_ref().map(List::in_flight).unwrap_or_default();
        for call in calls {
            end_call(&call);
        }
    }

    /// Ends the guard, since this process ends as it should: whatever is in flight may live on.
    pub fn goodbye(&self) {
        let mut said = self.lock();
        if let Some(list) = &mut said.list {
            list.clear();
        }
        said.give_up();
        // It has nothing left to do, so it is not asked to end but killed, and is gone at once. Without this each command would
        // leave a zombie where the first process of a container waits for nobody.
        for process in said.former.drain(..) {
            let _ = waitpid(Some(process.pid), WaitOptions::empty());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        if let Some(list) = &mut self.guard.lock().list {
            list.leave(place);
        }
    }
}

impl Said {
    fn enter(&mut self, call: &str) -> io::Result<usize> {
        if call.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let list = match &mut self.list {
            Some(list) => list,
            none => none.insert(List::new()?),
        };
        list.enter(call)
    }

    /// Whether there is a guard that lives. One that has died is given up.
    fn has_guard(&mut self) -> bool {
        let Some(line) = &self.line else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut end = [PollFd::new(&line.socket, PollFlags::RDHUP)];
        if matches!(poll(&mut end, Some(&at_once)), Ok(0) | Err(Errno::INTR)) {
            return true;
        }
        self.give_up();
        false
    }

    /// Starts a guard.
    fn begin(&mut self, start: &Start) {
        self.former.retain(|process| {
            matches!(waitpid(Some(process.pid), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
        });
        let Some(list) = &self.list else { return };
        match start(list.shared()) {
            Ok(line) => self.line = line,
            // The next call tries again.
            Err(error) => tracing::debug!(%error, "starting the guard failed"),
        }
    }

    /// Lets go of a guard, which does nothing more.
    fn give_up(&mut self) {
        let Some(Line { socket, process }) = self.line.take() else { return };
        if let Some(process) = process {
            // Before its socket is closed, which it would take for the end of this process.
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
            self.former.push(process);
        }
        drop(socket);
    }
}

/// Starts a guard of this program, with nothing of this process's but one end of a socket and the list.
fn start(list: BorrowedFd<'_>) -> io::Result<Option<Line>> {
    if !SERVES.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (socket, theirs) = UnixStream::pair()?;
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    let argv: [OsString; 2] = ["hostel".into(), GUARD_COMMAND.into()];
    let descriptors = vec![theirs.as_fd(), list, null.as_fd()];
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

    /// A guard whose other ends, and what it is to end, come out of the channel.
    fn guard() -> (Guard, Receiver<(UnixStream, OwnedFd)>) {
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        let start = move |list: BorrowedFd<'_>| {
            let list = list.try_clone_to_owned()?;
            let (socket, theirs) = UnixStream::pair()?;
            theirs.set_read_timeout(Some(Duration::from_secs(20)))?;
            sender.lock().unwrap().send((theirs, list)).unwrap();
            Ok(Some(Line { socket, process: None }))
        };
        (Guard::new(Box::new(start)), receiver)
    }

    fn left(list: OwnedFd) -> Vec<String> {
        list::read(list.into()).unwrap()
    }

    #[test]
    fn it_is_started_once_and_finds_what_is_in_flight_when_the_host_is_gone() {
        let (guard, ends) = guard();
        let one = guard.watch("one");
        drop(guard.watch("two"));
        let three = guard.watch("a\nb");
        let (mut socket, list) = ends.recv().unwrap();
        assert!(ends.try_recv().is_err());
        drop(one);
        std::mem::forget(three);
        // As a host that is killed does it: without a word.
        drop(std::mem::take(&mut *guard.lock()));
        wait_for_the_end(&mut socket);
        assert_eq!(left(list), ["a\nb"]);
    }

    #[test]
    fn after_a_good_bye_there_is_nothing_to_end() {
        let (guard, ends) = guard();
        let one = guard.watch("one");
        guard.goodbye();
        let (mut socket, list) = ends.recv().unwrap();
        wait_for_the_end(&mut socket);
        assert_eq!(left(list), [""; 0]);
        drop(one);
    }

    #[test]
    fn one_that_has_died_is_replaced_and_knows_all() {
        let (guard, ends) = guard();
        let one = guard.watch("one");
        drop(ends.recv().unwrap());
        let two = guard.watch("two");
        let (_socket, list) = ends.recv().unwrap();
        assert_eq!(left(list), ["one", "two"]);
        drop((one, two));
    }

    #[test]
    fn a_program_that_cannot_be_one_starts_none() {
        assert!(matches!(start(File::open("/dev/null").unwrap().as_fd()), Ok(None)));
        drop(Guard::shared().watch("call"));
        assert!(Guard::shared().lock().line.is_none());
    }

    #[test]
    fn a_call_that_cannot_be_told_from_others_is_not_guarded() {
        let (guard, ends) = guard();
        drop(guard.watch(&"x".repeat(256)));
        drop(guard.watch(""));
        assert!(ends.try_recv().is_err());
    }
}
