//! What is typed while a command runs on a terminal of its own.
//!
//! It goes to that terminal as it is. What is typed after the command has ended is for whoever reads next, so passing on must end
//! with the call and not a byte later. A read cannot be taken back: so keys, the end and a change of our size are waited for at
//! once, and a terminal that takes nothing more is waited for in the same way.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::SigId;
use signal_hook::consts::SIGWINCH;

use super::tty::size;
use crate::exec::Terminal;

/// The end of a line's input, as a terminal takes it (`VEOF`).
const END: u8 = 0x04;

/// Passes on what is typed, and the size of our terminal, until it is dropped.
#[derive(Debug)]
pub(super) struct Typing {
    /// Its end is the thread's.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    resized: SigId,
}

impl Typing {
    /// Passes our standard input on to `terminal`, or the end of it at once where the command is to read nothing.
    pub(super) fn begin(terminal: &Terminal, reads: bool) -> io::Result<Self> {
        let source = if reads { Some(io::stdin().as_fd().try_clone_to_owned()?) } else { None };
        Self::of(source, terminal)
    }

    fn of(source: Option<OwnedFd>, terminal: &Terminal) -> io::Result<Self> {
        let terminal = terminal.try_clone()?;
        let (over, stop) = io::pipe()?;
        let (resized, writer) = io::pipe()?;
        let waiting = if source.is_some() { VecDeque::new() } else { VecDeque::from([END]) };
        let pass = Pass { source, terminal, over, resized, waiting };
        let id = signal_hook::low_level::pipe::register(SIGWINCH, writer)?;
        let mut typing = Self { stop: Some(stop), thread: None, resized: id };
        // A terminal that has gone takes nothing, and needs nothing.
        typing.thread = Some(thread::Builder::new().name("typing".into()).spawn(move || drop(pass.run()))?);
        Ok(typing)
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.resized);
        self.stop = None;
        // One that panicked reads no more either.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread's side.
struct Pass {
    /// None where there is nothing more to read.
    source: Option<OwnedFd>,
    terminal: Terminal,
    over: PipeReader,
    resized: PipeReader,
    /// What the terminal has not taken yet. As long as there is any, nothing more is read.
    waiting: VecDeque<u8>,
}

impl Pass {
    fn run(mut self) -> io::Result<()> {
        loop {
            let (over, resized, ready) = self.wait()?;
            if over {
                return Ok(());
            }
            if resized {
                let _ = self.resized.read(&mut [0; 64])?;
                self.terminal.resize(size())?;
            }
            match self.waiting.front() {
                // More than one byte might find no room, and be waited for with nothing but the terminal in view.
                Some(byte) if ready => {
                    (&self.terminal).write_all(&[*byte])?;
                    self.waiting.pop_front();
                }
                None if ready => self.read(),
                _ => {}
            }
        }
    }

    fn read(&mut self) {
        let Some(source) = &self.source else { return };
        let mut buffer = [0; 4096];
        match rustix::io::read(source, &mut buffer) {
            Ok(count) if count > 0 => self.waiting.extend(&buffer[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            // One that can no longer be read has ended as well.
            Ok(_) | Err(_) => {
                self.source = None;
                self.waiting.push_back(END);
            }
        }
    }

    /// Waits. Returns whether it is over, whether our size has changed, and whether there is something to read, or room for what
    /// was read.
    fn wait(&self) -> io::Result<(bool, bool, bool)> {
        let mut fds = vec![PollFd::new(&self.over, PollFlags::IN), PollFd::new(&self.resized, PollFlags::IN)];
        if !self.waiting.is_empty() {
            fds.push(PollFd::new(&self.terminal, PollFlags::OUT));
        } else if let Some(source) = &self.source {
            fds.push(PollFd::new(source, PollFlags::IN));
        }
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
        Ok((ready(0), ready(1), ready(2)))
    }
}

#[cfg(test)]
mod tests {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

    use super::*;
    use crate::exec::Size;

    /// Makes a terminal that passes bytes on as they are.
    fn raw() -> (Terminal, OwnedFd) {
        let (terminal, commands) = Terminal::open(Size::default()).unwrap();
        let mut mode = tcgetattr(&commands).unwrap();
        mode.make_raw();
        tcsetattr(&commands, OptionalActions::Now, &mode).unwrap();
        (terminal, commands)
    }

    fn read(commands: &OwnedFd, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let mut buffer = [0; 64];
            let count = rustix::io::read(commands, &mut buffer).unwrap();
            bytes.extend(&buffer[..count]);
        }
        bytes
    }

    #[test]
    fn keys_and_their_end_reach_the_command() {
        let (terminal, commands) = raw();
        let (source, mut keys) = io::pipe().unwrap();
        let _typing = Typing::of(Some(source.into()), &terminal).unwrap();
        keys.write_all(b"\x03ab\r").unwrap();
        assert_eq!(read(&commands, 4), b"\x03ab\r");
        drop(keys);
        assert_eq!(read(&commands, 1), [END]);
    }

    #[test]
    fn without_a_source_there_is_only_the_end() {
        let (terminal, commands) = raw();
        let _typing = Typing::of(None, &terminal).unwrap();
        assert_eq!(read(&commands, 1), [END]);
    }

    #[test]
    fn what_is_typed_after_the_call_is_left() {
        let (terminal, commands) = raw();
        let (source, mut keys) = io::pipe().unwrap();
        let typing = Typing::of(Some(source.try_clone().unwrap().into()), &terminal).unwrap();
        keys.write_all(b"now").unwrap();
        assert_eq!(read(&commands, 3), b"now");
        drop(typing);
        keys.write_all(b"later").unwrap();
        drop(keys);
        let mut rest = String::new();
        (&source).read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "later");
    }

    #[test]
    fn a_command_that_reads_nothing_does_not_hold_up_the_end() {
        let (terminal, commands) = raw();
        let (source, mut keys) = io::pipe().unwrap();
        // As much as a pipe holds, and more than a terminal does.
        keys.write_all(&vec![b'x'; 60_000]).unwrap();
        let typing = Typing::of(Some(source.into()), &terminal).unwrap();
        // It has begun to pass on, and cannot come to an end with that.
        poll(&mut [PollFd::new(&commands, PollFlags::IN)], None).unwrap();
        drop(typing);
    }
}
