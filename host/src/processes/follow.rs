//! Reads a process's output as it comes, until the process has ended.
//!
//! The log is a file, and a file tells nobody that it has grown; the kernel does, for a whole folder. The end is heard from
//! the keeper, since the output may have ended long before.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use super::client::{Asked, ask};
use super::control::Request;
use super::error::ProcessError;
use super::folder::Folder;
use super::id::ProcessId;
use super::notices;
use super::reader::LogReader;

/// The most that is returned at once.
const PIECE: u64 = 256 * 1024;

/// Some output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// How many bytes in front of it were dropped before they could be read.
    pub dropped: u64,
    /// The output.
    pub bytes: Vec<u8>,
}

/// Follows the output of one process.
#[derive(Debug)]
pub struct Follower {
    folder: Folder,
    id: ProcessId,
    changes: OwnedFd,
    /// None once the process has ended.
    asked: Option<Asked>,
    position: u64,
}

impl Follower {
    /// Begins at byte `from` of the output.
    pub(super) fn new(folder: Folder, id: ProcessId, from: u64) -> Result<Self, ProcessError> {
        let watch = || -> io::Result<OwnedFd> {
            let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
            let changes = inotify::init(flags)?;
            let what = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
            inotify::add_watch(&changes, folder.path(), what)?;
            Ok(changes)
        };
        let changes = watch()
            .map_err(|error| ProcessError::io(format!("failed to watch the log of process `{id}`"), error))?;
        let asked = match ask(&folder, &id, Request::Wait, b"") {
            Ok(asked) => Some(asked),
            Err(ProcessError::Ended(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { folder, id, changes, asked, position: from })
    }

    /// Waits for output, and returns it; None once there will be no more, or `cancel` has become readable.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn next(&mut self, cancel: Option<BorrowedFd<'_>>) -> Result<Option<Piece>, ProcessError> {
        let id = self.id.clone();
        let failed =
            |error: io::Error| ProcessError::io(format!("failed to read the log of process `{id}`"), error);
        loop {
            let log = LogReader::open(self.folder.path()).map_err(failed)?;
            let bytes = log.bytes(self.position, PIECE).map_err(failed)?;
            if !bytes.is_empty() {
                let from = self.position.max(log.begin());
                let dropped = from - self.position;
                self.position = from + bytes.len() as u64;
                return Ok(Some(Piece { dropped, bytes }));
            }
            let Some(asked) = &self.asked else {
                notices::consume_completion(&self.folder);
                return Ok(None);
            };
            let mut fds = vec![PollFd::new(&self.changes, PollFlags::IN), PollFd::new(asked, PollFlags::IN)];
            fds.extend(cancel.map(|cancel| PollFd::from_borrowed_fd(cancel, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if ready.get(2) == Some(&true) {
                return Ok(None);
            }
            if ready[0] {
                // That there was something is all that counts.
                let _ = rustix::io::read(&self.changes, &mut [0_u8; 4096]);
            }
            if ready[1] {
                self.asked = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::super::log::LogWriter;
    use super::*;
    use crate::home::Home;

    #[test]
    fn output_is_read_as_it_comes_and_then_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        let id = ProcessId::random().unwrap();
        let folder = Folder::of(&home, &id);
        folder.create().unwrap();
        let listener = folder.listen().unwrap();
        let mut log = LogWriter::new(folder.path(), 10);
        log.append(b"one");
        let mut follower = Follower::new(folder, id, 1).unwrap();
        let piece = |follower: &mut Follower| follower.next(None).unwrap();
        assert_eq!(piece(&mut follower), Some(Piece { dropped: 0, bytes: b"ne".to_vec() }));
        let writer = std::thread::spawn(move || {
            log.append(b" two");
            log
        });
        let mut read = Vec::new();
        while read.len() < 4 {
            read.extend(piece(&mut follower).unwrap().bytes);
        }
        assert_eq!(read, b" two");
        let mut log = writer.join().unwrap();
        log.append(b"0123456789abcdef");
        let late = piece(&mut follower).unwrap();
        assert!(late.dropped > 0 && late.bytes.ends_with(b"def"));
        assert_eq!(late.dropped + late.bytes.len() as u64, 16);
        drop(listener);
        assert_eq!(piece(&mut follower), None);
    }

    #[test]
    fn the_caller_can_give_up() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        let id = ProcessId::random().unwrap();
        let folder = Folder::of(&home, &id);
        folder.create().unwrap();
        let _listener = folder.listen().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let mut follower = Follower::new(folder, id, 0).unwrap();
        assert_eq!(follower.next(Some(reader.as_fd())).unwrap(), None);
    }
}
