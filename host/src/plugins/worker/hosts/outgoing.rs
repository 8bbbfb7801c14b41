//! What a caller wants to send: copied out of its memory, and never looked at there again.

use rustix::io::Errno;

use super::address::{self, Address};
use super::caller::Caller;

/// The most bytes of one message that are copied. Of a stream the rest is sent by the caller's next call, as after any that
/// found no more room.
const LONGEST: usize = 1 << 20;

/// The most pieces that the kernel takes (`UIO_MAXIOV`).
pub(super) const MOST_PIECES: u64 = 1024;

/// The most descriptors that one message carries (`SCM_MAX_FD`).
pub(super) const MOST_RIGHTS: usize = 253;

/// More room than so many descriptors take up, in bytes.
const LONGEST_CONTROL: u64 = 4096;

/// The length of the kernel's `struct msghdr` and `struct cmsghdr`, and of a piece (`struct iovec`).
const HEADER: usize = 56;
const CONTROL_HEADER: usize = 16;
const PIECE: usize = 16;

/// A message.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// To whom, if it says so.
    pub(super) to: Option<Address>,
    /// What.
    pub(super) data: Vec<u8>,
    /// Whether there was more than is copied.
    pub(super) is_cut: bool,
    /// The numbers of descriptors that go along.
    pub(super) rights: Vec<i32>,
}

impl Outgoing {
    /// Copies the message of a `sendto`.
    pub(super) fn of_buffer(
        caller: &Caller<'_>,
        (data, length): (u64, u64),
        (to, to_length): (u64, u64),
    ) -> Result<Self, Errno> {
        let mut message = Self { to: address(caller, to, to_length)?, ..Self::default() };
        message.copy(caller, data, length)?;
        Ok(message)
    }

    /// Copies the message of a `sendmsg`: `at` leads to its `struct msghdr`.
    pub(super) fn of_header(caller: &Caller<'_>, at: u64) -> Result<Self, Errno> {
        let mut header = [0; HEADER];
        caller.read(at, &mut header)?;
        // A length is 32 bits and padding.
        let to = address(caller, word(&header, 0), word(&header, 8) & 0xffff_ffff)?;
        let mut message = Self { to, ..Self::default() };
        let (pieces, count) = (word(&header, 16), word(&header, 24));
        if count > MOST_PIECES {
            return Err(Errno::MSGSIZE);
        }
        let mut table = vec![0; PIECE * usize::try_from(count).map_err(|_| Errno::MSGSIZE)?];
        caller.read(pieces, &mut table)?;
        for piece in table.chunks_exact(PIECE) {
            message.copy(caller, word(piece, 0), word(piece, 8))?;
        }
        let (control, length) = (word(&header, 32), word(&header, 40));
        if control != 0 && length != 0 {
            if length > LONGEST_CONTROL {
                return Err(Errno::NOBUFS);
            }
            let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::NOBUFS)?];
            caller.read(control, &mut bytes)?;
            message.rights = rights(&bytes)?;
        }
        Ok(message)
    }

    fn copy(&mut self, caller: &Caller<'_>, from: u64, length: u64) -> Result<(), Errno> {
        let room = LONGEST - self.data.len();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.is_cut |= length > room;
        let start = self.data.len();
        self.data.resize(start + length.min(room), 0);
        caller.read(from, &mut self.data[start..])
    }
}

/// Copies an address, if there is one.
pub(super) fn address(caller: &Caller<'_>, at: u64, length: u64) -> Result<Option<Address>, Errno> {
    if at == 0 || length == 0 {
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= address::LONGEST);
    let mut bytes = [0; address::LONGEST];
    let bytes = bytes.get_mut(..length.ok_or(Errno::INVAL)?).ok_or(Errno::INVAL)?;
    caller.read(at, bytes)?;
    Address::parse(bytes).map(Some)
}

/// Reads which descriptors go along. Whatever else may stand there is refused as a kernel does that does not know it: options of
/// packets can choose the way that they take.
fn rights(mut control: &[u8]) -> Result<Vec<i32>, Errno> {
    let mut rights = Vec::new();
    while control.len() >= CONTROL_HEADER {
        let length = usize::try_from(word(control, 0)).unwrap_or(usize::MAX);
        let level_and_type = word(control, 8).to_ne_bytes();
        let data = control.get(CONTROL_HEADER..length).ok_or(Errno::INVAL)?;
        if level_and_type != [libc::SOL_SOCKET.to_ne_bytes(), libc::SCM_RIGHTS.to_ne_bytes()].concat()[..] {
            return Err(Errno::INVAL);
        }
        let numbers = data.chunks_exact(4).filter_map(|number| number.try_into().ok());
        rights.extend(numbers.map(i32::from_ne_bytes));
        control = control.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    if rights.len() > MOST_RIGHTS { Err(Errno::INVAL) } else { Ok(rights) }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    u64::from_ne_bytes(word.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (CONTROL_HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn descriptors_are_read_and_nothing_else_is_taken() {
        let one = control(libc::SCM_RIGHTS, &7_i32.to_ne_bytes());
        assert_eq!(rights(&one), Ok(vec![7]));
        let three =
            [one.clone(), control(libc::SCM_RIGHTS, &[8_i32.to_ne_bytes(), 9_i32.to_ne_bytes()].concat())];
        assert_eq!(rights(&three.concat()), Ok(vec![7, 8, 9]));
        assert_eq!(rights(&[]), Ok(vec![]));
        assert_eq!(rights(&control(libc::SCM_CREDENTIALS, &[0; 12])), Err(Errno::INVAL));
        assert_eq!(rights(&control(libc::SCM_RIGHTS, &[0; 4 * 254])), Err(Errno::INVAL));
        // Lengths that lead out of it, or nowhere.
        for length in [u64::MAX, 0, 15, 25, 1 << 40] {
            let mut wrong = one.clone();
            wrong[..8].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(rights(&wrong), Err(Errno::INVAL), "{length}");
        }
    }

    #[test]
    fn the_layouts_are_the_kernels() {
        assert_eq!(HEADER, size_of::<libc::msghdr>());
        assert_eq!(PIECE, size_of::<libc::iovec>());
        assert_eq!(CONTROL_HEADER, size_of::<libc::cmsghdr>());
    }
}
