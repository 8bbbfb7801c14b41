//! Archives that are made to do harm, built byte by byte.

use std::io::{Seek, Write};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use super::super::fetch::Fetched;
use super::super::tree::Tree;
use super::super::unpack::unpack;
use super::*;

/// One entry of a tar archive: its type's letter, its name, where it leads, its mode and its contents.
type Packed<'a> = (u8, &'a str, &'a str, u32, &'a [u8]);

fn header(kind: u8, name: &str, target: &str, mode: u32, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_mode(mode);
    header.set_size(size);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn entry((kind, name, target, mode, contents): Packed) -> Vec<u8> {
    let mut bytes = header(kind, name, target, mode, contents.len() as u64);
    bytes.extend_from_slice(contents);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tarball(entries: &[Packed]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(|packed| entry(*packed)).collect();
    bytes.resize(bytes.len() + 1024, 0);
    gzipped(&bytes)
}

/// One entry of a zip archive.
#[derive(Clone, Default)]
struct Zipped<'a> {
    name: &'a str,
    mode: u32,
    contents: &'a [u8],
    deflate: bool,
    /// What the directory says of its size, where that is a lie.
    size: Option<u32>,
    /// The name in front of it, where that is another.
    local_name: Option<&'a str>,
    flags: u16,
}

fn zipped(entries: &[Zipped]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for zipped in entries {
        let mut packed = zipped.contents.to_vec();
        if zipped.deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(zipped.contents).unwrap();
            packed = encoder.finish().unwrap();
        }
        let mut crc = flate2::Crc::new();
        crc.update(zipped.contents);
        let size = zipped.size.unwrap_or_else(|| u32::try_from(zipped.contents.len()).unwrap());
        let at = u32::try_from(file.len()).unwrap();
        let method: u16 = if zipped.deflate { 8 } else { 0 };
        let common = |name: &str| {
            let mut bytes = Vec::new();
            for field in [20, zipped.flags, method, 0, 0] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
            for field in [crc.sum(), u32::try_from(packed.len()).unwrap(), size] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
            for field in [u16::try_from(name.len()).unwrap(), 0] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
            bytes
        };
        let local_name = zipped.local_name.unwrap_or(zipped.name);
        file.extend_from_slice(b"PK\x03\x04");
        file.extend(common(local_name));
        file.extend_from_slice(local_name.as_bytes());
        file.extend(packed.iter());
        directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        directory.extend(common(zipped.name));
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(zipped.mode << 16).to_le_bytes());
        directory.extend_from_slice(&at.to_le_bytes());
        directory.extend_from_slice(zipped.name.as_bytes());
    }
    let (start, size) = (u32::try_from(file.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    let count = u16::try_from(entries.len()).unwrap();
    file.extend(directory);
    file.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].iter().flat_map(|field| field.to_le_bytes()));
    file.extend([size, start].iter().flat_map(|field| field.to_le_bytes()));
    file.extend_from_slice(&[0, 0]);
    file
}

/// Unpacks into a folder of its own. Nothing may come to lie beside it.
fn unpacked(bytes: &[u8], kind: ArchiveKind) -> Result<(tempfile::TempDir, PathBuf), Flaw> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("outside"), "untouched").unwrap();
    let into = dir.path().join("tree");
    fs::create_dir(&into).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    let fetched = Fetched { file, sha256: String::new(), size: bytes.len() as u64 };
    let outcome = unpack(&fetched, kind, into);
    assert_eq!(listed(dir.path()), ["outside", "tree"]);
    assert_eq!(fs::read_to_string(dir.path().join("outside")).unwrap(), "untouched");
    outcome.map(|root| (dir, root))
}

fn refused(bytes: &[u8], kind: ArchiveKind) -> String {
    match unpacked(bytes, kind) {
        Ok((_, root)) => panic!("{:?}", listed(&root)),
        Err(flaw) => flaw.to_string(),
    }
}

#[test]
fn entries_of_a_tar_archive_that_would_get_out_are_refused() {
    let file = (b'0', "a/plugin.yaml", "", 0o644, b"x" as &[u8]);
    let named = |name: &'static str| (b'0', name, "", 0o644, b"x" as &[u8]);
    let link = |name: &'static str, target: &'static str| (b'2', name, target, 0o777, b"" as &[u8]);
    let cases: [(&[Packed], &str); 24] = [
        (&[named("../outside")], "leads out"),
        (&[named("a/../../outside")], "leads out"),
        (&[(b'5', "..", "", 0o755, b"")], "leads out"),
        (&[named("/etc/x")], "an absolute path"),
        (&[named("//x")], "an absolute path"),
        (&[named("a\\..\\x")], "a backslash"),
        (&[named("a\nb")], "a control character"),
        (&[named(".")], "has no name"),
        (&[file, file], "is there twice"),
        (&[file, named("a//./plugin.yaml")], "is there twice"),
        (&[file, (b'5', "a/plugin.yaml", "", 0o755, b"")], "is there twice"),
        (&[named("a"), named("a/b")], "below a file or a link"),
        (&[link("a", "."), named("a/b")], "below a file or a link"),
        (&[link("a", "/tmp"), named("a/b")], "below a file or a link"),
        (&[file, link("a/l", "/etc/passwd")], "leads out"),
        (&[file, link("a/l", "../../outside")], "leads out"),
        // Inside the archive, and outside the folder that remains of it.
        (&[file, link("a/l", "../a/plugin.yaml")], "leads out"),
        (&[file, named("b"), link("up", "a/../../outside")], "leads out"),
        (&[file, named("b"), link("a/up", ".."), link("l", "a/up/../outside")], "leads out"),
        (&[file, link("a/l", "none")], "leads nowhere"),
        (&[file, link("a/l", "m"), link("a/m", "l")], "leads nowhere"),
        (&[file, (b'1', "a/h", "a/plugin.yaml", 0o644, b"")], "a hard link"),
        (&[file, (b'3', "a/d", "", 0o644, b"")], "a device"),
        (&[file, (b'6', "a/p", "", 0o644, b"")], "a pipe"),
    ];
    for (entries, expected) in cases {
        let message = refused(&tarball(entries), ArchiveKind::TarGz);
        assert!(message.contains(expected), "{entries:?}: {message}");
    }
}

#[test]
fn names_in_headers_of_their_own_obey_the_same_rules() {
    let pax = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        format!("{}{rest}", rest.len() + 2)
    };
    let out = pax("path", "../outside");
    let linked = pax("linkpath", "../../../outside");
    let sized = pax("size", "000000");
    let sparse = pax("GNU.sparse.major", "1");
    let longest = "x".repeat(70_000);
    let target = (b'0', "a/b", "", 0o644, b"x" as &[u8]);
    let described = |kind, text: &'static str| (kind, "h", "", 0o644, text.as_bytes());
    let cases: [(&[Packed], &str); 10] = [
        (&[(b'x', "h", "", 0, out.as_bytes()), target], "leads out"),
        (&[(b'x', "h", "", 0, linked.as_bytes()), (b'2', "a/l", "b", 0, b"")], "leads out"),
        (&[(b'x', "h", "", 0, sized.as_bytes()), target], "two different sizes"),
        (&[(b'x', "h", "", 0, sparse.as_bytes()), target], "a file with gaps"),
        (&[(b'g', "h", "", 0, out.as_bytes()), target], "one header names all entries"),
        (&[(b'L', "h", "", 0, longest.as_bytes()), target], "a header is far too long"),
        (&[described(b'L', "../outside\0"), target], "leads out"),
        (&[described(b'L', "a\0b"), target], "a control character"),
        (&[described(b'L', "c"), described(b'L', "d"), target], "described twice"),
        (&[described(b'L', "c")], "the last entry is missing"),
    ];
    for (entries, expected) in cases {
        let message = refused(&tarball(entries), ArchiveKind::TarGz);
        assert!(message.contains(expected), "{message}");
    }
    let comment = pax("comment", "0123");
    let deep = format!("a/{}", "n".repeat(120));
    let good = [
        (b'g', "pax_global_header", "", 0, comment.as_bytes()),
        (b'L', "h", "", 0, deep.as_bytes()),
        target,
        (b'0', "b", "", 0o644, b"" as &[u8]),
    ];
    let (_dir, root) = unpacked(&tarball(&good), ArchiveKind::TarGz).unwrap();
    assert_eq!(listed(&root.join("a")), ["n".repeat(120)]);
}

#[test]
fn entries_of_a_zip_archive_that_would_get_out_are_refused() {
    let file = Zipped { name: "a/plugin.yaml", mode: 0o100_644, contents: b"x", ..Default::default() };
    let named = |name| Zipped { name, ..file.clone() };
    let link = |name, target| Zipped { name, mode: 0o120_777, contents: target, ..Default::default() };
    let cases: [(&[Zipped], &str); 17] = [
        (&[named("../outside")], "leads out"),
        (&[named("a/../../outside")], "leads out"),
        (&[named("/etc/x")], "an absolute path"),
        (&[named("a\\..\\x")], "a backslash"),
        (&[named("a\0b")], "a control character"),
        (&[file.clone(), file.clone()], "is there twice"),
        (&[link("a", b"/tmp" as &[u8]), named("a/b")], "below a file or a link"),
        (&[file.clone(), link("a/l", b"/etc/passwd")], "leads out"),
        (&[file.clone(), link("a/l", b"../../outside")], "leads out"),
        (&[file.clone(), Zipped { mode: 0o020_644, ..named("a/d") }], "a device"),
        (&[file.clone(), Zipped { mode: 0o010_644, ..named("a/p") }], "a device, a pipe"),
        (&[Zipped { local_name: Some("../outside"), ..named("a/xxx") }], "not what the directory says"),
        (&[Zipped { flags: 1, ..file.clone() }], "is encrypted"),
        (&[Zipped { size: Some(10), ..file.clone() }], "not as long as it should be"),
        (&[Zipped { size: Some(10), deflate: true, ..file.clone() }], "not as long as it should be"),
        (&[Zipped { size: Some(u32::MAX), deflate: true, ..file.clone() }], "longer than 4 GiB"),
        (&[Zipped { size: Some(1 << 31), deflate: true, ..file.clone() }], "200 times"),
    ];
    for (entries, expected) in cases {
        let message = refused(&zipped(entries), ArchiveKind::Zip);
        assert!(message.contains(expected), "{}: {message}", entries[0].name);
    }
    let good = zipped(std::slice::from_ref(&file));
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        refused(&bytes, ArchiveKind::Zip)
    };
    assert!(with(|bytes| bytes.push(0)).contains("it has no end"));
    assert!(with(|bytes| bytes.truncate(60)).contains("it has no end"));
    assert!(with(|bytes| bytes.insert(4, 0)).contains("its directory is not where it should be"));
    // The byte itself: its checksum is in the directory.
    assert!(with(|bytes| bytes[30 + 13] = b'y').contains("its checksum does not match"));
    // More entries than there are.
    let count = good.len() - 14;
    let mut more = good.clone();
    (more[count], more[count + 2]) = (2, 2);
    assert!(refused(&more, ArchiveKind::Zip).contains("cut short"));
    // Two entries of the directory for the same bytes.
    let mut twice = zipped(&[file.clone(), Zipped { name: "b/plugin.yaml", ..file }]);
    let second = twice.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    twice[second + 42..second + 46].fill(0);
    assert!(refused(&twice, ArchiveKind::Zip).contains("not what the directory says"));
    twice[second + 46] = b'a';
    assert!(refused(&twice, ArchiveKind::Zip).contains("across one another"));
}

#[test]
fn what_would_fill_the_disk_is_refused() {
    let huge = gzipped(&header(b'0', "a", "", 0o644, 8 << 30));
    assert!(refused(&huge, ArchiveKind::TarGz).contains("200 times"));
    let zeros = vec![0; 17 << 20];
    let bomb = tarball(&[(b'0', "a", "", 0o644, &zeros)]);
    assert!(bomb.len() < 1 << 20);
    assert!(refused(&bomb, ArchiveKind::TarGz).contains("200 times"));
    let bomb = Zipped { name: "a", contents: &zeros, deflate: true, ..Default::default() };
    assert!(refused(&zipped(&[bomb]), ArchiveKind::Zip).contains("200 times"));
    let names: Vec<String> = (0..10_001).map(|number| format!("a/{number}")).collect();
    let many: Vec<Packed> = names.iter().map(|name| (b'0', name.as_str(), "", 0o644, b"" as &[u8])).collect();
    assert!(refused(&tarball(&many), ArchiveKind::TarGz).contains("more than 10000 entries"));
    let many: Vec<Zipped> = names.iter().map(|name| Zipped { name, ..Default::default() }).collect();
    assert!(refused(&zipped(&many), ArchiveKind::Zip).contains("more than 10000 entries"));
    // The same folder again and again costs no name, but it costs time.
    let dots: Vec<Packed> = vec![(b'5', "./", "", 0o755, b"" as &[u8]); 30_001];
    assert!(refused(&tarball(&dots), ArchiveKind::TarGz).contains("more than 10000 entries"));
    let dir = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(dir.path().to_owned(), Some(1 << 29));
    let flaw = tree.file("a", false, (1 << 30) + 1, &mut std::io::empty()).unwrap_err();
    assert!(matches!(flaw, Flaw::Large), "{flaw}");
}

#[test]
fn what_is_damaged_or_something_else_is_refused() {
    let good = tarball(&[(b'0', "a/plugin.yaml", "", 0o644, b"text"), (b'0', "b", "", 0o644, b"text")]);
    for length in [0, 1, 10, good.len() / 2, good.len() - 9, good.len() - 1] {
        assert!(unpacked(&good[..length], ArchiveKind::TarGz).is_err(), "{length}");
    }
    let page = b"<!DOCTYPE html><p>404</p>";
    assert!(refused(page, ArchiveKind::TarGz).contains("not a gzip-compressed tar archive"));
    assert!(refused(page, ArchiveKind::Zip).contains("not a zip archive"));
    assert!(unpacked(&gzipped(page), ArchiveKind::TarGz).is_err());
    let mut padded = entry((b'0', "a", "", 0o644, b"x"));
    padded.resize(padded.len() + (2 << 20), 0);
    assert!(refused(&gzipped(&padded), ArchiveKind::TarGz).contains("goes on after its end"));
}

#[test]
fn a_good_archive_loses_its_top_folder_and_its_modes() {
    let folder = (b'5', "acme-1/", "", 0o2777, b"" as &[u8]);
    let tar = tarball(&[
        (b'5', "./", "", 0o755, b""),
        folder,
        (b'0', "acme-1/plugin.yaml", "", 0o600, b"name"),
        (b'0', "acme-1/bin/run", "", 0o4755, b"#!"),
        (b'2', "acme-1/run", "bin/run", 0o777, b""),
        (b'2', "acme-1/bin/up", "../plugin.yaml", 0o777, b""),
    ]);
    let file = |name, mode, contents| Zipped { name, mode, contents, ..Default::default() };
    let zip = zipped(&[
        file("acme-1/", 0o042_777, b"" as &[u8]),
        Zipped { deflate: true, ..file("acme-1/plugin.yaml", 0o100_600, b"name") },
        file("acme-1/bin/run", 0o104_755, b"#!"),
        file("acme-1/run", 0o120_777, b"bin/run"),
        file("acme-1/bin/up", 0o120_777, b"../plugin.yaml"),
    ]);
    for (bytes, kind) in [(tar, ArchiveKind::TarGz), (zip, ArchiveKind::Zip)] {
        let (_dir, root) = unpacked(&bytes, kind).unwrap();
        assert!(root.ends_with("tree/acme-1"), "{}", root.display());
        assert_eq!(listed(&root), ["bin", "plugin.yaml", "run"]);
        let modes = ["", "plugin.yaml", "bin", "bin/run"].map(|name| mode(&root.join(name)));
        assert_eq!(modes, [0o755, 0o644, 0o755, 0o755]);
        assert_eq!(fs::read_to_string(root.join("run")).unwrap(), "#!");
        assert_eq!(fs::read_to_string(root.join("bin/up")).unwrap(), "name");
    }
}
