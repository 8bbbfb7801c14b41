//! Copies of libraries that nobody can change.
//!
//! What is hashed and what is opened must be the same bytes. So a library is read once, piece by piece; each piece is hashed and written to a
//! file in memory, which is sealed. Of the library there is that one copy, which goes when the last process that has it open does.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::digest::sha256_of;

/// A library that was copied.
pub(super) struct Copied {
    /// The copy.
    pub(super) file: File,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    /// Its length in bytes.
    pub(super) size: u64,
}

/// Which side failed.
pub(super) enum CopyError {
    /// What is copied.
    Read(io::Error),
    /// The copy.
    Write(io::Error),
}

/// Copies the library of a plugin of this name.
pub(super) fn sealed_copy(plugin: &str, from: impl Read) -> Result<Copied, CopyError> {
    let mut file = in_memory(plugin).map_err(CopyError::Write)?;
    let mut unwritten = false;
    let copied = sha256_of(from, |piece| file.write_all(piece).inspect_err(|_| unwritten = true));
    let (sha256, size) =
        copied.map_err(|error| if unwritten { CopyError::Write(error) } else { CopyError::Read(error) })?;
    seal(&file).map_err(CopyError::Write)?;
    Ok(Copied { file, sha256, size })
}

fn in_memory(plugin: &str) -> io::Result<File> {
    let name = format!("hostel-plugin-{plugin}");
    let base = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag that asks for a file that may be executed, and need none.
    Ok(memfd_create(&name, base | MemfdFlags::EXEC).or_else(|_| memfd_create(&name, base))?.into())
}

fn seal(file: &File) -> io::Result<()> {
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    // The kernel may hold a page of it for a moment.
    for pause in (1..40).map(Duration::from_millis) {
        match fcntl_add_seals(file, seals) {
            Err(rustix::io::Errno::BUSY) => std::thread::sleep(pause),
            sealed => return Ok(sealed?),
        }
    }
    Err(rustix::io::Errno::BUSY.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }

    #[test]
    fn the_copy_is_what_was_hashed_and_cannot_be_changed() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let Ok(mut copied) = sealed_copy("p", bytes.as_slice()) else { panic!("not copied") };
        assert_eq!((copied.size, copied.sha256), (300_000, crate::digest::sha256_hex(&bytes)));
        let mut read = vec![0; bytes.len()];
        copied.file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == bytes);
        assert!(copied.file.write_all(b"x").is_err() && copied.file.set_len(0).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_told_from_what_cannot_be_written() {
        assert!(matches!(sealed_copy("p", Broken), Err(CopyError::Read(_))));
    }
}
