//! A pseudo-terminal: one end for the command, the other for us.
//!
//! It is made by the host and not by a backend, so that its size can be changed while the command runs, wherever that may be: the
//! command's end travels as a descriptor, and the kernel tells the programs on it.
//!
//! A Ctrl-C is a signal to the programs on it. Until the first of them has made it its own, the kernel throws that away; and a call takes its
//! time until then where login files are read or a sandbox is made. So it is looked for here, and cancels the call.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcgetsid, tcsetwinsize};

use super::Cancel;

/// Characters on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { rows: 30, columns: 120 }
    }
}

/// Reads `ROWSxCOLUMNS`.
impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (rows, columns) = text.split_once('x')?;
            let size = Self { rows: rows.parse().ok()?, columns: columns.parse().ok()? };
            (size.rows > 0 && size.columns > 0).then_some(size)
        };
        parse().ok_or_else(|| "`ROWSxCOLUMNS` is expected, such as `30x120`".to_owned())
    }
}

/// Our end of a pseudo-terminal.
#[derive(Debug)]
pub struct Terminal {
    end: OwnedFd,
    unheard: Arc<Cancel>,
}

impl Terminal {
    /// Makes one. Returns our end, and the command's, which must be closed here once the command has it.
    ///
    /// # Errors
    ///
    /// Fails if the system has no terminals left.
    pub fn open(size: Size) -> io::Result<(Self, OwnedFd)> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let commands = rustix::fs::open(name, flags, Mode::empty())?;
        let terminal = Self { end: ours, unheard: Arc::new(Cancel::new()?) };
        terminal.resize(size)?;
        Ok((terminal, commands))
    }

    /// Changes its size. The programs on it are told by `SIGWINCH`.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let Size { rows, columns } = size;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.end, size)?)
    }

    /// Makes another descriptor of our end.
    ///
    /// # Errors
    ///
    /// Fails if the process has none left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { end: self.end.try_clone()?, unheard: Arc::clone(&self.unheard) })
    }

    /// What is cancelled when an interruption is typed that no program hears, since the terminal is nobody's yet.
    #[must_use]
    pub fn unheard(&self) -> Arc<Cancel> {
        Arc::clone(&self.unheard)
    }

    /// Returns whether these bytes, once typed, are an interruption that nobody hears.
    fn goes_unheard(&self, bytes: &[u8]) -> bool {
        let Ok(mode) = tcgetattr(&self.end) else { return false };
        let interrupts =
            [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT].map(|key| mode.special_codes[key]);
        mode.local_modes.contains(LocalModes::ISIG)
            && bytes.iter().any(|byte| *byte != 0 && interrupts.contains(byte))
            // What the kernel says of a terminal that no session has.
            && matches!(tcgetsid(&self.end), Err(Errno::NOTTY))
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// Reads what the programs print. It ends when the last of them is gone.
impl Read for &Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(&self.end, buffer) {
            // What Linux says once nobody has the other end open.
            Err(Errno::IO) => Ok(0),
            other => Ok(other?),
        }
    }
}

/// Types.
impl Write for &Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.goes_unheard(bytes) {
            self.unheard.cancel();
        }
        Ok(rustix::io::write(&self.end, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::termios::{OptionalActions, tcsetattr};

    use super::*;

    #[test]
    fn what_is_typed_is_echoed_and_the_end_is_noticed() {
        let (terminal, commands) = Terminal::open(Size { rows: 5, columns: 7 }).unwrap();
        let size = rustix::termios::tcgetwinsize(&commands).unwrap();
        assert_eq!((size.ws_row, size.ws_col), (5, 7));
        (&terminal).write_all(b"hi\n").unwrap();
        let mut bytes = [0; 16];
        let count = (&terminal).read(&mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"hi\r\n");
        drop(commands);
        assert_eq!((&terminal).read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn an_interruption_that_nobody_hears_is_a_cancellation() {
        let (terminal, commands) = Terminal::open(Size::default()).unwrap();
        let typed = |keys: &[u8]| {
            (&terminal.try_clone().unwrap()).write_all(keys).unwrap();
            terminal.unheard().is_cancelled()
        };
        assert!(!typed(b"abc\x04"));
        let as_it_was = tcgetattr(&commands).unwrap();
        let mut raw = as_it_was.clone();
        raw.make_raw();
        tcsetattr(&commands, OptionalActions::Now, &raw).unwrap();
        assert!(!typed(b"\x03"), "it is a byte like any other");
        tcsetattr(&commands, OptionalActions::Now, &as_it_was).unwrap();
        assert!(typed(b"abc\x03"));
    }

    #[test]
    fn a_size_is_two_positive_numbers() {
        assert_eq!("24x80".parse(), Ok(Size { rows: 24, columns: 80 }));
        for bad in ["", "24", "0x80", "24x0", "axb", "24x80x1", "70000x1"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
