//! Asks the keeper of a process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::control::{Answer, Request, line};
use super::error::ProcessError;
use super::folder::Folder;
use super::id::ProcessId;
use super::record::Keeper;

/// How long a keeper may take to answer what it answers at once, or as soon as a process reads.
const PATIENCE: Duration = Duration::from_secs(60);

/// What waiting for an answer has come to.
#[derive(Debug)]
pub(super) enum Waited {
    /// The keeper has said something, or is gone.
    Over,
    /// The time is up.
    Timeout,
    /// The caller has given up.
    Cancelled,
}

/// A question that was asked.
#[derive(Debug)]
pub(super) struct Asked {
    stream: UnixStream,
    id: ProcessId,
}

/// Asks. `bytes` go along with a write.
///
/// # Errors
///
/// Fails with [`ProcessError::Ended`] if there is no keeper any more.
pub(super) fn ask(
    folder: &Folder,
    id: &ProcessId,
    request: Request,
    bytes: &[u8],
) -> Result<Asked, ProcessError> {
    let ask = || -> io::Result<UnixStream> {
        let mut stream = folder.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&line(&request))?;
        stream.write_all(bytes)?;
        Ok(stream)
    };
    let stream = ask().map_err(|error| translate(id, error))?;
    Ok(Asked { stream, id: id.clone() })
}

/// Makes an error of what a broken connection says.
fn translate(id: &ProcessId, error: io::Error) -> ProcessError {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => ProcessError::Ended(id.clone()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ProcessError::Silent(id.clone()),
        _ => ProcessError::io(format!("failed to speak to the keeper of process `{id}`"), error),
    }
}

impl Asked {
    /// Waits for the answer, or for `cancel` to become readable, for at most this time.
    pub(super) fn wait(
        &self,
        timeout: Option<Duration>,
        cancel: Option<BorrowedFd<'_>>,
    ) -> Result<Waited, ProcessError> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        wait_for(&self.stream, until, cancel).map_err(|error| translate(&self.id, error))
    }

    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// Fails if the keeper says no, and with [`ProcessError::Ended`] if the process has ended.
    pub(super) fn answer(&self) -> Result<Answer, ProcessError> {
        let mut text = Vec::new();
        if let Err(error) = BufReader::new(&self.stream).read_until(b'\n', &mut text) {
            return Err(translate(&self.id, error));
        }
        match serde_json::from_slice(&text) {
            Ok(Answer::Refused(refusal)) if refusal.kind == "already_exited" => {
                Err(ProcessError::Ended(self.id.clone()))
            }
            Ok(Answer::Refused(refusal)) => Err(ProcessError::Refused(refusal)),
            Ok(answer) => Ok(answer),
            // It has ended before it came to that.
            Err(_) => Err(ProcessError::Ended(self.id.clone())),
        }
    }
}

impl AsFd for Asked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Waits until `fd` is readable.
fn wait_for(fd: &impl AsFd, until: Option<Instant>, cancel: Option<BorrowedFd<'_>>) -> io::Result<Waited> {
    loop {
        let mut fds = vec![PollFd::new(fd, PollFlags::IN)];
        fds.extend(cancel.map(|cancel| PollFd::from_borrowed_fd(cancel, PollFlags::IN)));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match poll(&mut fds, left.and_then(|left| Timespec::try_from(left).ok()).as_ref()) {
            Ok(0) => return Ok(Waited::Timeout),
            Ok(_) if fds[0].revents().is_empty() => return Ok(Waited::Cancelled),
            Ok(_) => return Ok(Waited::Over),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until a keeper has let go of everything, but no longer than this. Returns whether it has.
pub(super) fn until_gone(keeper: Keeper, patience: Duration) -> bool {
    let Some(pid) = i32::try_from(keeper.pid).ok().and_then(Pid::from_raw) else { return true };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // Opened before it is compared: the number cannot pass on in between unnoticed.
        Ok(fd) if keeper.is_alive() => {
            let until = Instant::now().checked_add(patience);
            matches!(wait_for(&fd, until, None), Ok(Waited::Over))
        }
        _ => !keeper.is_alive(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> (UnixStream, Asked) {
        let (theirs, stream) = UnixStream::pair().unwrap();
        (theirs, Asked { stream, id: ProcessId::random().unwrap() })
    }

    #[test]
    fn a_keeper_that_is_gone_means_that_the_process_has_ended() {
        let (theirs, asked) = asked();
        drop(theirs);
        assert!(matches!(asked.wait(None, None).unwrap(), Waited::Over));
        assert!(matches!(asked.answer(), Err(ProcessError::Ended(_))));
        let dir = tempfile::tempdir().unwrap();
        let home = crate::home::Home::at(dir.path().to_owned()).unwrap();
        let folder = Folder::of(&home, &asked.id);
        folder.create().unwrap();
        assert!(matches!(ask(&folder, &asked.id, Request::Wait, b""), Err(ProcessError::Ended(_))));
    }

    #[test]
    fn waiting_ends_with_the_time_or_the_callers_will() {
        let (_theirs, asked) = asked();
        let (reader, writer) = io::pipe().unwrap();
        let short = Some(Duration::from_millis(1));
        assert!(matches!(asked.wait(short, Some(reader.as_fd())).unwrap(), Waited::Timeout));
        drop(writer);
        assert!(matches!(asked.wait(None, Some(reader.as_fd())).unwrap(), Waited::Cancelled));
    }

    #[test]
    fn only_the_very_keeper_is_waited_for() {
        let this = Keeper::this();
        assert!(until_gone(Keeper { started: this.started + 1, ..this }, Duration::from_secs(60)));
        assert!(!until_gone(this, Duration::from_millis(1)));
    }
}
