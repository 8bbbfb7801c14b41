//! Whose request it is that has arrived.
//!
//! Over standard input there is one client. Over HTTP a session begins with a request that has no name yet: the library names it when
//! it answers. So the request carries an empty place with it, into which the client that was made for it is put, and whoever
//! sees the answer pass by knows whom the name stands for.

use std::sync::{Arc, OnceLock};

use hostel_plugin_api::Error;
use rmcp::model::ErrorData;

use super::in_use::Held;
use super::session::Client;
use super::sessions::Sessions;
use crate::random;

/// A request over HTTP, on its way in.
#[derive(Default)]
pub(super) struct Arrival {
    /// The task that the request names.
    pub(super) task: Option<String>,
    /// The client that was made for a new session.
    pub(super) made: OnceLock<Arc<Client>>,
    /// Its number among the requests of its session, which is in use as long as this goes with the request.
    pub(super) held: OnceLock<Held>,
}

/// Whom a server serves.
pub(super) enum Bound {
    /// This client.
    To(Arc<Client>),
    /// The client of one session, made with its first request.
    Session {
        /// All of them.
        sessions: Arc<Sessions>,
        /// The one of this session.
        own: OnceLock<Arc<Client>>,
    },
    /// Whoever the one request is from.
    Request(Arc<Sessions>),
}

impl Bound {
    /// Serves the client of one session.
    pub(super) fn session(sessions: &Arc<Sessions>) -> Self {
        Self::Session { sessions: Arc::clone(sessions), own: OnceLock::new() }
    }

    /// Returns whose request it is.
    ///
    /// # Errors
    ///
    /// Fails if there is no place for it to work in.
    pub(super) fn client(&self, arrival: Option<&Arc<Arrival>>) -> Result<Arc<Client>, ErrorData> {
        let failed = |error: Error| ErrorData::internal_error(error.to_string(), None);
        let named = arrival.and_then(|arrival| arrival.task.as_deref());
        match self {
            Self::To(client) => Ok(Arc::clone(client)),
            Self::Request(sessions) => sessions.of_task(named).map_err(failed),
            Self::Session { sessions, own } => {
                if let Some(client) = own.get() {
                    return Ok(Arc::clone(client));
                }
                let client = if let Some(task) = sessions.task(named) {
                    Client::new(sessions.host(), task)
                } else {
                    let unnamed = |error| failed(Error::io("failed to name a task", &error));
                    let name = random::hex::<16>().map_err(unnamed)?;
                    Client::alone(sessions.host(), &format!("mcp-{name}"))
                };
                let client = client.map_err(failed)?;
                let client = Arc::clone(own.get_or_init(|| client));
                if let Some(arrival) = arrival {
                    let _ = arrival.made.set(Arc::clone(&client));
                }
                Ok(client)
            }
        }
    }

    /// Whether a client without a session would share its place with others.
    pub(super) fn wants_sessions(&self) -> bool {
        match self {
            Self::To(_) => false,
            Self::Session { sessions, .. } | Self::Request(sessions) => sessions.task(None).is_none(),
        }
    }
}
