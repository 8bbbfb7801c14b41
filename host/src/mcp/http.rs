//! A server for many clients, over streamable HTTP.
//!
//! Each session has a task of its own, which ends with it. The protocol of 2026-07-28 knows no sessions: a client that speaks it must say
//! where it works (header `Hostel-Task`), or shares the task `mcp` with others that do not. Clients that speak both are
//! told to begin a session, unless the server has but one task.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use hostel_plugin_api::Error;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::arrival::{Arrival, Bound};
use super::attended::attended;
use super::door::Door;
use super::events::Events;
use super::message::request_id;
use super::server::{Server, Shared};
use super::sessions::Sessions;
use super::token::Token;
use super::{refusal, runtime, signals};
use crate::Host;

pub use super::token::TokenError;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// Names the task of a client.
const TASK_HEADER: &str = "hostel-task";

/// The longest name of a task in a header, in bytes.
const LONGEST_TASK: usize = 256;

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The most bytes of a request.
const LARGEST: usize = 64 * 1024 * 1024;

/// After how long a client that has lost a stream tries again.
const RETRY: Duration = Duration::from_secs(1);

/// How many messages wait for a client that reads slowly.
const WAITING: usize = 64;

/// How long open connections may take to end once all calls have.
const CLOSING: Duration = Duration::from_secs(2);

/// What the caller settles.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen: an address and a port, or a port of this machine alone.
    pub listen: String,
    /// The task of all clients; None gives each session its own.
    pub task: Option<String>,
    /// Names under which the server may be reached, besides `localhost` and addresses.
    pub names: Vec<String>,
    /// After how long a session ends of which nothing is heard.
    pub idle: Duration,
}

/// Where a server can be reached.
#[derive(Debug)]
pub struct Listening {
    /// Its address.
    pub url: String,
    /// The file with the token that clients show. None where a variable holds it.
    pub token: Option<PathBuf>,
    /// Whether other machines can reach it.
    pub is_public: bool,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The selected backend is unknown.
    #[error(transparent)]
    Backend(#[from] Error),
    /// There is no secret for clients to show.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The address cannot be used.
    #[error("failed to listen at `{0}`: {1}")]
    Listen(String, #[source] io::Error),
    /// The operating system says no.
    #[error("failed to serve: {0}")]
    Io(#[from] io::Error),
}

/// Serves clients until a signal comes, and calls `announce` once they can connect. Calls that are in flight then are cancelled. The
/// environments of `host` are left to the caller.
///
/// # Errors
///
/// Fails if it could not be started.
pub fn serve(host: &Host, options: Options, announce: impl FnOnce(&Listening)) -> Result<(), HttpError> {
    host.world().selected()?;
    let (token, path) = Token::find(&host.world().home)?;
    let listener =
        listen(&options.listen).map_err(|error| HttpError::Listen(options.listen.clone(), error))?;
    let address = listener.local_addr()?;
    let stop = signals::stop()?;
    let is_public = !address.ip().is_loopback();
    announce(&Listening { url: format!("http://{address}{PATH}"), token: path, is_public });
    let door = Door::new(token, options.names);
    runtime::run(run(host.clone(), door, options.task, options.idle, listener, stop))??;
    Ok(())
}

/// What looks after the requests.
struct Hall {
    door: Door,
    sessions: Arc<Sessions>,
    /// Serves those with sessions, and those that begin one.
    lasting: StreamableHttpService<Server, LocalSessionManager>,
    /// Serves those of the protocol that knows none.
    single: StreamableHttpService<Server, NeverSessionManager>,
}

async fn run(
    host: Host,
    door: Door,
    task: Option<String>,
    idle: Duration,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut manager = LocalSessionManager::default().with_event_store(Arc::new(Events::default()));
    manager.session_config = session_config();
    let manager = Arc::new(manager);
    let sessions = Sessions::new(&host, task, idle, Arc::clone(&manager));
    let streams = CancellationToken::new();
    let config = || {
        let mut config = StreamableHttpServerConfig::default();
        // Looked at by the door.
        config.allowed_hosts.clear();
        config.max_request_body_bytes = LARGEST;
        config.sse_retry = Some(RETRY);
        config.cancellation_token = streams.clone();
        config
    };
    let shared = Arc::<Shared>::default();
    let (bound, ours) = (Arc::clone(&sessions), Arc::clone(&shared));
    let lasting =
        StreamableHttpService::new(move || Ok(Server::new(&ours, Bound::session(&bound))), manager, config());
    let bound = Arc::clone(&sessions);
    let mut single = config();
    single.legacy_session_mode = false;
    let single = StreamableHttpService::new(
        move || Ok(Server::new(&shared, Bound::Request(Arc::clone(&bound)))),
        Arc::default(),
        single,
    );
    tokio::spawn(Arc::clone(&sessions).reap());
    let hall = Arc::new(Hall { door, sessions: Arc::clone(&sessions), lasting, single });
    let app = Router::new().fallback(take).with_state(hall);
    // An answer comes in parts, and the last one is not to wait until the client has confirmed the first.
    let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|connection| {
        // Without it answers are slower, and nothing else.
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    let mut serving = tokio::spawn(async move { serving.await });
    tokio::select! {
        ended = &mut serving => return ended?,
        () = stop.cancelled() => {}
    }
    sessions.end_all().await;
    streams.cancel();
    match tokio::time::timeout(CLOSING, serving).await {
        Ok(ended) => ended?,
        Err(_) => Ok(()),
    }
}

fn session_config() -> SessionConfig {
    let mut config = SessionConfig::default();
    // It would also end a session whose command prints nothing for that long.
    config.keep_alive = None;
    config.channel_capacity = WAITING;
    config.sse_retry = Some(RETRY);
    config
}

/// Takes one request.
async fn take(State(hall): State<Arc<Hall>>, mut request: Request) -> Response {
    let task = match let_in(&hall.door, &request) {
        Ok(task) => task,
        Err((status, why)) => {
            refusal::drain(request).await;
            return refused(status, why);
        }
    };
    let arrival = Arc::new(Arrival { task, ..Arrival::default() });
    request.extensions_mut().insert(Arc::clone(&arrival));
    let (request, body) = match refusal::read(request, LARGEST).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let version = text(request.headers(), VERSION_HEADER).unwrap_or_default();
    // A request can say in its body that it could do with another.
    let is_known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
    if !is_known && !version.is_empty() && request.method() != Method::POST {
        return refusal::refused(StatusCode::BAD_REQUEST, "there is no such version of the protocol".into());
    }
    if version >= ProtocolVersion::NO_INITIALIZE.as_str() {
        let response = hall.single.handle(request).await.map(Body::new);
        return refusal::told(response, body.as_ref()).await;
    }
    let session = text(request.headers(), SESSION_HEADER).map(str::to_owned);
    let is_asking = request.method() == Method::POST;
    let open = session.as_deref().and_then(|session| hall.sessions.open(session, is_asking));
    if let (Some(session), None) = (&session, &open) {
        tracing::debug!(session, "a request of no session");
        return refusal::refused(StatusCode::NOT_FOUND, "there is no such session".into());
    }
    if let (&Method::DELETE, Some(session)) = (request.method(), &session) {
        drop(open);
        // What it has in flight is ended and answered first.
        hall.sessions.ended(session);
        // Done, and not only taken on: some clients take anything else for a failure.
        return StatusCode::NO_CONTENT.into_response();
    }
    if let (Some(open), Some(id)) = (&open, body.as_deref().and_then(request_id)) {
        let Some(held) = open.client().in_use.take(&id, false) else {
            return refusal::in_use(id);
        };
        let _ = arrival.held.set(held);
    }
    let response = hall.lasting.handle(request).await.map(Body::new);
    let response = refusal::told(response, body.as_ref()).await;
    drop(body);
    let open = open.or_else(|| {
        let (client, session) = (arrival.made.get()?, text(response.headers(), SESSION_HEADER)?);
        hall.sessions.began(session, client);
        hall.sessions.open(session, is_asking)
    });
    match open {
        Some(open) => response.map(|body| attended(body, open)),
        None => response,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Lets a request in, and returns the task that it names.
///
/// # Errors
///
/// Fails with the status and the reason of the refusal.
fn let_in(door: &Door, request: &Request) -> Result<Option<String>, (StatusCode, &'static str)> {
    door.check(request.headers(), request.uri())?;
    if request.uri().path().trim_end_matches('/') != PATH {
        return Err((StatusCode::NOT_FOUND, "the protocol is spoken at `/mcp`"));
    }
    task(request.headers()).map_err(|()| (StatusCode::BAD_REQUEST, "`Hostel-Task` is no name of a task"))
}

/// Returns the task that a request names.
fn task(headers: &HeaderMap) -> Result<Option<String>, ()> {
    let Some(task) = headers.get(TASK_HEADER) else { return Ok(None) };
    match task.to_str() {
        Ok(task) if !task.is_empty() && task.len() <= LONGEST_TASK => Ok(Some(task.to_owned())),
        _ => Err(()),
    }
}

fn refused(status: StatusCode, why: &'static str) -> Response {
    let mut response = refusal::refused(status, why.into());
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}

/// Listens at an address and a port, or a port of this machine alone.
fn listen(at: &str) -> io::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = match at.parse::<u16>() {
        Ok(port) => vec![(IpAddr::from(Ipv4Addr::LOCALHOST), port).into()],
        Err(_) => at.to_socket_addrs()?.collect(),
    };
    let listener = TcpListener::bind(addresses.as_slice())?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
