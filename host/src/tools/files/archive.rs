//! One file out of a zip archive that is in memory, which is what office documents are.
//!
//! Only what such documents use is read: no encryption, no parts, no more than 4 GiB.

use std::io::Read;

use flate2::read::DeflateDecoder;

/// The most bytes that one file may unpack to.
const MOST: u64 = 64 * 1024 * 1024;

/// How far from its end the list of an archive can end: its record and the longest comment.
const LONGEST_END: usize = 22 + 65_535;

/// Returns what the file `name` of an archive holds. None if there is none, or it cannot be read.
pub(super) fn member(archive: &[u8], name: &str) -> Option<Vec<u8>> {
    let from = archive.len().saturating_sub(LONGEST_END);
    let end = from + archive[from..].windows(4).rposition(|window| window == b"PK\x05\x06")?;
    let mut at = number::<4>(archive, end + 16)?;
    while archive.get(at..at + 4)? == b"PK\x01\x02" {
        let lengths = [at + 28, at + 30, at + 32].map(|at| number::<2>(archive, at));
        let [Some(length), Some(extra), Some(comment)] = lengths else { return None };
        if archive.get(at + 46..at + 46 + length)? == name.as_bytes() {
            let (method, packed) = (number::<2>(archive, at + 10)?, number::<4>(archive, at + 20)?);
            return unpack(archive, number::<4>(archive, at + 42)?, method, packed);
        }
        at += 46 + length + extra + comment;
    }
    None
}

fn unpack(archive: &[u8], at: usize, method: usize, packed: usize) -> Option<Vec<u8>> {
    let data = at + 30 + number::<2>(archive, at + 26)? + number::<2>(archive, at + 28)?;
    let packed = archive.get(data..data.checked_add(packed)?)?;
    match method {
        0 => Some(packed.to_vec()),
        8 => {
            let mut unpacked = Vec::new();
            let read = DeflateDecoder::new(packed).take(MOST + 1).read_to_end(&mut unpacked).ok()?;
            (read as u64 <= MOST).then_some(unpacked)
        }
        _ => None,
    }
}

/// Reads a number of so many bytes, the lowest first.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// Packs files as any program would.
    pub(in crate::tools::files) fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let two = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
        let four = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
        let (mut archive, mut list) = (Vec::new(), Vec::new());
        for (name, text) in files {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            let data = encoder.finish().unwrap();
            let at = archive.len();
            archive.extend_from_slice(b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0");
            archive.extend([four(data.len()), four(text.len())].concat());
            archive.extend([two(name.len()), two(3)].concat());
            archive.extend([name.as_bytes(), b"xyz", &data].concat());
            list.extend_from_slice(b"PK\x01\x02\x14\0\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0");
            list.extend([four(data.len()), four(text.len())].concat());
            list.extend([two(name.len()), two(0), two(0), two(0), two(0)].concat());
            list.extend([four(0), four(at)].concat());
            list.extend_from_slice(name.as_bytes());
        }
        let at = archive.len();
        archive.extend_from_slice(&list);
        archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        archive.extend([two(files.len()), two(files.len())].concat());
        archive.extend([four(list.len()), four(at)].concat());
        archive.extend_from_slice(b"\x02\0hi");
        archive
    }

    #[test]
    fn a_file_is_unpacked_by_its_name() {
        let long = "line\n".repeat(1000);
        let archive = packed(&[("a/one.xml", "one"), ("two.xml", &long)]);
        assert_eq!(member(&archive, "a/one.xml").as_deref(), Some(&b"one"[..]));
        assert_eq!(member(&archive, "two.xml").as_deref(), Some(long.as_bytes()));
        assert_eq!(member(&archive, "one.xml"), None);
    }

    #[test]
    fn damage_is_no_reason_to_panic() {
        let archive = packed(&[("a/one.xml", "one"), ("two.xml", "two")]);
        for cut in 0..archive.len() {
            let _ = member(&archive[..cut], "two.xml");
            let _ = member(&archive[cut..], "two.xml");
            let mut changed = archive.clone();
            changed[cut] ^= 0xff;
            let _ = member(&changed, "two.xml");
        }
    }
}
