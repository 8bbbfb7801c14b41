//! What a keeper does as long as its process runs: wait for everything at once.
//!
//! The call's end, the starter's end, questions, signals and times all come in one `poll`, and nothing in the loop waits for
//! anything else. So a process can always be asked for and ended, whatever it or its reader does.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{end_call, signal_call};
use hostel_plugin_api::{Error, ErrorKind, ExecOutcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGKILL, SIGTERM};

use super::bell::Bell;
use super::call::CallIo;
use super::connection::{Connection, Stage};
use super::control::{Answer, line};
use super::error::Refusal;
use super::folder::Folder;
use super::input::Input;
use super::notices::{self, Event};
use super::record::{Lifetime, Record, Source};
use super::start::Report;
use super::text;
use super::watch::completion;
use crate::environments::Environments;
use crate::exec::Terminal;
use crate::home::Home;

/// A call of which nothing bad was heard for so long has started, if its backend does not tell.
const STARTING: Duration = Duration::from_millis(300);

/// Between killing a process and giving its backend the word.
const FORCING: Duration = Duration::from_secs(1);

/// How long a call that nobody waits for any more may take to end.
const ABANDONING: Duration = Duration::from_secs(15);

/// The most connections at once that are not answered, besides those that wait for the end.
const MOST_CONNECTIONS: usize = 128;

/// What of the output a notice of the end is made of, in bytes.
const TAIL: u64 = 8192;

/// What the keeper listens to, besides its call.
pub(super) struct Ears {
    pub(super) listener: UnixListener,
    pub(super) link: Option<UnixStream>,
    pub(super) signals: UnixStream,
}

/// What a service is made of.
pub(super) struct Parts {
    pub(super) record: Record,
    pub(super) io: Arc<CallIo>,
    pub(super) bell: Arc<Bell>,
    pub(super) input: Option<Input>,
    pub(super) terminal: Option<Terminal>,
    /// When the lease ends.
    pub(super) lease: Option<Instant>,
    pub(super) grace: Duration,
}

/// Looks after one process.
pub(super) struct Service {
    pub(super) parts: Parts,
    pub(super) connections: Vec<Connection>,
    pub(super) killing: Option<Killing>,
    home: Home,
    folder: Folder,
    outcome: Option<Result<ExecOutcome, Error>>,
    /// Whether the starter has been told.
    reported: bool,
    /// Since when nobody waits for the start any more.
    abandoned: Option<Instant>,
}

/// An end that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Killing {
    source: Source,
    /// When force is used, if it was not yet and will be.
    force_at: Option<Instant>,
    /// Whether it was killed already.
    forced: bool,
}

impl Service {
    pub(super) fn new(home: &Home, folder: &Folder, parts: Parts) -> Self {
        Self {
            parts,
            connections: Vec::new(),
            killing: None,
            home: home.clone(),
            folder: folder.clone(),
            outcome: None,
            reported: false,
            abandoned: None,
        }
    }

    /// Serves until the process has ended, everybody who waits has been told, and its environment is let go.
    pub(super) fn run(mut self, mut ears: Ears, environments: &Environments) {
        while !self.is_over() {
            if self.wait(&mut ears).is_err() {
                // Without `poll` nobody could end it any more.
                self.parts.io.cancel();
                break;
            }
            self.look_at_call(&mut ears);
            self.look_at_clock();
            self.retry_writes();
            self.connections.retain(|connection| !connection.is_over());
        }
        self.finish(ears);
        let left = environments.close();
        if !left.is_empty() && self.folder.path().is_dir() {
            self.parts.record.warnings.extend(left);
            self.save();
        }
    }

    /// Whether there is nothing more to wait for.
    fn is_over(&self) -> bool {
        let given_up = self.abandoned.is_some_and(|since| since.elapsed() >= ABANDONING);
        let forced = self.killing.is_none_or(|killing| killing.force_at.is_none());
        given_up || (self.outcome.is_some() && forced)
    }

    /// Waits for something to happen, and takes in what came from outside.
    fn wait(&mut self, ears: &mut Ears) -> io::Result<()> {
        // Whoever waits for the end must not keep those out who want to bring it about.
        let more = self.connections.len() - self.waiting() < MOST_CONNECTIONS;
        let listened = if more { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.parts.bell.as_fd(), PollFlags::IN),
            PollFd::new(&ears.signals, PollFlags::IN),
            PollFd::new(&ears.listener, listened),
        ];
        let fixed = fds.len();
        fds.extend(self.connections.iter().map(|connection| PollFd::new(connection, PollFlags::IN)));
        fds.extend(ears.link.iter().map(|link| PollFd::new(link, PollFlags::IN)));
        let left = self.next_time().map(|at| at.saturating_duration_since(Instant::now()));
        match poll(&mut fds, left.and_then(|left| Timespec::try_from(left).ok()).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let asked = fixed + self.connections.len();
        if ready[0] {
            self.parts.bell.silence();
        }
        if ready[1] {
            // Only a bell.
            let _ = ears.signals.read(&mut [0; 64]);
            self.kill(Source::Kill);
        }
        if ready[asked..].contains(&true) {
            self.lose_starter(ears);
        }
        for (index, _) in ready[fixed..asked].iter().enumerate().filter(|(_, ready)| **ready) {
            self.serve(index);
        }
        if ready[2]
            && let Ok((stream, _)) = ears.listener.accept()
        {
            self.connections.extend(Connection::new(stream));
        }
        Ok(())
    }

    /// Returns when something is due.
    fn next_time(&self) -> Option<Instant> {
        let (_, calling) = self.parts.io.started();
        let unsure = !self.reported && self.outcome.is_none() && self.abandoned.is_none();
        let starting = calling.filter(|_| unsure).map(|since| since + STARTING);
        let forcing = self.killing.and_then(|killing| killing.force_at);
        let lease = self.parts.lease.filter(|_| self.killing.is_none());
        let abandoning = self.abandoned.map(|since| since + ABANDONING);
        [starting, forcing, lease, abandoning, self.next_answer()].into_iter().flatten().min()
    }

    /// Acts on what the call has come to.
    fn look_at_call(&mut self, ears: &mut Ears) {
        if let Some(place) = self.parts.io.take_place() {
            self.parts.record.cwd = place.cwd.or(self.parts.record.cwd.take());
            self.parts.record.warnings.extend(place.warnings);
            self.save();
        }
        for event in self.parts.io.take_events() {
            // What matches too often is told by its end instead.
            self.parts.record.notify |= matches!(event, Event::Disabled { .. });
            self.tell(event);
        }
        if let Some(complaint) = self.parts.io.complaint() {
            self.complain(complaint);
        }
        if self.outcome.is_none()
            && let Some(outcome) = self.parts.io.take_outcome()
        {
            self.outcome = Some(outcome);
            if let Some(killing) = &mut self.killing
                && killing.force_at.is_some()
                && signal_call(&self.parts.record.call_id, SIGCONT) == 0
            {
                // Nothing is left that needs time to end.
                killing.force_at = None;
            }
        }
        let (started, calling) = self.parts.io.started();
        let silent = calling.is_some_and(|since| since.elapsed() >= STARTING);
        if !self.reported && self.outcome.is_none() && (started || silent) {
            self.report(&mut ears.link);
        }
    }

    /// Acts on what is due.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if self.killing.is_none() && self.parts.lease.is_some_and(|until| now >= until) {
            self.kill(Source::Lease);
        }
        if let Some(killing) = &mut self.killing
            && killing.force_at.is_some_and(|at| now >= at)
        {
            killing.force_at = None;
            match self.outcome {
                Some(_) => end_call(&self.parts.record.call_id),
                // What the kernel then says of the shell is the truth; the backend's own way is for what is left.
                None if !killing.forced && signal_call(&self.parts.record.call_id, SIGKILL) > 0 => {
                    killing.forced = true;
                    killing.force_at = now.checked_add(FORCING);
                }
                None => self.parts.io.cancel(),
            }
        }
    }

    /// Begins to end the process. Only the first reason counts.
    pub(super) fn kill(&mut self, source: Source) {
        if self.killing.is_some() || self.outcome.is_some() {
            return;
        }
        let told = signal_call(&self.parts.record.call_id, SIGTERM);
        let mut force_at = Instant::now().checked_add(self.parts.grace);
        if told == 0 {
            // It runs elsewhere, or not yet: only its backend can end it.
            self.parts.io.cancel();
        }
        if told == 0 || self.parts.grace.is_zero() {
            force_at = None;
        }
        self.killing = Some(Killing { source, force_at, forced: false });
    }

    /// The starter's end of the socket is closed.
    fn lose_starter(&mut self, ears: &mut Ears) {
        ears.link = None;
        if self.reported {
            self.kill(Source::Lifetime);
        } else if self.abandoned.is_none() {
            self.abandoned = Some(Instant::now());
            self.parts.io.cancel();
        }
    }

    /// Tells the starter that the process is there, and keeps the socket only if the process depends on it.
    fn report(&mut self, link: &mut Option<UnixStream>) {
        if self.reported || self.abandoned.is_some() {
            return;
        }
        self.reported = true;
        let warnings = self.parts.record.warnings.clone();
        let report = Report::Started { record: Box::new(self.parts.record.clone()), warnings };
        // One that is gone shows as the end of its socket.
        let _ = link.as_mut().map(|link| link.write_all(&line(&report)));
        if self.parts.record.lifetime != Lifetime::Host {
            *link = None;
        }
    }

    /// Writes down the end and tells everybody.
    fn finish(&mut self, mut ears: Ears) {
        if self.outcome.is_none() {
            end_call(&self.parts.record.call_id);
        }
        let unknown = || Err(Error::new(ErrorKind::LOST, "its keeper could not wait for it"));
        let outcome = self.outcome.take().unwrap_or_else(unknown);
        if self.abandoned.is_some() || (!self.reported && outcome.is_err()) {
            // Whoever is told may look for it at once.
            self.folder.remove();
            if let (false, Err(error)) = (self.reported, &outcome) {
                let _ = ears.link.as_mut().map(|link| link.write_all(&line(&Report::from(error))));
            }
            return;
        }
        let complaint = self.parts.io.complaint();
        self.parts.record.finish(&outcome, self.killing.map(|killing| killing.source));
        if let Some(complaint) = complaint {
            self.complain(complaint);
        }
        self.save();
        for event in self.parts.io.take_events() {
            self.tell(event);
        }
        if self.parts.record.notify {
            let output = self.tail();
            let Record { status, exit_code, .. } = self.parts.record;
            self.tell(Event::Completed { status, exit_code, output });
        }
        // Whoever asks from now on reads the record.
        drop(ears.listener);
        for connection in &mut self.connections {
            match connection.stage {
                Stage::Waiting(_) => connection.answer(&Answer::Done),
                _ => connection.refuse(Refusal::new("already_exited", "the process has ended")),
            }
        }
        self.report(&mut ears.link);
    }

    /// Returns the end of the output, for a notice.
    fn tail(&self) -> String {
        let read = super::reader::LogReader::open(self.folder.path()).and_then(|log| log.tail(TAIL));
        let (bytes, before) = read.unwrap_or_default();
        completion(&text::decode(&bytes, before, false)).to_owned()
    }

    fn tell(&self, event: Event) {
        if let Err(error) = notices::add(&self.home, &self.parts.record, event) {
            tracing::warn!(%error, "a notice could not be written");
        }
    }

    /// Adds a warning about the log, in place of the last one.
    fn complain(&mut self, complaint: String) {
        let warnings = &mut self.parts.record.warnings;
        let (_, kind) = complaint.split_once(' ').unwrap_or_default();
        if let Some(before) = warnings.iter_mut().find(|warning| warning.ends_with(kind)) {
            *before = complaint;
        } else {
            warnings.push(complaint);
            self.save();
        }
    }

    pub(super) fn save(&self) {
        if let Err(error) = self.folder.write_record(&self.parts.record) {
            tracing::warn!(%error, "a process's record could not be written");
        }
    }
}
