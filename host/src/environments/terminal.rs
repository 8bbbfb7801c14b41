//! A call whose command runs on a terminal of ours.
//!
//! What the command prints comes out at our end of the terminal and not by way of the backend, so somebody has to read there as
//! long as the call lasts, and a little longer: the kernel hands over what was written last only after the writer has gone.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Flow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Environments, SharedIo};
use crate::exec::{Cancel, Terminal};
use crate::registry::Entry;
use crate::world::World;

/// After the end, silence of this length means that nothing more belongs to the command.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// After the end, a child that writes without pause is listened to for this long.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Runs a call on a terminal: `terminal` is our end of it, and `commands` the command's.
///
/// # Errors
///
/// As [`Environments::execute`], and if the backend cannot give a command a terminal.
pub fn execute(
    environments: &Environments,
    world: &World,
    entry: &Entry,
    task: &str,
    mut request: ExecRequest,
    io: &SharedIo,
    (terminal, commands): (&Terminal, OwnedFd),
) -> Result<ExecOutcome, Error> {
    let failed = |error: io::Error| Error::io("failed to run a command on a terminal", &error).not_started();
    // Whoever types may stop it as well.
    let stop = terminal.unheard();
    let (over, going) = io::pipe().map_err(failed)?;
    let pump = Pump {
        terminal: terminal.try_clone().map_err(failed)?,
        io: Arc::clone(io),
        stop: Arc::clone(&stop),
        over,
    };
    let pump = thread::Builder::new().name("terminal".into()).spawn(move || pump.run()).map_err(failed)?;
    if !request.env.iter().any(|(name, _)| name == "TERM") && !knows_colours() {
        request.env.push(("TERM".into(), "xterm-256color".into()));
    }
    request.run_on(commands);
    let theirs: SharedIo = Arc::new(OnTerminal { io: Arc::clone(io), stop });
    let outcome = environments.execute(world, entry, task, request, &theirs);
    drop(going);
    if pump.join().is_err() {
        return Err(Error::new(ErrorKind::OTHER, "reading the terminal panicked"));
    }
    outcome
}

/// Returns whether the terminal that we were started on is one with colours, so that its name will do for ours as well.
fn knows_colours() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// The caller's side of the call, which the reading of the terminal can stop too.
struct OnTerminal {
    io: SharedIo,
    stop: Arc<Cancel>,
}

impl ExecIo for OnTerminal {
    fn output(&self, bytes: &[u8]) -> Flow {
        self.io.output(bytes)
    }

    fn cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stop.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        self.io.deadline()
    }
}

/// Reads the terminal.
struct Pump {
    terminal: Terminal,
    io: SharedIo,
    stop: Arc<Cancel>,
    /// Ends with the call.
    over: PipeReader,
}

impl Pump {
    fn run(self) {
        let mut buffer = vec![0; 64 * 1024];
        let (mut cancelled, mut open) = (false, true);
        // Since when the call is over.
        let mut over: Option<Instant> = None;
        while open || over.is_none() {
            let limit = match over {
                Some(since) if since.elapsed() >= DRAIN_LIMIT => return,
                Some(_) => Timespec::try_from(DRAIN_IDLE).ok(),
                None => None,
            };
            // Silence after the end, or nothing that could be waited for.
            let Ok(Some((ready, ended, cancel))) =
                self.wait(open, over.is_none(), !cancelled, limit.as_ref())
            else {
                return;
            };
            if cancel {
                cancelled = true;
                self.stop.cancel();
            }
            if ready {
                match (&self.terminal).read(&mut buffer) {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        if self.io.output(&buffer[..count]) == Flow::Stop {
                            cancelled = true;
                            self.stop.cancel();
                        }
                    }
                }
            }
            if ended && over.is_none() {
                over = Some(Instant::now());
            }
        }
    }

    /// Waits for output, the end of the call, and its cancellation. None where the time is up.
    fn wait(
        &self,
        output: bool,
        end: bool,
        cancel: bool,
        limit: Option<&Timespec>,
    ) -> io::Result<Option<(bool, bool, bool)>> {
        let cancel = if cancel { self.io.cancel_fd() } else { None };
        let sources = [output.then(|| self.terminal.as_fd()), end.then(|| self.over.as_fd()), cancel];
        loop {
            let mut fds: Vec<PollFd<'_>> =
                sources.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
            match poll(&mut fds, limit) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
                    let mut take =
                        |source: &Option<BorrowedFd<'_>>| source.is_some() && ready.next() == Some(true);
                    let [output, end, cancel] = &sources;
                    return Ok(Some((take(output), take(end), take(cancel))));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
