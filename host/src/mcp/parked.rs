//! Calls that wait for a person after their request was answered.
//!
//! From the protocol of 2026-07-28 on, a server asks by answering a request with its question, and the client makes the request once
//! more with the answer. In between the call waits here, under a name that cannot be guessed. Whoever does not come back loses
//! nothing but the call: its question runs out of time, which is a no.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::elicit::Ask;
use super::running::Running;
use super::session::Client;
use crate::random;

/// How long the result of a call is kept whose question has run out of time.
const KEPT: Duration = Duration::from_secs(60);

/// The most calls that wait. The one that has waited longest goes.
const MOST: usize = 256;

/// The calls that wait.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<String, Waiting>>);

struct Waiting {
    client: Arc<Client>,
    running: Running,
    ask: Ask,
}

impl Parked {
    /// Takes a call in, and returns the name under which it waits.
    ///
    /// # Errors
    ///
    /// Fails if the kernel gives no random bytes.
    pub(super) fn put(&self, client: &Arc<Client>, running: Running, ask: Ask) -> io::Result<String> {
        let name = random::hex::<16>()?;
        let now = Instant::now();
        let mut waiting = self.waiting();
        waiting.retain(|_, one| one.ask.until + KEPT > now);
        if waiting.len() >= MOST {
            let oldest = waiting.iter().min_by_key(|(_, one)| one.ask.until).map(|(name, _)| name.clone());
            oldest.and_then(|name| waiting.remove(&name));
        }
        waiting.insert(name.clone(), Waiting { client: Arc::clone(client), running, ask });
        Ok(name)
    }

    /// Returns the call of `client` that waits under `name`. None if there is none.
    pub(super) fn take(&self, client: &Arc<Client>, name: &str) -> Option<(Running, Ask)> {
        let mut waiting = self.waiting();
        if !waiting.get(name).is_some_and(|one| Arc::ptr_eq(&one.client, client)) {
            return None;
        }
        waiting.remove(name).map(|one| (one.running, one.ask))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
