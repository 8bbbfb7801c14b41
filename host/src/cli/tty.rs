//! Our own terminal, while a command runs on one of its own.
//!
//! What is typed goes to the command as it is, `Ctrl-C` included: the command's terminal makes of it what its programs have asked
//! for. So ours must do nothing of the kind meanwhile, and must be as before when we are done, however that comes about.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::exec::Size;

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
