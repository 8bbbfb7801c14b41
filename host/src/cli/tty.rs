//! Our own terminal, while a command runs on one of its own.
//!
//! What is typed goes to the command as it is, `Ctrl-C` included: the command's terminal makes of it what its programs have asked
//! for. So ours must do nothing of the kind meanwhile, and must be as before when we are done, however that comes about.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::SIGWINCH;

use crate::exec::{Size, Terminal};

/// The end of a line's input, as a terminal takes it (`VEOF`).
const END: u8 = 0x04;

/// Our terminal, passing on what is typed. It is as before once this is dropped.
pub(super) struct Raw(Termios);

impl Raw {
    /// Makes our terminal raw. None if our standard input is none.
    pub(super) fn begin() -> io::Result<Option<Self>> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin.as_fd())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw)?;
        Ok(Some(Self(before)))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

/// Returns how large our terminal is, or a usual size where we have none.
pub(super) fn size() -> Size {
    let own = tcgetwinsize(io::stdout().as_fd()).or_else(|_| tcgetwinsize(io::stdin().as_fd()));
    match own {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => Size { rows: size.ws_row, columns: size.ws_col },
        _ => Size::default(),
    }
}

/// Passes our standard input on to `terminal`, or the end of it at once where the command is to read nothing. The thread ends
/// with the process: a read from a terminal cannot be taken back.
pub(super) fn forward(terminal: &Terminal, reads: bool) -> io::Result<()> {
    let terminal = terminal.try_clone()?;
    let pass = move || -> io::Result<()> {
        let mut buffer = [0; 4096];
        if reads {
            loop {
                match io::stdin().read(&mut buffer)? {
                    0 => break,
                    count => (&terminal).write_all(&buffer[..count])?,
                }
            }
        }
        (&terminal).write_all(&[END])
    };
    // A terminal that has gone takes nothing, and needs nothing.
    thread::Builder::new().name("typing".into()).spawn(move || drop(pass()))?;
    Ok(())
}

/// Lets `terminal` have the size of ours whenever that changes.
pub(super) fn follow_size(terminal: &Terminal) -> io::Result<()> {
    let terminal = terminal.try_clone()?;
    let (mut changed, writer) = io::pipe()?;
    signal_hook::low_level::pipe::register(SIGWINCH, writer)?;
    let follow = move || {
        let mut buffer = [0; 64];
        while changed.read(&mut buffer).is_ok_and(|count| count > 0) {
            // One that has gone has no size.
            let _ = terminal.resize(size());
        }
    };
    thread::Builder::new().name("size".into()).spawn(follow)?;
    Ok(())
}
