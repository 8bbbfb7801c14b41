//! One connection to a keeper, which must not wait for it.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::net::{SendFlags, send};

use super::control::{Answer, LARGEST_WRITE, LONGEST_LINE, Request, line};
use super::error::Refusal;

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Stage {
    /// The question is not all there.
    Asking,
    /// The bytes of a write are not all there.
    Carrying(usize),
    /// A write waits for room since then.
    Parked(Instant),
    /// The answer comes with the process's end, or at the latest then.
    Waiting(Option<Instant>),
    /// It was answered, or is broken.
    Over,
}

/// What has come.
#[derive(Debug, PartialEq)]
pub(super) enum Come {
    /// Nothing that is whole.
    Nothing,
    /// A question, other than a write.
    Question(Request),
    /// A write, whose bytes are in [`Connection::bytes`].
    Write,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    pub(super) stage: Stage,
    pub(super) bytes: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, stage: Stage::Asking, bytes: Vec::new() })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> Come {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Come::Nothing;
            }
            Ok(count) if count > 0 && matches!(self.stage, Stage::Asking | Stage::Carrying(_)) => {
                self.bytes.extend_from_slice(&buffer[..count]);
            }
            // The other side is gone, or says more than it may.
            _ => {
                self.stage = Stage::Over;
                return Come::Nothing;
            }
        }
        if matches!(self.stage, Stage::Asking)
            && let Some(question) = self.question()
        {
            return Come::Question(question);
        }
        match self.stage {
            Stage::Carrying(wanted) if self.bytes.len() >= wanted => {
                self.bytes.truncate(wanted);
                Come::Write
            }
            _ => Come::Nothing,
        }
    }

    /// Takes the question out of what has come, and goes on to its bytes if it is a write.
    fn question(&mut self) -> Option<Request> {
        let Some(end) = self.bytes.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n') else {
            if self.bytes.len() >= LONGEST_LINE {
                self.refuse(Refusal::new("invalid_request", "the question is too long"));
            }
            return None;
        };
        let question: Vec<u8> = self.bytes.drain(..=end).collect();
        match serde_json::from_slice(&question) {
            Ok(Request::Write { bytes }) if bytes <= LARGEST_WRITE => {
                self.stage = Stage::Carrying(bytes);
                None
            }
            Ok(Request::Write { .. }) => {
                self.refuse(Refusal::new("invalid_request", "too much is written at once"));
                None
            }
            Ok(request) => Some(request),
            Err(error) => {
                let message = format!("the question is not understood: {error}");
                let hint = "the process was started by another version of Hostel";
                self.refuse(Refusal::new("invalid_request", message).with_hint(hint));
                None
            }
        }
    }

    /// Answers, and is done.
    pub(super) fn answer(&mut self, answer: &Answer) {
        // It always has room for one answer; where nobody reads it, nobody wants it.
        let _ = send(&self.stream, &line(answer), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        self.stage = Stage::Over;
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.answer(&Answer::Refused(refusal));
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pair() -> (UnixStream, Connection) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        (theirs, Connection::new(ours).unwrap())
    }

    #[test]
    fn a_write_may_come_in_any_pieces() {
        let (mut theirs, mut connection) = pair();
        let message = [line(&Request::Write { bytes: 5 }), b"a\nb\0c".to_vec()].concat();
        for (at, byte) in message.iter().enumerate() {
            theirs.write_all(&[*byte]).unwrap();
            let last = at + 1 == message.len();
            assert_eq!(connection.read(), if last { Come::Write } else { Come::Nothing });
        }
        assert_eq!(connection.bytes, b"a\nb\0c");
        assert_eq!(connection.read(), Come::Nothing, "nothing there is no end");
        assert!(!connection.is_over());
    }

    #[test]
    fn what_is_not_understood_is_answered() {
        for text in
            [b"nonsense\n".to_vec(), vec![b'x'; LONGEST_LINE], line(&Request::Write { bytes: 1 << 30 })]
        {
            let (mut theirs, mut connection) = pair();
            theirs.write_all(&text).unwrap();
            assert_eq!(connection.read(), Come::Nothing);
            assert!(connection.is_over());
            drop(connection);
            let mut answer = String::new();
            // Closing with unread bytes may show as an error after the answer.
            let _ = theirs.read_to_string(&mut answer);
            assert!(answer.contains("invalid_request"), "{answer}");
        }
    }

    #[test]
    fn whoever_is_gone_is_noticed() {
        let (mut theirs, mut connection) = pair();
        theirs.write_all(&line(&Request::Wait)).unwrap();
        assert_eq!(connection.read(), Come::Question(Request::Wait));
        connection.stage = Stage::Waiting(None);
        drop(theirs);
        assert_eq!(connection.read(), Come::Nothing);
        assert!(connection.is_over());
    }
}
