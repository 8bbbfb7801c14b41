//! Looks at a library's bytes before the loader does.
//!
//! The loader maps a file and runs its constructors before anybody can ask what it is, and a file that was cut short kills
//! the process with SIGBUS while it is being mapped. So what can be known from the bytes is checked first: that it is a
//! shared library of this kind of machine, whole, with a plugin's entry of its own, built for an API that we have.

use object::read::ReadRef;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, elf};

use super::error::Step;
use hostel_plugin_api::abi::root::{
    API_VERSION, ROOT_SYMBOL, VERSION_NOTE_LEN, VERSION_PREFIX, VERSION_SYMBOL,
};

/// What was found in a good library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The version of the plugin API that it was built for.
    pub(super) api_version: String,
    /// Whether it looks for other libraries beside itself, so that it must be opened where it lies.
    pub(super) needs_its_place: bool,
    /// The libraries that the loader will load with it, as it names them.
    pub(super) needed: Vec<String>,
}

/// What is wrong with a library's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) step: Step,
    pub(super) reason: String,
    pub(super) hint: String,
}

fn flaw(step: Step, reason: impl Into<String>, hint: impl Into<String>) -> Flaw {
    Flaw { step, reason: reason.into(), hint: hint.into() }
}

/// The loader's word for the folder of the library itself; see `man 8 ld.so`.
const ORIGIN: &[u8] = b"$ORIGIN";

#[cfg(target_arch = "x86_64")]
const OWN: Architecture = Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
const OWN: Architecture = Architecture::Aarch64;

/// Checks a library, of which no more is read than is needed; `wanted` is the API version that the manifest names, if it
/// does.
pub(super) fn check<'data, R: ReadRef<'data>>(data: R, wanted: Option<&str>) -> Result<Facts, Flaw> {
    let rebuild = format!("build it as a `cdylib` for {} Linux", std::env::consts::ARCH);
    let length = data.len().unwrap_or(0);
    if length == 0 {
        return Err(flaw(Step::File, "the library is an empty file", rebuild));
    }
    if data.read_bytes_at(0, 4) != Ok(&elf::ELFMAG) {
        return Err(flaw(Step::File, "the library is not an ELF file", rebuild));
    }
    let cut = || flaw(Step::File, "the library is cut short", "copy it again, whole");
    let file = ElfFile64::<Endianness, R>::parse(data).map_err(|_| {
        if data.read_bytes_at(4, 1) == Ok(&[elf::ELFCLASS32.0]) {
            flaw(Step::File, "the library is for a 32-bit machine", rebuild.clone())
        } else {
            cut()
        }
    })?;
    if file.architecture() != OWN || !file.is_little_endian() {
        let reason = format!("the library is for another processor, not {}", std::env::consts::ARCH);
        return Err(flaw(Step::File, reason, rebuild));
    }
    let endian = file.endian();
    let header = file.elf_header();
    if header.e_type(endian) != elf::ET_DYN {
        return Err(flaw(Step::File, "the file is a program or an object, not a shared library", rebuild));
    }
    let within = |offset: u64, size: u64| offset.checked_add(size).is_some_and(|end| end <= length);
    let segments = file.elf_program_headers().iter();
    let segments_whole =
        segments.clone().all(|segment| within(segment.p_offset(endian), segment.p_filesz(endian)));
    let sections = header.section_headers(endian, data).map_err(|_| cut())?;
    let sections_whole = sections.iter().all(|section| {
        section.sh_type(endian) == elf::SHT_NOBITS
            || within(section.sh_offset(endian), section.sh_size(endian))
    });
    if !segments_whole || !sections_whole {
        return Err(cut());
    }
    if symbol(&file, ROOT_SYMBOL).is_none() {
        let hint = "a plugin's crate calls `hostel_plugin_api::export_plugin!` at its root";
        return Err(flaw(
            Step::Entry,
            format!("the library has no entry symbol `{ROOT_SYMBOL}` of its own"),
            hint,
        ));
    }
    let api_version = api_version(&file, data)?;
    check_version(&api_version, wanted)?;
    let needed = needed(&file, data).ok_or_else(cut)?;
    Ok(Facts { api_version, needs_its_place: needs_its_place(&file), needed })
}

type Elf<'data, R> = ElfFile64<'data, Endianness, R>;

/// Returns whether the names that the loader will read hold a run path that starts at the library's own place.
fn needs_its_place<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> bool {
    let strings = file.section_by_name(".dynstr").and_then(|section| section.data().ok()).unwrap_or_default();
    strings.windows(ORIGIN.len()).any(|window| window == ORIGIN)
}

/// Returns the names of the libraries that this one needs. None if they cannot be read.
fn needed<'data, R: ReadRef<'data>>(file: &Elf<'data, R>, data: R) -> Option<Vec<String>> {
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, data).ok()?;
    let Some((entries, strings)) = sections.dynamic(endian, data).ok()? else { return Some(Vec::new()) };
    let strings = sections.strings(endian, data, strings).ok()?;
    let names = entries.iter().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED);
    let name = |entry: &elf::Dyn64<Endianness>| {
        let offset = u32::try_from(entry.d_val(endian)).ok()?;
        Some(String::from_utf8_lossy(strings.get(offset).ok()?).into_owned())
    };
    names.map(name).collect()
}

/// Returns the address of a symbol that this file itself defines.
fn symbol<'data, R: ReadRef<'data>>(file: &Elf<'data, R>, name: &str) -> Option<u64> {
    let found = file.dynamic_symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))?;
    Some(found.address())
}

fn api_version<'data, R: ReadRef<'data>>(file: &Elf<'data, R>, data: R) -> Result<String, Flaw> {
    let hint = "build the plugin with the crate `hostel-plugin-api`, version 1";
    let silent = || flaw(Step::Version, "the library does not say for which plugin API it was built", hint);
    let address = symbol(file, VERSION_SYMBOL).ok_or_else(silent)?;
    let segment = file.segments().find(|segment| {
        let (start, (_, size)) = (segment.address(), segment.file_range());
        address >= start && address - start < size
    });
    let segment = segment.ok_or_else(silent)?;
    let at = segment.file_range().0 + (address - segment.address());
    let note = data.read_bytes_at(at, VERSION_NOTE_LEN as u64).map_err(|()| silent())?;
    let text = std::str::from_utf8(note).ok().and_then(|text| text.split('\0').next()).ok_or_else(silent)?;
    let version = text.strip_prefix(VERSION_PREFIX).ok_or_else(silent)?;
    Ok(version.to_owned())
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

fn check_version(found: &str, wanted: Option<&str>) -> Result<(), Flaw> {
    let (own, theirs) = (major(API_VERSION), major(found));
    if theirs != own {
        let reason = format!(
            "the library was built for plugin API {}, this Hostel has {API_VERSION}",
            found.escape_debug()
        );
        let newer = theirs
            .parse::<u32>()
            .ok()
            .zip(own.parse().ok())
            .is_some_and(|(theirs, own): (u32, u32)| theirs > own);
        let hint = if newer {
            "update Hostel, or take an older version of the plugin"
        } else {
            "take a newer version of the plugin"
        };
        return Err(flaw(Step::Version, reason, hint));
    }
    match wanted {
        Some(wanted) if major(wanted.trim()) != theirs => {
            let wanted = wanted.escape_debug();
            let reason =
                format!("the manifest says `api_version: {wanted}`, the library was built for {found}");
            Err(flaw(
                Step::Version,
                reason,
                "ask the plugin's author for a folder whose parts belong together",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_told_apart() {
        let reason = |bytes: &[u8]| check(bytes, None).unwrap_err().reason;
        assert_eq!(reason(b""), "the library is an empty file");
        assert_eq!(reason(b"#!/bin/sh\n"), "the library is not an ELF file");
        assert_eq!(reason(b"\x7fELF"), "the library is cut short");
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(check(own.as_slice(), None).unwrap_err().step, Step::Entry);
        let mut other = own.clone();
        other[18] = 0xf3;
        assert!(reason(&other).contains("another processor"), "{}", reason(&other));
        for percent in [26, 60, 80, 99] {
            assert_eq!(reason(&own[..own.len() * percent / 100]), "the library is cut short", "{percent} %");
        }
    }

    #[test]
    fn versions_of_another_major_and_disagreeing_manifests_are_refused() {
        assert!(check_version(API_VERSION, None).is_ok());
        assert!(check_version("1.99.0", Some("1")).is_ok());
        assert!(check_version("999.0.0", None).unwrap_err().hint.contains("update Hostel"));
        assert!(check_version("0.9.0", None).unwrap_err().hint.contains("newer version of the plugin"));
        assert!(check_version(API_VERSION, Some("999")).unwrap_err().reason.contains("the manifest says"));
    }
}
