//! Brings near what a copy is going to use, while nobody waits for it.
//!
//! A copy begins with the memory of the resident, and nothing of it at hand: the first look at a page of code, and the first write to a page of
//! data, each interrupt it. Some seventy of these were an eighth of a short command. A spare has the time to have them
//! before its command comes. It touches code and what is only read once in a while, which brings the pages around with it, and
//! of what is written to the end: that is where the allocator gives from, and small parts are all end.

use core::ffi::c_char;
use core::ptr::null_mut;

use crate::sys;

const PAGE: usize = 4096;

/// As far as the kernel brings pages of a file along.
const AROUND: usize = 16 * PAGE;

/// What is read of one part at the most: files of locales are large.
const MOST_READ: usize = 48 * AROUND;

/// What is written to of one part.
const MOST_WRITTEN: usize = 32 * PAGE;

/// And of the stack, which stands at its end as well.
const MOST_OF_STACK: usize = 8 * PAGE;

/// Parts of a bash's memory. It has some thirty.
const MOST_PARTS: usize = 64;

/// What one read of the kernel's list can bring.
const LIST: usize = 8192;

/// One part of this process's memory.
#[derive(Clone, Copy)]
struct Part {
    first: *mut u8,
    length: usize,
    step: usize,
    written: bool,
}

/// What is to be touched. The resident looks once, since nothing of it changes.
pub(crate) struct Warmth {
    parts: [Part; MOST_PARTS],
    count: usize,
}

impl Warmth {
    /// Looks at this process's memory. Where that is not shown, nothing will be touched.
    pub(crate) unsafe fn of_this_process() -> Self {
        let nothing = Part { first: null_mut(), length: 0, step: PAGE, written: false };
        let mut warmth = Self { parts: [nothing; MOST_PARTS], count: 0 };
        let mut list = [0_u8; LIST];
        // SAFETY: the kernel writes to the list, and no further.
        let length = unsafe { read_list(&mut list) };
        let mut rest = list.get(..length).unwrap_or(&[]);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or(&[]);
            if let (Some(part), Some(slot)) = (part(line), warmth.parts.get_mut(warmth.count)) {
                *slot = part;
                warmth.count += 1;
            }
        }
        warmth
    }

    /// Touches all of it.
    pub(crate) unsafe fn bring_near(&self) {
        for part in self.parts.iter().take(self.count) {
            let mut at = 0;
            while at < part.length {
                // SAFETY: this process has one thread, and has mapped all of it, as the kernel has said; what is written is what
                // stands there.
                unsafe {
                    let byte = part.first.add(at);
                    let value = byte.read_volatile();
                    if part.written {
                        byte.write_volatile(value);
                    }
                }
                at += part.step;
            }
        }
    }
}

unsafe fn read_list(list: &mut [u8; LIST]) -> usize {
    const O_CLOEXEC: usize = 0o2_000_000;
    const AT_FDCWD: usize = -100_isize as usize;
    let path: *const c_char = c"/proc/self/maps".as_ptr();
    // SAFETY: the path ends in NUL, and no more is written than there is room for.
    unsafe {
        let opened = sys::call(sys::OPENAT, [AT_FDCWD, path as usize, O_CLOEXEC, 0, 0, 0]);
        let Ok(file) = usize::try_from(opened) else { return 0 };
        let mut length = 0;
        while let Some(room) = list.get_mut(length..).filter(|room| !room.is_empty()) {
            let got = sys::call(sys::READ, [file, room.as_mut_ptr() as usize, room.len(), 0, 0, 0]);
            match usize::try_from(got) {
                Ok(got @ 1..) => length += got,
                _ => break,
            }
        }
        sys::call(sys::CLOSE, [file, 0, 0, 0, 0, 0]);
        length
    }
}

/// Reads a line such as `55d0c0a00000-55d0c0a2f000 r--p 00000000 fe:00 1234 /usr/bin/bash`. Nothing where it is not to be touched.
fn part(line: &[u8]) -> Option<Part> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let mut ends = words.next()?.split(|byte| *byte == b'-');
    let (first, end) = (address(ends.next()?)?, address(ends.next()?)?);
    let &[b'r', write, _, b'p'] = words.next()? else { return None };
    // Behind the offset, the device and the number of the file.
    let name = words.nth(3).unwrap_or(&[]);
    if name.starts_with(b"[v") {
        // The kernel's own.
        return None;
    }
    let length = end.checked_sub(first)?;
    if write == b'w' {
        let length = length.min(if name == b"[stack]" { MOST_OF_STACK } else { MOST_WRITTEN });
        return Some(Part { first: (end - length) as *mut u8, length, step: PAGE, written: true });
    }
    let length = length.min(MOST_READ);
    Some(Part { first: first as *mut u8, length, step: AROUND, written: false })
}

fn address(text: &[u8]) -> Option<usize> {
    text.iter().try_fold(0_usize, |value, byte| {
        let digit = (*byte as char).to_digit(16)?;
        Some(value.checked_mul(16)? + digit as usize)
    })
}
