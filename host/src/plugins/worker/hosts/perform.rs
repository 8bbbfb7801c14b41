//! Makes the calls that were handed to the keeper: on duplicates of the caller's sockets, with copies of what it passed.
//!
//! The keeper is not confined, so it does nothing here that the caller could not have done itself, but for the judgement.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrAny, SocketAddrUnix,
    SocketType, connect, connect_unspec, listen, sendmsg, sendmsg_addr,
};

use super::address::Address;
use super::caller::Caller;
use super::judge::{By, Judge};
use super::outgoing::{self, MOST_PIECES, MOST_RIGHTS, Outgoing};
use super::raw::Notice;

/// Why a call has no result of its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// What the caller is told.
    Errno(Errno),
    /// It is not allowed: for the log. The caller is told `EACCES`.
    Refused(String),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Where in a `struct mmsghdr` the kernel writes how much was sent, and the length of the whole.
const SENT_AT: u64 = 56;
const ENTRY: u64 = 64;

/// The flags of a sending call that are passed on. Without the others it is the same call.
const FLAGS: SendFlags = SendFlags::CONFIRM
    .union(SendFlags::DONTROUTE)
    .union(SendFlags::DONTWAIT)
    .union(SendFlags::EOR)
    .union(SendFlags::MORE)
    .union(SendFlags::OOB);

/// The kernel would go on reading the caller's memory after the call.
const MSG_ZEROCOPY: u32 = 0x400_0000;

/// Makes a call, and returns what it returns.
pub(super) fn perform(notice: &Notice, caller: &Caller<'_>, judge: &Judge) -> Result<i64, Failure> {
    let [first, second, third, fourth, fifth, sixth] = notice.arguments;
    // The kernel takes an `int`, and passes over the upper half.
    let socket = || Socket::of(caller, judge, low(first).cast_signed());
    let sent = |sent: usize| i64::try_from(sent).map_err(|_| Errno::MSGSIZE.into());
    match notice.call {
        libc::SYS_connect => {
            // The socket first, as the kernel does.
            let socket = socket()?;
            let to = outgoing::address(caller, second, low(third).into())?;
            socket.connect(to.ok_or(Errno::INVAL)?).map(|()| 0)
        }
        libc::SYS_sendto => {
            let message = Outgoing::of_buffer(caller, (second, third), (fifth, low(sixth).into()))?;
            sent(socket()?.send(&message, low(fourth))?)
        }
        libc::SYS_sendmsg => {
            let message = Outgoing::of_header(caller, second)?;
            sent(socket()?.send(&message, low(third))?)
        }
        libc::SYS_sendmmsg => socket()?.send_many(second, low(third).into(), low(fourth)),
        libc::SYS_listen => socket()?.listen(low(second).cast_signed()).map(|()| 0),
        _ => Err(Errno::NOSYS.into()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is what is meant")]
fn low(argument: u64) -> u32 {
    argument as u32
}

/// A socket of a caller's.
struct Socket<'a> {
    caller: &'a Caller<'a>,
    judge: &'a Judge,
    ours: OwnedFd,
    family: AddressFamily,
    kind: SocketType,
}

impl<'a> Socket<'a> {
    fn of(caller: &'a Caller<'a>, judge: &'a Judge, number: i32) -> Result<Self, Failure> {
        let ours = caller.descriptor(number).map_err(closed)?;
        let (family, kind) = (socket_domain(&ours)?, socket_type(&ours)?);
        Ok(Self { caller, judge, ours, family, kind })
    }

    fn is_inet(&self) -> bool {
        [AddressFamily::INET, AddressFamily::INET6].contains(&self.family)
    }

    fn by(&self) -> By {
        if self.kind == SocketType::STREAM { By::Stream } else { By::Datagram }
    }

    fn connect(&self, to: Address) -> Result<(), Failure> {
        if to == Address::Nobody {
            return Ok(connect_unspec(&self.ours)?);
        }
        Ok(connect(&self.ours, &self.allowed(to)?)?)
    }

    /// Lets others connect to it, if it is one of this machine: nobody is to call from another.
    fn listen(&self, backlog: i32) -> Result<(), Failure> {
        if self.family != AddressFamily::UNIX {
            return Err(Failure::Refused("anybody that calls it".into()));
        }
        Ok(listen(&self.ours, backlog)?)
    }

    /// Returns the address in the form in which it is passed to the kernel, if it may be reached by this socket.
    fn allowed(&self, to: Address) -> Result<SocketAddrAny, Failure> {
        match to {
            Address::Inet(to) if self.is_inet() => {
                let refused = |why: &str| refused(to, self.by(), why);
                self.judge.allows(to, self.by()).map(|()| to.into()).map_err(refused)
            }
            Address::Unix(path) if self.family == AddressFamily::UNIX => {
                // Files are opened by the keeper's rights.
                if !self.judge.allows_unix() || !self.caller.is_equal {
                    let why = "sockets of this machine are not in the list, or not with these rights";
                    return Err(Failure::Refused(format!("`{}`: {why}", path.display())));
                }
                let path: PathBuf =
                    if path.is_absolute() { path } else { self.caller.directory()?.join(path) };
                Ok(SocketAddrUnix::new(path)?.into())
            }
            Address::Kernel if self.family == AddressFamily::NETLINK && self.caller.is_equal => {
                Ok(SocketAddrNetlink::new(0, 0).into())
            }
            // Names that are no files lead out of what Landlock closes.
            Address::Other | Address::Kernel => {
                Err(Failure::Refused("an address that is neither a machine's nor a file's".into()))
            }
            _ => Err(Errno::AFNOSUPPORT.into()),
        }
    }

    fn send(&self, message: &Outgoing, flags: u32) -> Result<usize, Failure> {
        if flags & MSG_ZEROCOPY != 0 {
            return Err(Errno::NOBUFS.into());
        }
        let flags = (SendFlags::from_bits_retain(flags) & FLAGS) | SendFlags::NOSIGNAL;
        let is_stream = self.kind == SocketType::STREAM;
        if message.is_cut && !is_stream {
            return Err(Errno::MSGSIZE.into());
        }
        if !message.rights.is_empty() && self.family != AddressFamily::UNIX {
            return Err(Errno::INVAL.into());
        }
        let rights = message.rights.iter().map(|number| self.caller.descriptor(*number).map_err(closed));
        let rights: Vec<OwnedFd> = rights.collect::<Result<_, _>>()?;
        let rights: Vec<BorrowedFd<'_>> = rights.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_RIGHTS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !rights.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&rights)) {
            return Err(Errno::NOBUFS.into());
        }
        let data = [IoSlice::new(&message.data)];
        match &message.to {
            // A stream has one peer, whatever is said.
            Some(to) if !is_stream => {
                let to = self.allowed(to.clone())?;
                if self.family == AddressFamily::NETLINK {
                    // Without a name it goes to the kernel all the same, which then asks for the rights of whoever has opened the
                    // socket, and not for ours alone.
                    return Ok(sendmsg(&self.ours, &data, &mut control, flags)?);
                }
                Ok(sendmsg_addr(&self.ours, &to, &data, &mut control, flags)?)
            }
            _ => Ok(sendmsg(&self.ours, &data, &mut control, flags)?),
        }
    }

    /// Sends several messages, and writes down in the caller's memory how much of each was sent. Returns how many were.
    fn send_many(&self, at: u64, count: u64, flags: u32) -> Result<i64, Failure> {
        let mut sent = 0;
        for entry in (0..count.min(MOST_PIECES)).map(|index| at.wrapping_add(index * ENTRY)) {
            let one = Outgoing::of_header(self.caller, entry).map_err(Failure::from);
            let one = one.and_then(|message| self.send(&message, flags)).and_then(|length| {
                let length = u32::try_from(length).map_err(|_| Errno::MSGSIZE)?;
                Ok(self.caller.write(entry.wrapping_add(SENT_AT), &length.to_ne_bytes())?)
            });
            match one {
                Ok(()) => sent += 1,
                // It shows at the next call.
                Err(Failure::Errno(_)) if sent > 0 => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(sent)
    }
}

/// What comes of not being let into a process.
pub(super) fn closed(errno: Errno) -> Failure {
    if errno == Errno::ACCESS {
        let who = "anybody for a process whose memory or descriptors the system does not show";
        return Failure::Refused(who.into());
    }
    errno.into()
}

fn refused(to: SocketAddr, by: By, why: &str) -> Failure {
    let by = if by == By::Stream { "" } else { " by packets" };
    Failure::Refused(format!("`{to}`{by}: {why}"))
}
