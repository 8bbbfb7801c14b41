//! Hands over the worker's descriptors.
//!
//! The keeper needs a duplicate of each socket on which it makes a call. The kernel lets a process take another's descriptors
//! (`pidfd_getfd`) only where it could trace it, and a worker is closed to that (`PR_SET_DUMPABLE`), so that the user's other
//! processes cannot read its secrets; only root can. So a small process shares the worker's table of descriptors, and none of its
//! memory, and sends what the keeper asks for. Foreign code can get at that table and so can disturb it or slip in another
//! socket; it gains nothing, for whatever comes is used to reach an allowed address, and for nothing else.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

use rustix::io::{Errno, IoSliceMut};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, send, sendmsg,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::super::serve::lock;
use super::raw;

/// An answer takes as long as it takes to be scheduled.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands in an answer with a descriptor, and in one without.
const HERE: &[u8] = b"y";
const NONE: &[u8] = b"n";

/// Does the courier's work until the keeper has gone, or the worker.
pub(super) fn serve(socket: &OwnedFd, worker: Pid) {
    // Only a name.
    let _ = rustix::thread::set_name(c"hostel-courier");
    // It keeps the worker's sockets open, so it must not outlive it.
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(worker) {
        return;
    }
    hand_over(socket);
}

fn hand_over(socket: &OwnedFd) {
    loop {
        let mut number = [0; 4];
        match recv(socket, &mut number, RecvFlags::empty()) {
            Ok((4, _)) => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        let sent = raw::with_descriptor(i32::from_le_bytes(number), |descriptor| {
            let descriptors = [descriptor];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(&descriptors));
            sendmsg(socket, &[IoSlice::new(HERE)], &mut control, SendFlags::NOSIGNAL)
        });
        if !matches!(sent, Some(Ok(_))) && send(socket, NONE, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

/// The keeper's end of a courier.
pub(super) struct Courier(Mutex<Option<OwnedFd>>);

impl Courier {
    pub(super) fn new(socket: OwnedFd) -> Result<Self, Errno> {
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        Ok(Self(Mutex::new(Some(socket))))
    }

    /// Returns a duplicate of the worker's descriptor of this number. `EBADF`: there is none; `EACCES`: the courier is gone.
    pub(super) fn fetch(&self, number: i32) -> Result<OwnedFd, Errno> {
        let mut held = lock(&self.0);
        let socket = held.as_ref().ok_or(Errno::ACCESS)?;
        let Ok(answer) = ask(socket, number) else {
            // A late answer would be taken for that to another question.
            *held = None;
            return Err(Errno::ACCESS);
        };
        answer.ok_or(Errno::BADF)
    }
}

fn ask(socket: &OwnedFd, number: i32) -> Result<Option<OwnedFd>, Errno> {
    rustix::io::retry_on_intr(|| send(socket, &number.to_le_bytes(), SendFlags::NOSIGNAL))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if received.bytes == 0 { Err(Errno::PIPE) } else { Ok(descriptor) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn a_descriptor_comes_by_its_number_and_a_missing_one_does_not() {
        let (ours, theirs) = pair();
        // On a thread here, which shares them too.
        let served = std::thread::spawn(move || hand_over(&theirs));
        let courier = Courier::new(ours).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let copy = courier.fetch(writer.as_raw_fd()).unwrap();
        drop(writer);
        std::fs::File::from(copy).write_all(b"x").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        for missing in [-1, i32::MAX] {
            assert_eq!(courier.fetch(missing).err(), Some(Errno::BADF));
        }
        drop(courier);
        served.join().unwrap();
    }

    #[test]
    fn a_courier_that_is_gone_gives_nothing() {
        let (ours, theirs) = pair();
        let courier = Courier::new(ours).unwrap();
        drop(theirs);
        for _ in 0..2 {
            assert_eq!(courier.fetch(0).err(), Some(Errno::ACCESS));
        }
    }
}
