//! A live environment in a worker, looking like any other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel_plugin_api::{
    CreateEnvironment, Ended, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow, Stdin,
};
use serde::de::DeserializeOwned;

use super::frame::Kind;
use super::lifecycle::{Worker, grant};
use super::link::{Link, Sent, either};
use super::message::Call;
use super::running::WINDOW;
use super::slot::{End, Slot};
use super::values::{Creation, Execution, Outcome};
use crate::registry::ENDED_BY_FORCE;

/// How long making an environment may take: a vendor may have to start a machine.
const CREATING: Duration = Duration::from_secs(600);
/// How long it may take where it is only made to be cleaned up.
const FINDING: Duration = Duration::from_secs(30);
/// How long `cleanup` and `persist` may take, by their contract and a little more.
const LETTING_GO: Duration = Duration::from_secs(16);
/// How long reading or writing a file may take.
const FILES: Duration = Duration::from_secs(120);
/// The largest file that is read through a worker.
const LONGEST_FILE: usize = 256 << 20;
/// How long a worker may take to end a command whose time is up, or that was cancelled, before it is killed. The shared shell
/// session needs three seconds at the most.
const GRACE: Duration = Duration::from_secs(4);
/// How often a caller without a descriptor is asked whether it has cancelled.
const ASKING: Duration = Duration::from_millis(50);
/// Why an environment is made that is to be cleaned up at once; the value of `extra.purpose`.
const CLEANUP: &str = "cleanup";

/// The environment.
pub(super) struct RemoteEnvironment {
    worker: Arc<Worker>,
    provider: String,
    link: Arc<Link>,
    number: u64,
    request: CreateEnvironment,
}

impl RemoteEnvironment {
    pub(super) fn create(
        worker: &Arc<Worker>,
        provider: &str,
        request: CreateEnvironment,
    ) -> Result<Self, Error> {
        Self::made(worker, provider, request, CREATING)
    }

    fn made(
        worker: &Arc<Worker>,
        provider: &str,
        request: CreateEnvironment,
        limit: Duration,
    ) -> Result<Self, Error> {
        let link = worker.live()?;
        let creation = Box::new(Creation::from(request.clone()));
        let call = Call::CreateEnvironment { provider: provider.to_owned(), request: creation };
        let (number, _) = worker.ask_with(&link, &call, &Stdin::Empty, 0, limit)?;
        Ok(Self { worker: Arc::clone(worker), provider: provider.to_owned(), link, number, request })
    }

    /// Fails if the worker in which it lived is no more.
    fn alive(&self) -> Result<(), Error> {
        if !self.link.is_dead() {
            return Ok(());
        }
        let (plugin, task) = (self.worker.plugin(), self.request.task_id.escape_debug());
        let message = format!("the environment of task `{task}` was lost when plugin `{plugin}` crashed");
        let hint = "run the command again: a new environment is made for it";
        Err(Error::new(ErrorKind::LOST, message).with_hint(hint).not_started())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        call: &Call,
        input: &Stdin,
        most: usize,
        limit: Duration,
    ) -> Result<(T, Vec<u8>), Error> {
        self.alive()?;
        self.worker.ask_with(&self.link, call, input, most, limit)
    }

    /// Passes output on, and makes room for more.
    fn pass(&self, sent: &Sent, data: impl IntoIterator<Item = Vec<u8>>, owed: &mut usize, io: &dyn ExecIo) {
        for piece in data {
            if io.output(&piece) == Flow::Stop {
                self.link.say(Kind::STOP, sent.id, b"");
            }
            *owed += piece.len();
            // Not for each piece: half the window keeps the other side busy.
            if *owed >= WINDOW / 4 {
                grant(&self.link, sent.id, std::mem::take(owed));
            }
        }
    }

    /// Waits for the end of a command that was sent.
    fn follow(&self, sent: &Sent, call: &Call, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        let failed = |error: std::io::Error| Error::io("failed to wait for a worker", &error);
        let Some(bell) = sent.slot.bell() else { return Err(failed(std::io::ErrorKind::NotFound.into())) };
        let mut until = io.deadline().and_then(|deadline| deadline.checked_add(GRACE));
        let (mut cancelled, mut owed, mut killed) = (false, 0, false);
        loop {
            let (data, end) = sent.slot.take();
            self.pass(sent, data, &mut owed, io);
            match end {
                Some(End::Reply(text)) => return self.worker.answer::<Outcome>(&text).map(ExecOutcome::from),
                Some(End::Died(death)) => {
                    let error = self.worker.crashed(&death, call);
                    let ended = if cancelled { Ended::INTERRUPTED } else { Ended::TIMEOUT };
                    return Err(if killed {
                        error.with_extra(ENDED_BY_FORCE, ended.0.into())
                    } else {
                        error
                    });
                }
                None => {}
            }
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                if killed {
                    return Err(Error::new(ErrorKind::LOST, "the worker could not be killed"));
                }
                killed = true;
                until = Some(now + GRACE);
                self.link.kill(if cancelled {
                    "did not end a command that was cancelled"
                } else {
                    "did not end a command in time"
                });
                continue;
            }
            let cancel = io.cancel_fd().filter(|_| !cancelled);
            let ask = (cancel.is_none() && !cancelled).then(|| now + ASKING);
            let (_, rung) = either(bell, cancel, until.into_iter().chain(ask).min()).map_err(failed)?;
            if !cancelled && (rung || (ask.is_some() && io.cancelled())) {
                cancelled = true;
                self.link.say(Kind::CANCEL, sent.id, b"");
                let limit = Instant::now() + GRACE;
                until = Some(until.map_or(limit, |until| until.min(limit)));
            }
        }
    }
}

impl Environment for RemoteEnvironment {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        self.alive()?;
        let remaining = io.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let (request, stdin) = Execution::of(request, remaining);
        let call = Call::Execute { environment: self.number, request: Box::new(request) };
        let slot = Slot::with_bell()
            .map_err(|error| Error::io("failed to make a call's event", &error).not_started())?;
        let sent = self.link.send(&call, &stdin, slot);
        drop(stdin);
        let sent = sent.map_err(|unsent| self.worker.unsent(unsent, &call))?;
        let outcome = self.follow(&sent, &call, io);
        self.link.forget(sent.id);
        outcome
    }

    /// Where the worker has crashed, the provider is told in a new one: the environment is made once more, which attaches to
    /// what there is, and is cleaned up.
    fn cleanup(&self) -> Result<(), Error> {
        let let_go = |environment: &Self| {
            let call = Call::Cleanup { environment: environment.number };
            environment.ask(&call, &Stdin::Empty, 0, LETTING_GO).map(|(done, _)| done)
        };
        match let_go(self) {
            Err(error)
                if matches!(error.kind(), ErrorKind::LOST | ErrorKind::CRASHED) && self.link.is_dead() =>
            {
                let mut request = self.request.clone();
                request.extra.insert("purpose".into(), CLEANUP.into());
                let_go(&Self::made(&self.worker, &self.provider, request, FINDING)?)
            }
            done => done,
        }
    }

    fn persist(&self) -> Result<(), Error> {
        if self.link.is_dead() {
            // What could be saved is gone with the worker.
            return Ok(());
        }
        self.ask(&Call::Persist { environment: self.number }, &Stdin::Empty, 0, LETTING_GO)
            .map(|(done, _)| done)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Error> {
        let call = Call::ReadFile { environment: self.number, path: path.to_owned() };
        self.ask::<()>(&call, &Stdin::Empty, LONGEST_FILE, FILES).map(|((), contents)| contents)
    }

    fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), Error> {
        let call = Call::WriteFile { environment: self.number, path: path.to_owned() };
        self.ask(&call, &Stdin::Bytes(contents.to_vec()), 0, FILES).map(|(done, _)| done)
    }
}

impl Drop for RemoteEnvironment {
    fn drop(&mut self) {
        if !self.link.is_dead() {
            // Nobody waits for the answer.
            let _ =
                self.link.send(&Call::Release { environment: self.number }, &Stdin::Empty, Slot::quiet(0));
        }
    }
}
