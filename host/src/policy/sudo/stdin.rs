//! Puts the lines with the password in front of what a command reads.
//!
//! Bytes are simply longer then. A descriptor has nothing in front of it: the command gets a pipe instead, and a thread that
//! copies. That thread must not outlive the command, which may well end without having read anything.

use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::thread;

use hostel_plugin_api::Stdin;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::secret::Secret;

/// What a pipe holds.
const BUFFER: usize = 64 * 1024;

/// Returns a standard input that begins with `lines`. Of a descriptor, more may be read than the command takes.
pub(super) fn in_front(lines: Secret, stdin: Stdin) -> io::Result<Stdin> {
    let source = match stdin {
        Stdin::Empty => return Ok(Stdin::Bytes(lines.followed_by(&[]))),
        Stdin::Bytes(bytes) => return Ok(Stdin::Bytes(lines.followed_by(&bytes))),
        Stdin::Fd(source) => source,
    };
    let (reader, writer) = io::pipe()?;
    thread::Builder::new().name("stdin".into()).spawn(move || {
        // Ends where nobody reads any more, and nobody is there to be told of anything else.
        let _ = copy(lines, &source, writer);
    })?;
    Ok(Stdin::Fd(reader.into()))
}

fn copy(lines: Secret, source: &OwnedFd, mut to: PipeWriter) -> io::Result<()> {
    lines.write_to(&to)?;
    let mut buffer = vec![0; BUFFER];
    while wait(source, &to)? {
        match rustix::io::read(source, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for something to read. Returns false once nobody would read it.
fn wait(source: &OwnedFd, to: &PipeWriter) -> io::Result<bool> {
    loop {
        // Without events to wait for, a pipe still tells that its other end is closed.
        let mut fds = [PollFd::new(to, PollFlags::empty()), PollFd::new(source, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => return Ok(fds[0].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    fn lines() -> Secret {
        Secret::first_line("pw").lines(2)
    }

    #[test]
    fn bytes_and_nothing_become_longer() {
        assert!(
            matches!(in_front(lines(), Stdin::Empty).unwrap(), Stdin::Bytes(bytes) if bytes == b"pw\npw\n")
        );
        let given = Stdin::Bytes(b"\xff\0".to_vec());
        assert!(
            matches!(in_front(lines(), given).unwrap(), Stdin::Bytes(bytes) if bytes == b"pw\npw\n\xff\0")
        );
    }

    #[test]
    fn a_descriptor_is_read_behind_the_lines() {
        let mut file = tempfile::tempfile().unwrap();
        let long = "x".repeat(300_000);
        file.write_all(long.as_bytes()).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let Stdin::Fd(fd) = in_front(lines(), Stdin::Fd(file.into())).unwrap() else { panic!() };
        let mut read = String::new();
        File::from(fd).read_to_string(&mut read).unwrap();
        assert_eq!(read, format!("pw\npw\n{long}"));
    }

    #[test]
    fn a_source_that_says_nothing_is_let_go_with_its_reader() {
        let (theirs, mut ours) = io::pipe().unwrap();
        let Stdin::Fd(fd) = in_front(lines(), Stdin::Fd(theirs.into())).unwrap() else { panic!() };
        let mut front = [0; 6];
        File::from(fd).read_exact(&mut front).unwrap();
        assert_eq!(&front, b"pw\npw\n");
        // Both ends of theirs are closed now, or will be: that is an event.
        poll(&mut [PollFd::new(&ours, PollFlags::empty())], None).unwrap();
        assert_eq!(ours.write_all(b"late").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
