//! The host's side of one worker: sends calls, takes answers and output in, and finds out how it ended.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::Process;
use hostel_plugin_api::{Error, ErrorKind, Stdin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{IoSlice, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};

use super::errors::Errors;
use super::frame::{self, Frame, Kind, LONGEST_PIECE};
use super::inbox::Inbox;
use super::keeper::{EXITED, GOODBYE, KILL, SIGNALLED};
use super::log;
use super::masks::Masks;
use super::message::{Call, Record};
use super::serve::{LOST_CONNECTION, lock};
use super::slot::{Death, End, Slot};
use super::start::Started;
use crate::signals::signal_name;

/// The longest answer or record. Output and files come in pieces.
const LONGEST_ANSWER: usize = 1 << 20;

/// How long we wait to be told how a worker ended once its socket is closed.
const VERDICT: Duration = Duration::from_secs(2);

/// One worker that is running, or was.
pub(super) struct Link {
    plugin: String,
    socket: Mutex<UnixStream>,
    line: Mutex<UnixStream>,
    calls: Mutex<Calls>,
    errors: Arc<Errors>,
    keeper: Process,
    masks: Arc<Masks>,
    inbox: Inbox,
}

#[derive(Default)]
struct Calls {
    /// The number that was given last.
    last: u32,
    slots: HashMap<u32, Arc<Slot>>,
    death: Option<Arc<Death>>,
    /// Why we killed it.
    killed: Option<String>,
    /// Whether it was told to end.
    parted: bool,
}

impl Calls {
    /// Returns a number that no call has which is in flight; 0 is no call's.
    fn free_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1).max(1);
            if !self.slots.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// A call that was sent.
pub(super) struct Sent {
    pub(super) id: u32,
    pub(super) slot: Arc<Slot>,
}

/// Why a call was not sent.
pub(super) enum Unsent {
    /// The worker is no more.
    Died(Arc<Death>),
    /// It cannot be sent.
    Refused(Error),
}

impl Link {
    /// Takes up the connection to a worker that was started. With it comes where its welcome will show.
    ///
    /// The link is for those who make calls; `on_death` is told when the worker has ended without having been told to.
    pub(super) fn open(
        plugin: &str,
        started: Started,
        masks: Arc<Masks>,
        on_death: impl FnOnce(&Death) + Send + 'static,
    ) -> io::Result<(Arc<Self>, Arc<Slot>)> {
        let Started { keeper, line, socket, errors } = started;
        let inbox = Inbox::new(socket.try_clone()?)?;
        let link = Arc::new(Self {
            plugin: plugin.to_owned(),
            socket: Mutex::new(socket),
            line: Mutex::new(line),
            calls: Mutex::default(),
            errors: Errors::collect(plugin, errors, Arc::clone(&masks)),
            keeper,
            masks,
            inbox,
        });
        let welcome = Arc::new(Slot::quiet(0));
        lock(&link.calls).slots.insert(0, Arc::clone(&welcome));
        let theirs = Arc::clone(&link);
        let read = move || theirs.read(on_death);
        thread::Builder::new().name("worker".into()).spawn(read)?;
        Ok((link, welcome))
    }

    /// Whether it is of no use any more.
    pub(super) fn is_dead(&self) -> bool {
        let calls = lock(&self.calls);
        calls.death.is_some() || calls.killed.is_some()
    }

    /// Returns its keeper's process id.
    pub(super) fn keeper_id(&self) -> u32 {
        self.keeper.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Returns the worker's process id: it is the keeper's only child that is not adopted, and its oldest.
    pub(super) fn process_id(&self) -> Option<u32> {
        let keeper = self.keeper.pid.as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Sends a call, and before it what it reads or writes.
    ///
    /// Nothing was started if this fails.
    pub(super) fn send(&self, call: &Call, input: &Stdin, slot: Slot) -> Result<Sent, Unsent> {
        let slot = Arc::new(slot);
        let mut calls = lock(&self.calls);
        if let Some(death) = &calls.death {
            return Err(Unsent::Died(Arc::clone(death)));
        }
        let id = calls.free_number();
        calls.slots.insert(id, Arc::clone(&slot));
        drop(calls);
        let sent = Sent { id, slot };
        if sent.slot.bell().is_some() {
            self.inbox.need();
        }
        if let Err(error) = self.write(call, input, id) {
            lock(&self.calls).slots.remove(&id);
            if error.kind() == io::ErrorKind::InvalidInput {
                let message = format!("the request is too long: {error}");
                return Err(Unsent::Refused(Error::new(ErrorKind::INVALID_REQUEST, message).not_started()));
            }
            self.kill("does not read what it is sent");
            // The reading thread tells how it ended.
            sent.slot.finish(End::Died(Arc::new(Death {
                how: format!("could not be spoken to: {error}"),
                last_words: None,
                from_outside: false,
            })));
        }
        Ok(sent)
    }

    fn write(&self, call: &Call, input: &Stdin, id: u32) -> io::Result<()> {
        let body = serde_json::to_vec(call)?;
        match input {
            Stdin::Empty => frame::write(&*lock(&self.socket), Kind::CALL, id, &body),
            Stdin::Bytes(bytes) => {
                // Not in one go, so that other calls have their turn in between.
                for piece in bytes.chunks(LONGEST_PIECE) {
                    frame::write(&*lock(&self.socket), Kind::DATA, id, piece)?;
                }
                frame::write(&*lock(&self.socket), Kind::CALL, id, &body)
            }
            Stdin::Fd(descriptor) => self.write_with(Kind::CALL, id, &body, descriptor.as_fd()),
        }
    }

    /// Writes a frame that a descriptor comes along with.
    pub(super) fn write_with(
        &self,
        kind: Kind,
        call: u32,
        body: &[u8],
        descriptor: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let header = frame::header(kind, call, body.len())?;
        let mut socket = lock(&self.socket);
        send_with(&socket, &header, descriptor)?;
        socket.write_all(body)
    }

    /// Says something short about a call. If it fails, the worker is gone, which shows elsewhere.
    pub(super) fn say(&self, kind: Kind, call: u32, body: &[u8]) {
        let _ = frame::write(&*lock(&self.socket), kind, call, body);
    }

    /// Lets a call's number go, for a caller that waits no longer.
    pub(super) fn forget(&self, call: u32) {
        lock(&self.calls).slots.remove(&call);
    }

    /// Ends the worker, and all that is its, at once; `why` says what it did.
    pub(super) fn kill(&self, why: &str) {
        lock(&self.calls).killed.get_or_insert_with(|| why.to_owned());
        // If it fails, the keeper is gone, and the worker with it.
        let _ = lock(&self.line).write_all(&[KILL]);
        self.wake_keeper();
    }

    /// Has the keeper go on if somebody has stopped it. If it fails, it is gone.
    fn wake_keeper(&self) {
        let _ = pidfd_send_signal(&self.keeper.pidfd, Signal::CONT);
    }

    /// Tells the worker that nothing more will come, and does not wait for it, but for what it has said to be in the log.
    pub(super) fn part(&self) {
        self.errors.settle();
        lock(&self.calls).parted = true;
        let _ = lock(&self.line).write_all(&[GOODBYE]);
        self.wake_keeper();
        self.say(Kind::BYE, 0, b"");
    }

    /// Reads until the worker has ended, and then tells everybody.
    fn read(&self, on_death: impl FnOnce(&Death)) {
        let broken = loop {
            if let Err(broken) = self.inbox.next(|frame| self.receive(frame)) {
                break broken;
            }
        };
        if let Some(broken) = broken {
            self.kill(&broken);
        }
        let (how, from_outside) = self.verdict();
        let death = Arc::new(Death { how, last_words: self.errors.last_words(), from_outside });
        let mut calls = lock(&self.calls);
        calls.death = Some(Arc::clone(&death));
        let (slots, parted) = (std::mem::take(&mut calls.slots), calls.parted);
        drop(calls);
        if !parted {
            tracing::warn!(plugin = self.plugin, how = death.how, "the plugin's worker has ended");
            on_death(&death);
        }
        for slot in slots.into_values() {
            slot.finish(End::Died(Arc::clone(&death)));
        }
        // It kills what is left before it ends.
        let _ = retry_on_intr(|| waitpid(Some(self.keeper.pid), WaitOptions::empty()));
    }

    /// Takes a frame in. Fails if the worker broke the rules.
    fn receive(&self, frame: Frame) -> Result<(), String> {
        let rules =
            |kept: bool| if kept { Ok(()) } else { Err("sent more than it was asked for".to_owned()) };
        if frame.kind != Kind::DATA && frame.body.len() > LONGEST_ANSWER {
            return rules(false);
        }
        match frame.kind {
            Kind::DATA => {
                let slot = lock(&self.calls).slots.get(&frame.call).cloned();
                return rules(slot.is_none_or(|slot| slot.push(frame.body)));
            }
            Kind::RESULT | Kind::HELLO => {
                let slot = lock(&self.calls).slots.remove(&frame.call);
                slot.inspect(|slot| slot.finish(End::Reply(Arc::new(frame.body))));
            }
            Kind::LOG => {
                if let Ok(record) = serde_json::from_slice::<Record>(&frame.body) {
                    log::write(&self.plugin, &record, &self.masks);
                }
            }
            // A later version's.
            _ => {}
        }
        Ok(())
    }

    /// Waits for output or the end of a call, and reads for itself if nobody else does. Returns nothing if neither comes in time.
    pub(super) fn wait(&self, sent: &Sent, until: Instant) -> Option<(VecDeque<Vec<u8>>, Option<End>)> {
        let others = || lock(&self.calls).slots.keys().any(|id| *id != sent.id);
        if !sent.slot.has_come() {
            self.inbox.read_until(until, || sent.slot.has_come(), others, |frame| self.receive(frame));
        }
        sent.slot.wait(until)
    }

    /// Finds out how the worker ended; it is killed if it has not, for it can do nothing without its socket.
    /// Returns with it whether somebody else has killed it.
    fn verdict(&self) -> (String, bool) {
        let mut told = self.told();
        if told.is_none() {
            self.kill("closed its connection to Hostel");
            told = self.told();
        }
        let killed = lock(&self.calls).killed.clone().map(|why| format!("{why}, and was killed"));
        match (told, killed) {
            // Whatever we meant to do: this was quicker.
            (Some(Told::Signal(signal)), _) if signal != SIGKILL => {
                (format!("crashed ({})", signal_name(signal)), false)
            }
            (Some(Told::Exit(LOST_CONNECTION)), _) => ("lost its connection to Hostel".to_owned(), false),
            (Some(Told::Nothing), _) => ("was killed from outside".to_owned(), true),
            (_, Some(killed)) => (killed, false),
            (Some(Told::Signal(signal)), None) => (format!("crashed ({})", signal_name(signal)), true),
            (Some(Told::Exit(code)), None) => (format!("ended its process (exit code {code})"), false),
            (None, None) => ("closed its connection to Hostel".to_owned(), false),
        }
    }

    /// Waits for what the keeper says. None if it says nothing in time.
    fn told(&self) -> Option<Told> {
        let mut line = lock(&self.line).try_clone().ok()?;
        line.set_read_timeout(Some(VERDICT)).ok()?;
        let mut report = [0; 2];
        match line.read_exact(&mut report) {
            Ok(()) if report[0] == SIGNALLED => Some(Told::Signal(report[1].into())),
            Ok(()) if report[0] == EXITED => Some(Told::Exit(report[1].into())),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => None,
            Ok(()) | Err(_) => Some(Told::Nothing),
        }
    }
}

/// What a keeper has to say of its worker.
enum Told {
    Exit(i32),
    Signal(i32),
    /// It is gone itself.
    Nothing,
}

/// The signal with which we kill.
const SIGKILL: i32 = 9;

/// Sends the beginning of a frame together with a descriptor.
fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let parts = [IoSlice::new(bytes)];
    let sent = retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    (&*socket).write_all(&bytes[sent..])
}

/// Waits until one of the descriptors shows something, or the time is up. Returns whether the first one does, and the second.
pub(super) fn either(
    first: BorrowedFd<'_>,
    second: Option<BorrowedFd<'_>>,
    until: Option<Instant>,
) -> io::Result<(bool, bool)> {
    let mut fds = vec![PollFd::from_borrowed_fd(first, PollFlags::IN)];
    fds.extend(second.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    match poll(&mut fds, left.and_then(|left| Timespec::try_from(left).ok()).as_ref()) {
        Err(rustix::io::Errno::INTR) => Ok((false, false)),
        Err(error) => Err(error.into()),
        Ok(_) => {
            let shows = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
            Ok((shows(0), shows(1)))
        }
    }
}
