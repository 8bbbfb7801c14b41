//! Frames: what goes over the socket between host and worker.
//!
//! A frame is its length, a kind, the number of the call that it belongs to, and a body. Numbers are little-endian.
//!
//! ```text
//! u32 length of what follows │ u8 kind │ u32 call │ body, length - 5 bytes
//! ```
//!
//! Whoever reads has not chosen the writer: every length is checked before anything is allocated for it, and what cannot be
//! a frame ends the connection.

use std::io::{self, IoSlice, Read, Write};

/// The longest body, in bytes. A command of 2 MB with every byte escaped fits well.
pub const LONGEST_BODY: usize = 32 << 20;

/// The longest piece of output or input that is sent in one frame. Small enough that another call's frame soon has its turn.
pub const LONGEST_PIECE: usize = 64 << 10;

/// Length of what stands before a body.
const HEADER: usize = 9;

/// The part of the header that the length counts.
const COUNTED: usize = HEADER - 4;

/// How much is asked of the socket at a time.
const READ: usize = 128 << 10;

/// What a frame is. A newtype over a number, so that a later kind can be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    /// Both ways, once: who speaks, and in which version. JSON.
    pub const HELLO: Self = Self(1);
    /// From the host: a call. JSON.
    pub const CALL: Self = Self(2);
    /// From the worker: what came of a call, its last frame. JSON.
    pub const RESULT: Self = Self(3);
    /// Both ways: output of a call, or input that precedes it. Any bytes.
    pub const DATA: Self = Self(4);
    /// From the host: so many more bytes of output may be sent. A `u32`.
    pub const CREDIT: Self = Self(5);
    /// From the host: the call is to end. Empty.
    pub const CANCEL: Self = Self(6);
    /// From the host: nobody reads the output of the call any more. Empty.
    pub const STOP: Self = Self(7);
    /// From the worker: a record for the log. JSON.
    pub const LOG: Self = Self(8);
    /// From the host: no call will follow; end. Empty.
    pub const BYE: Self = Self(9);
    /// From the host, once, after its hello: the library may be loaded. JSON.
    pub const LIBRARY: Self = Self(10);
}

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// The call that it belongs to; 0 for none.
    pub call: u32,
    /// What it carries.
    pub body: Vec<u8>,
}

/// Why no further frame can be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side has closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The connection was closed inside a frame.
    #[error("the connection was closed inside a frame")]
    Cut,
    /// The length cannot be that of a frame.
    #[error("a frame of {0} bytes, which none can have")]
    Length(u32),
    /// The operating system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Takes frames out of a stream.
pub struct FrameReader<R> {
    inner: R,
    /// Of fixed size; what was read and not taken yet lies between `start` and `end`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<R: Read> FrameReader<R> {
    /// Reads from `inner`.
    pub fn new(inner: R) -> Self {
        Self { inner, buffer: vec![0; READ].into(), start: 0, end: 0 }
    }

    /// What is read from.
    pub fn inner(&mut self) -> &mut R {
        &mut self.inner
    }

    /// How many bytes were read and not taken yet.
    pub fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Whether the next frame can be taken without reading any more.
    pub fn has_whole(&self) -> bool {
        let bytes = &self.buffer[self.start..self.end];
        let Some(length) = bytes.first_chunk().map(|length| u32::from_le_bytes(*length)) else {
            return false;
        };
        usize::try_from(length).is_ok_and(|length| bytes.len() >= length.saturating_add(4).max(HEADER))
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or what comes is no frame. Nothing can be read after that.
    pub fn read(&mut self) -> Result<Frame, FrameError> {
        self.fill(HEADER)?;
        let header = &self.buffer[self.start..self.start + HEADER];
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (length, kind, call) = (word(0), Kind(header[4]), word(5));
        let body = usize::try_from(length).ok().and_then(|length| length.checked_sub(COUNTED));
        let body = body.filter(|body| *body <= LONGEST_BODY).ok_or(FrameError::Length(length))?;
        self.start += HEADER;
        Ok(Frame { kind, call, body: self.take(body)? })
    }

    /// Reads until at least `wanted` bytes, which are few, are in the buffer.
    fn fill(&mut self, wanted: usize) -> Result<(), FrameError> {
        if self.buffered() >= wanted {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < wanted {
            match retry(|| self.inner.read(&mut self.buffer[self.end..]))? {
                0 if self.end == 0 => return Err(FrameError::Closed),
                0 => return Err(FrameError::Cut),
                read => self.end += read,
            }
        }
        Ok(())
    }

    /// Takes the next `length` bytes; what is not in the buffer yet is read straight to where it belongs.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, FrameError> {
        let here = self.buffered().min(length);
        let mut body = self.buffer[self.start..self.start + here].to_vec();
        self.start += here;
        if here < length {
            // Room is made as bytes come, so that a length alone costs nothing.
            let rest = (length - here) as u64;
            body.reserve((length - here).min(READ));
            self.inner.by_ref().take(rest).read_to_end(&mut body)?;
        }
        if body.len() == length { Ok(body) } else { Err(FrameError::Cut) }
    }
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Returns what stands before a body.
///
/// # Errors
///
/// Fails if the body is too long.
pub fn header(kind: Kind, call: u32, body: usize) -> io::Result<[u8; HEADER]> {
    let too_long =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("{body} bytes are too many for one message"));
    if body > LONGEST_BODY {
        return Err(too_long());
    }
    let length = u32::try_from(body + COUNTED).map_err(|_| too_long())?.to_le_bytes();
    let call = call.to_le_bytes();
    Ok([length[0], length[1], length[2], length[3], kind.0, call[0], call[1], call[2], call[3]])
}

/// Writes one frame.
///
/// # Errors
///
/// Fails if the body is too long, which leaves the stream as it was, or the stream fails.
pub fn write(mut to: impl Write, kind: Kind, call: u32, body: &[u8]) -> io::Result<()> {
    let header = header(kind, call, body.len())?;
    let mut written = 0;
    while written < HEADER + body.len() {
        let parts = if written < HEADER {
            [IoSlice::new(&header[written..]), IoSlice::new(body)]
        } else {
            [IoSlice::new(&body[written - HEADER..]), IoSlice::new(&[])]
        };
        match to.write_vectored(&parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(frames: &[(Kind, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, call, body) in frames {
            write(&mut bytes, *kind, *call, body).unwrap();
        }
        bytes
    }

    /// Gives its bytes in pieces of one size.
    struct Drip<'a>(&'a [u8], usize);
    impl Read for Drip<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(to.len());
            to[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn frames_survive_however_they_are_cut_up() {
        let long = vec![7; 300_000];
        let frames: [(Kind, u32, &[u8]); 4] = [
            (Kind::HELLO, 0, b"{}"),
            (Kind::DATA, 9, &long),
            (Kind::STOP, u32::MAX, b""),
            (Kind(200), 1, b"later"),
        ];
        let bytes = written(&frames);
        for piece in [1, 8, 9, 10, 4096, bytes.len()] {
            let mut reader = FrameReader::new(Drip(&bytes, piece));
            for (kind, call, body) in frames {
                assert_eq!(reader.read().unwrap(), Frame { kind, call, body: body.to_vec() });
            }
            assert!(matches!(reader.read(), Err(FrameError::Closed)));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_before_room_is_made_for_it() {
        for length in [0, 4, u32::MAX, u32::try_from(LONGEST_BODY + COUNTED + 1).unwrap()] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend([0; 20]);
            assert!(
                matches!(FrameReader::new(bytes.as_slice()).read(), Err(FrameError::Length(found)) if found == length)
            );
        }
        let whole = written(&[(Kind::CALL, 1, b"0123456789")]);
        for cut in 1..whole.len() {
            assert!(matches!(FrameReader::new(&whole[..cut]).read(), Err(FrameError::Cut)), "{cut}");
        }
        assert!(write(Vec::new(), Kind::DATA, 1, &vec![0; LONGEST_BODY + 1]).is_err());
    }
}
