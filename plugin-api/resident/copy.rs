//! Copies this process, each copy into a cgroup of its own where there may be one.
//!
//! Whatever a command starts is in its cgroup too. It is made while nobody waits, and is there before the copy is: to move a process
//! into another one costs milliseconds, to be born in it nothing. The host removes it.

use core::ffi::{c_char, c_int};

use crate::sys;

const CLONE_PARENT: usize = 0x8000;
const CLONE_CHILD_CLEARTID: usize = 0x20_0000;
const CLONE_CHILD_SETTID: usize = 0x0100_0000;
const CLONE_INTO_CGROUP: usize = 0x2_0000_0000;

/// `struct clone_args`, as the kernel has it since it knows cgroups there. Registers are as wide here.
#[repr(C)]
#[derive(Default)]
struct Arguments {
    flags: usize,
    pidfd: usize,
    child_tid: usize,
    parent_tid: usize,
    /// Zero where the parent is ours: the signal is then that of our own end.
    exit_signal: usize,
    stack: usize,
    stack_size: usize,
    tls: usize,
    set_tid: usize,
    set_tid_size: usize,
    cgroup: usize,
}

/// Room for the name of a cgroup.
const LONGEST_NAME: usize = 128;

/// Makes copies.
pub(crate) struct Copies {
    /// The cgroup in which each gets its own, and how the names of these begin.
    cgroups: Option<(usize, *const c_char)>,
    made: u32,
}

impl Copies {
    pub(crate) fn new(cgroups: Option<(usize, *const c_char)>) -> Self {
        Self { cgroups, made: 0 }
    }

    /// Returns the number with which the name of the last copy's cgroup ends; 0 where it has none.
    pub(crate) fn number(&self) -> u32 {
        if self.cgroups.is_some() { self.made } else { 0 }
    }

    /// Copies this process; the copy's parent is ours. Returns 0 in the copy, its id here, or a negative error number.
    pub(crate) unsafe fn make(&mut self) -> isize {
        // SAFETY: no memory is shared and the stack is ours, as in fork.
        unsafe {
            if let Some((parent, prefix)) = self.cgroups {
                self.made = self.made.wrapping_add(1);
                let made = into_cgroup(parent, prefix, self.made);
                if made >= 0 {
                    return made;
                }
                // Whatever was missing will be missing the next time.
                self.cgroups = None;
            }
            plain()
        }
    }
}

/// Copies this process into a new cgroup in `parent`. The result is that of [`Copies::make`].
unsafe fn into_cgroup(parent: usize, prefix: *const c_char, number: u32) -> isize {
    const MODE: usize = 0o755;
    const O_PATH: usize = 0o10_000_000;
    const O_CLOEXEC: usize = 0o2_000_000;
    const AT_REMOVEDIR: usize = 0x200;
    let mut name = [0_u8; LONGEST_NAME];
    // SAFETY: `prefix` ends in NUL, and so does `name`; no memory is shared with the copy.
    unsafe {
        if !write_name(&mut name, prefix, number) {
            return -1;
        }
        let path = name.as_ptr() as usize;
        let made = sys::call(sys::MKDIRAT, [parent, path, MODE, 0, 0, 0]);
        if made < 0 {
            return made;
        }
        let opened = sys::call(sys::OPENAT, [parent, path, O_PATH | O_CLOEXEC, 0, 0, 0]);
        let mut copy = opened;
        if let Ok(cgroup) = usize::try_from(opened) {
            let tid = thread_id_address();
            let known = if tid == 0 { 0 } else { CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID };
            let flags = CLONE_PARENT | CLONE_INTO_CGROUP | known;
            let arguments = Arguments { flags, child_tid: tid, cgroup, ..Arguments::default() };
            let address = (&raw const arguments) as usize;
            copy = sys::call(sys::CLONE3, [address, size_of::<Arguments>(), 0, 0, 0, 0]);
            sys::call(sys::CLOSE, [cgroup, 0, 0, 0, 0, 0]);
        }
        if copy < 0 {
            sys::call(sys::UNLINKAT, [parent, path, AT_REMOVEDIR, 0, 0, 0]);
        }
        copy
    }
}

/// Writes a number behind a prefix, and a NUL. Returns whether there was room. Nothing in it can panic, which would need more of Rust's
/// library than there is.
unsafe fn write_name(name: &mut [u8; LONGEST_NAME], prefix: *const c_char, number: u32) -> bool {
    let mut digits = [b'0'; 10];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut prefix = prefix;
    let mut digits = digits.iter().skip_while(|digit| **digit == b'0');
    for slot in name {
        // SAFETY: `prefix` ends in NUL, and is not read beyond that.
        unsafe {
            if *prefix != 0 {
                *slot = *prefix as u8;
                prefix = prefix.add(1);
            } else if let Some(digit) = digits.next() {
                *slot = *digit;
            } else {
                *slot = 0;
                return true;
            }
        }
    }
    false
}

/// Copies this process as fork does, where there are no cgroups or the system forbids `clone3`, as filters of system calls often do.
unsafe fn plain() -> isize {
    const SIGCHLD: usize = 17;
    // SAFETY: no memory is shared and the stack is ours, as in fork.
    unsafe {
        let tid = thread_id_address();
        let known = if tid == 0 { 0 } else { CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID };
        let flags = CLONE_PARENT | SIGCHLD | known;
        if cfg!(target_arch = "aarch64") {
            sys::call(sys::CLONE, [flags, 0, 0, 0, tid, 0])
        } else {
            sys::call(sys::CLONE, [flags, 0, 0, tid, 0, 0])
        }
    }
}

/// Returns where libc keeps the thread's id in its own memory: the kernel can write the copy's there, as it does in fork. Returns 0 where
/// that is not known: not every libc has the id there (musl has a lock), so only if it is what stands there now.
unsafe fn thread_id_address() -> usize {
    const PR_GET_TID_ADDRESS: usize = 40;
    let mut address = 0_usize;
    // SAFETY: the kernel writes one address of this process, which libc has told it, and only to `address`.
    unsafe {
        let asked = sys::call(sys::PRCTL, [PR_GET_TID_ADDRESS, (&raw mut address) as usize, 0, 0, 0, 0]);
        let known = asked == 0
            && address != 0
            && *(address as *const c_int) as isize == sys::call(sys::GETTID, [0; 6]);
        if known { address } else { 0 }
    }
}
