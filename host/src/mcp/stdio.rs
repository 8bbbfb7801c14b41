//! A server for the program that has started it, over standard input and output.
//!
//! Whatever is written to our standard output is read as the protocol. So the real one is kept aside, for this alone, and what plugins
//! and programs that we start print there goes to standard error. The client ends the server by closing our input; where it was killed the
//! kernel does.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rmcp::service::{ServerInitializeError, serve_server};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use super::arrival::Bound;
use super::frames::Frames;
use super::server::{Server, Shared};
use super::session::Client;
use super::{runtime, signals};
use crate::Host;

/// Descriptors below this are the standard ones.
const ABOVE_STANDARD: i32 = 3;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The selected backend is unknown.
    #[error(transparent)]
    Backend(#[from] hostel_plugin_api::Error),
    /// The operating system says no.
    #[error("failed to serve on standard input and output: {0}")]
    Io(#[from] io::Error),
}

/// Serves one client in the environment of `task`, until it closes our standard input or a signal comes. Calls that are in flight then have
/// two seconds to end. The environments of `host` are left to the caller.
///
/// # Errors
///
/// Fails if it could not be started.
pub fn serve(host: &Host, task: &str) -> Result<(), StdioError> {
    let client = Client::new(host, task)?;
    let (input, output) = aside()?;
    let stop = signals::stop()?;
    let frames = Frames::start(File::from(input), File::from(output))?;
    runtime::run(async move {
        tokio::spawn(frames.clone().end(stop, Arc::clone(&client.calls)));
        let shared = Arc::<Shared>::default();
        loop {
            let server = Server::new(&shared, Bound::To(Arc::clone(&client)));
            match serve_server(server, frames.clone()).await {
                Ok(running) => break drop(running.waiting().await),
                Err(
                    ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::TransportError { .. },
                ) => break,
                // Something else came first, or what came did not fit: the client may do better.
                Err(error) => tracing::debug!(%error, "the client has not begun"),
            }
        }
    })?;
    Ok(())
}

/// Takes the standard streams aside, and puts others in their place.
fn aside() -> io::Result<(OwnedFd, OwnedFd)> {
    let own = |fd: std::os::fd::BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, ABOVE_STANDARD);
    let (input, output) = (own(stdin())?, own(stdout())?);
    dup2_stdin(File::open("/dev/null")?.as_fd())?;
    dup2_stdout(stderr())?;
    Ok((input, output))
}
