//! The reading end of the worker's socket: bytes, and the descriptors that come with some of them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// More descriptors than these are never under way: one for each call, and each call takes its own.
const MOST: usize = 64;

pub(super) struct Incoming {
    socket: UnixStream,
    /// In the order in which their calls were sent, which is the order in which the calls are read.
    descriptors: VecDeque<OwnedFd>,
}

impl Incoming {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, descriptors: VecDeque::new() }
    }

    /// Takes the descriptor of the call that was read last.
    pub(super) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }
}

impl Read for Incoming {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&self.socket, &mut [IoSliceMut::new(to)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors.take(MOST.saturating_sub(self.descriptors.len())));
            }
        }
        Ok(received.bytes)
    }
}
