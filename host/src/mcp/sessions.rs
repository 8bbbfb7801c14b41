//! The clients of a server over HTTP.
//!
//! Nothing says that a client is gone for good: connections come and go, and between two requests there may be none. So a session
//! ends when its client says so, or when nothing was heard of it for a while: no request, no open stream, no call in flight.
//! Where all its streams have closed under a call, the client is given a moment to come back before the call is cancelled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostel_plugin_api::Error;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use super::session::Client;
use crate::Host;

/// How long a client whose streams have all closed has to come back before its calls are cancelled. Clients are told to try after
/// a second.
const AWAY: Duration = Duration::from_secs(5);

/// How long a client has to read the last answers of a session that it has ended.
const ANSWERING: Duration = Duration::from_secs(2);

/// How long a session may take to close.
const CLOSING: Duration = Duration::from_secs(5);

/// The task of clients that have no session and name no task.
const SHARED_TASK: &str = "mcp";

/// How a client is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// By the name of its session.
    Session(String),
    /// By its task: it has no session.
    Task(String),
}

/// All clients.
pub(super) struct Sessions {
    host: Host,
    /// The task of all, if there is but one.
    task: Option<String>,
    idle: Duration,
    manager: Arc<LocalSessionManager>,
    known: Mutex<HashMap<Key, Arc<Attended>>>,
    /// Rings when there is a new one.
    bell: Notify,
}

/// One client, and whether anything is heard of it.
pub(super) struct Attended {
    client: Arc<Client>,
    /// Its requests and streams that are open.
    open: AtomicUsize,
    /// Those of them that wait for an answer.
    asking: watch::Sender<usize>,
    last_heard: Mutex<Instant>,
}

/// A request or stream that is open, until this is dropped.
pub(super) struct Open {
    attended: Arc<Attended>,
    is_asking: bool,
}

impl Open {
    /// Whose it is.
    pub(super) fn client(&self) -> &Client {
        &self.attended.client
    }
}

impl Sessions {
    pub(super) fn new(
        host: &Host,
        task: Option<String>,
        idle: Duration,
        manager: Arc<LocalSessionManager>,
    ) -> Arc<Self> {
        let (host, known, bell) = (host.clone(), Mutex::default(), Notify::new());
        Arc::new(Self { host, task, idle, manager, known, bell })
    }

    /// The home, its backends and its environments.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the task of a client that names this one, or none.
    pub(super) fn task<'a>(&'a self, named: Option<&'a str>) -> Option<&'a str> {
        self.task.as_deref().or(named)
    }

    /// Returns the client of requests that have no session.
    ///
    /// # Errors
    ///
    /// Fails if the selected backend is unknown.
    pub(super) fn of_task(&self, named: Option<&str>) -> Result<Arc<Client>, Error> {
        let task = self.task(named).unwrap_or(SHARED_TASK);
        let key = Key::Task(task.to_owned());
        let mut known = self.known();
        if let Some(attended) = known.get(&key) {
            attended.heard();
            return Ok(Arc::clone(&attended.client));
        }
        let client = Client::new(&self.host, task)?;
        known.insert(key, Attended::new(Arc::clone(&client)));
        self.bell.notify_one();
        Ok(client)
    }

    /// Notes whose session this is.
    pub(super) fn began(&self, session: &str, client: &Arc<Client>) {
        self.known().insert(Key::Session(session.to_owned()), Attended::new(Arc::clone(client)));
        self.bell.notify_one();
    }

    /// Notes a request of a session, and whether it waits for an answer. None if there is no such session.
    pub(super) fn open(&self, session: &str, is_asking: bool) -> Option<Open> {
        let attended = self.known().get(&Key::Session(session.to_owned())).cloned()?;
        attended.open.fetch_add(1, Ordering::SeqCst);
        attended.asking.send_modify(|asking| *asking += usize::from(is_asking));
        attended.heard();
        Some(Open { attended, is_asking })
    }

    /// Ends a session that its client has ended. It is not known any more at once, and the rest goes on without anybody's waiting.
    pub(super) fn ended(self: &Arc<Self>, session: &str) {
        let key = Key::Session(session.to_owned());
        let Some(attended) = self.known().remove(&key) else { return };
        let sessions = Arc::clone(self);
        tokio::spawn(async move { sessions.end(&key, attended).await });
    }

    /// Cancels the calls of all clients, and waits for their end.
    pub(super) async fn end_all(&self) {
        let all: Vec<_> = self.known().drain().map(|(_, attended)| Arc::clone(&attended.client)).collect();
        let end = async |client: Arc<Client>| {
            client.calls.end().await;
            // Nobody can come back to a session of a server that has ended.
            if let Ok(Some(line)) = spawn_blocking(move || client.let_go()).await {
                tracing::warn!("{line}");
            }
        };
        let ends = all.into_iter().map(|client| tokio::spawn(end(client)));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
    }

    /// Ends what nothing is heard of, for ever.
    pub(super) async fn reap(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let due = |attended: &Attended| attended.idle_since().map_or(now, |since| since) + self.idle;
            let (mut over, mut next) = (Vec::new(), None::<Instant>);
            for (key, attended) in self.known().iter() {
                match due(attended) {
                    at if at <= now => over.push(key.clone()),
                    at => next = Some(next.map_or(at, |next| next.min(at))),
                }
            }
            for key in over {
                tracing::info!(?key, "nothing was heard of a client for long");
                let Some(attended) = self.known().remove(&key) else { continue };
                self.end(&key, attended).await;
            }
            match next {
                // A new one can be due no earlier.
                Some(next) => sleep_until(next).await,
                None => self.bell.notified().await,
            }
        }
    }

    /// Ends one that is not known any more: its calls are cancelled and answered, and its environment is let go, unless others use it.
    async fn end(&self, key: &Key, attended: Arc<Attended>) {
        let client = Arc::clone(&attended.client);
        client.end().await;
        if let Key::Session(session) = key {
            // The sender is there. Who does not read its answers loses them.
            let mut asking = attended.asking.subscribe();
            let _ = timeout(ANSWERING, asking.wait_for(|asking| *asking == 0)).await;
            let id = session.as_str().into();
            // A session whose client reads nothing hears nothing either.
            match timeout(CLOSING, self.manager.close_session(&id)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the session was closed before"),
                Err(_) => tracing::warn!("a session did not close in time"),
            }
        }
        let task = client.session.task();
        if self.known().values().any(|other| other.client.session.task() == task) {
            return;
        }
        // Its thread goes on if nobody waits.
        if let Ok(Some(line)) = spawn_blocking(move || client.let_go()).await {
            tracing::warn!("{line}");
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, Arc<Attended>>> {
        lock(&self.known)
    }
}

impl Attended {
    fn new(client: Arc<Client>) -> Arc<Self> {
        let (open, asking) = (AtomicUsize::new(0), watch::Sender::new(0));
        Arc::new(Self { client, open, asking, last_heard: Mutex::new(Instant::now()) })
    }

    fn heard(&self) {
        *lock(&self.last_heard) = Instant::now();
    }

    /// Returns since when nothing was heard of it. None if something is going on.
    fn idle_since(&self) -> Option<Instant> {
        let busy = self.open.load(Ordering::SeqCst) > 0 || self.client.calls.count() > 0;
        (!busy).then(|| *lock(&self.last_heard))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let attended = Arc::clone(&self.attended);
        attended.asking.send_modify(|asking| *asking -= usize::from(self.is_asking));
        attended.heard();
        if attended.open.fetch_sub(1, Ordering::SeqCst) > 1 || attended.client.calls.count() == 0 {
            return;
        }
        // While the server ends there is no runtime any more, and nothing to wait for.
        let Ok(runtime) = Handle::try_current() else { return };
        let left = Instant::now();
        runtime.spawn(async move {
            sleep_until(left + AWAY).await;
            let back = attended.open.load(Ordering::SeqCst) > 0 || *lock(&attended.last_heard) > left;
            if !back {
                attended.client.calls.cancel_all();
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
