//! Asks a person on the terminal.
//!
//! What is secret is not shown while it is typed. The terminal is given back as it was whatever ends the question, a signal
//! too: nobody should be left with one that shows nothing.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// What a terminal sends for Ctrl-C where it makes no signal of it, and for the end of input.
const INTERRUPT: u8 = 3;
const END: u8 = 4;

/// Longer than any secret.
const LONGEST: usize = 64 * 1024;

/// Whether somebody is there to be asked.
pub(super) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Forgets what was typed so far: it was no answer to what is asked next.
pub(super) fn forget_typed() -> io::Result<()> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    Ok(tcflush(&terminal, QueueSelector::IFlush)?)
}

/// Asks for one line. Fails with [`io::ErrorKind::Interrupted`] where the person, or a signal, ended it.
pub(super) fn ask(question: &str, secret: bool) -> io::Result<String> {
    ask_within(question, secret, None)
}

/// As [`ask`]. Fails with [`io::ErrorKind::TimedOut`] where nobody has answered within `limit`.
pub(super) fn ask_within(question: &str, secret: bool, limit: Option<Duration>) -> io::Result<String> {
    let until = limit.map(|limit| Instant::now() + limit);
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let (bell, ring) = UnixStream::pair()?;
    ring.set_nonblocking(true)?;
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::low_level::pipe::register(signal, ring.try_clone()?)?;
    }
    write!(terminal, "{question}")?;
    let quiet = Quiet::new(&terminal, secret)?;
    let line = read_line(&terminal, &bell, until);
    drop(quiet);
    if secret || line.is_err() {
        // The line end that was typed was not shown either.
        writeln!(terminal)?;
    }
    line
}

fn read_line(mut terminal: &File, bell: &UnixStream, until: Option<Instant>) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut fds = [PollFd::new(terminal, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let [typed, signalled] = fds.map(|fd| !fd.revents().is_empty());
        if signalled {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut bytes = [0; 1024];
        let read = if typed { terminal.read(&mut bytes)? } else { continue };
        let bytes = &bytes[..read];
        if bytes.contains(&INTERRUPT) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let end = bytes.iter().position(|byte| matches!(*byte, b'\n' | b'\r' | END));
        line.extend_from_slice(&bytes[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            return String::from_utf8(line).map_err(|_| io::Error::other("the answer is not valid UTF-8"));
        }
        if line.len() > LONGEST {
            return Err(io::Error::other("the answer is too long"));
        }
    }
}

/// A terminal that makes no signals, and shows nothing if that is wanted, until this is dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(terminal: &'a File, secret: bool) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut now = before.clone();
        // Signals come as characters, so that whoever types one gets the terminal back first.
        now.local_modes -= LocalModes::ISIG;
        if secret {
            now.local_modes -= LocalModes::ECHO;
            // Line by line the system edits, and would hold Ctrl-C back until the end of the line.
            now.local_modes -= LocalModes::ICANON;
            now.special_codes[SpecialCodeIndex::VMIN] = 1;
            now.special_codes[SpecialCodeIndex::VTIME] = 0;
        } else {
            now.local_modes |= LocalModes::ISIG;
        }
        tcsetattr(terminal, OptionalActions::Drain, &now)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(self.terminal.as_fd(), OptionalActions::Drain, &self.before);
    }
}
