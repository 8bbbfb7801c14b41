//! The start: before any foreign code is there, the worker gives the keeper what it needs to judge.
//!
//! They speak over the *gate*, a pair of sockets of which each has an end from its birth. The worker sends the
//! list of hosts, its memory and the courier's other end, and says which of its descriptors is the listener; the keeper fetches
//! that by the courier, and says so. Then the gate is closed. Meanwhile the worker confines itself in all other ways; before it goes on to its
//! library it waits for the keeper's word. A worker that has nothing to hand over closes the gate at once.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use hostel_plugin_api::serde_json;
use rustix::io::{Errno, IoSliceMut, read, retry_on_intr, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, PidfdGetfdFlags, dumpable_behavior, getpid, pidfd_getfd, pidfd_open,
    set_dumpable_behavior,
};

use super::super::super::permissions::Network;
use super::super::syscalls;
use super::caller::Worker;
use super::courier::{self, Courier};
use super::judge::Judge;
use super::raw;

/// The longest list of hosts, in bytes.
const LONGEST: usize = 64 << 10;

/// The keeper has taken over.
const TAKEN: [u8; 1] = *b"t";

/// Why nothing was handed over.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum HandoverError {
    /// The keeper has not taken over what cannot be taken back.
    #[error("its keeper does not judge its connections: {0}")]
    Keeper(io::Error),
}

/// Makes a gate: the keeper's end and the worker's.
pub(in super::super) fn gate() -> io::Result<(OwnedFd, OwnedFd)> {
    // Its messages have ends, and nothing is torn apart.
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Whether this system can hand over a plugin's calls, of one that starts programs or of one that does not.
///
/// It is tried, on a thread that ends with it: what a kernel's version promises, a container may forbid.
#[must_use]
pub(in super::super) fn supported(programs: bool) -> bool {
    const ALLOW: [seccompiler::sock_filter; 1] =
        [seccompiler::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];
    let tried = std::thread::spawn(|| raw::install(&ALLOW).is_ok()).join();
    tried.unwrap_or(false) && (!programs || can_take().is_ok())
}

/// Whether descriptors of other processes can be taken at all: those of programs that the plugin starts have no courier.
fn can_take() -> Result<(), Errno> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(&own, own.as_raw_fd(), PidfdGetfdFlags::empty()).map(drop)
}

/// Installs the filter that hands calls over.
type Listen = fn() -> Result<OwnedFd, syscalls::FilterError>;

/// What the worker does: calls are handed over, and the keeper has been told so.
pub(in super::super) struct Handover {
    gate: OwnedFd,
    /// The keeper takes a duplicate of it. Whoever held it beside the keeper could answer in its place.
    listener: OwnedFd,
}

impl Handover {
    /// Sends what is there, starts the courier, and has the calls that `listen` names handed to the keeper from here on, in this thread and
    /// all that it starts. This must be the only thread.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not hand them over; nothing is held up then.
    pub(in super::super) fn begin(
        gate: OwnedFd,
        network: &Network,
        programs: bool,
        listen: Listen,
    ) -> io::Result<Self> {
        if programs {
            can_take()?;
        }
        let (theirs, ours) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let memory = own_memory()?;
        let network = serde_json::to_vec(network)?;
        let descriptors = [memory.as_fd(), theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&gate, &[IoSlice::new(&network)], &mut control, SendFlags::NOSIGNAL)?;
        drop((memory, theirs));
        let worker = getpid();
        raw::split(|| courier::serve(&ours, worker))?;
        // The table of descriptors is one: closed here, it would be closed there.
        let _ = ours.into_raw_fd();
        let listener = listen().map_err(io::Error::other)?;
        // By plain `write` and `read` from here on: what else sends may have to wait for the keeper. If it fails the keeper is gone, which
        // `finish` finds out.
        let _ = write(&gate, &listener.as_raw_fd().to_le_bytes());
        Ok(Self { gate, listener })
    }

    /// Waits until the keeper has taken over.
    pub(in super::super) fn finish(self) -> Result<(), HandoverError> {
        let mut answer = [0; 1];
        let taken = retry_on_intr(|| read(&self.gate, &mut answer));
        drop(self.listener);
        match taken {
            Ok(1) if answer == TAKEN => Ok(()),
            Ok(_) => Err(HandoverError::Keeper(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(HandoverError::Keeper(error.into())),
        }
    }
}

/// Opens this process's memory. A process that is closed to others cannot open the file either, unless it is root's; so it is
/// open for a moment, as every program is when it starts.
fn own_memory() -> io::Result<File> {
    let closed = dumpable_behavior()? != DumpableBehavior::Dumpable;
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let memory = File::options().read(true).write(true).open("/proc/self/mem");
    if closed {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    memory
}

/// What the keeper gets.
pub(super) struct Taken {
    pub(super) listener: OwnedFd,
    pub(super) worker: Worker,
    pub(super) judge: Judge,
}

/// Waits for what the worker hands over. None if it has nothing.
pub(super) fn take(gate: &OwnedFd, worker: Pid) -> io::Result<Option<Taken>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut list = vec![0; LONGEST];
    let received = retry_on_intr(|| {
        recvmsg(gate, &mut [IoSliceMut::new(&mut list)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::other("the list of hosts is too long"));
    }
    let descriptors: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    let [memory, courier] = <[OwnedFd; 2]>::try_from(descriptors)
        .map_err(|_| io::Error::other("the worker sent no descriptors"))?;
    let network: Network = serde_json::from_slice(&list[..received.bytes])?;
    let worker = Worker { pid: worker, memory: memory.into(), courier: Courier::new(courier)? };
    let mut number = [0; 4];
    if retry_on_intr(|| read(gate, &mut number))? != number.len() {
        // Its kernel could not.
        return Ok(None);
    }
    let listener = worker.courier.fetch(i32::from_le_bytes(number))?;
    write(gate, &TAKEN)?;
    Ok(Some(Taken { listener, worker, judge: Judge::new(network) }))
}
