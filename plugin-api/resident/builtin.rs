//! A builtin that turns a bash into a server of shells.
//!
//! A fresh `bash -c` costs mostly what comes before the command: exec, the dynamic linker, locale, the import of the environment.
//! A bash that has all this behind it can be copied instead. This file is loaded by such a bash (the *resident*) with `enable -f`, and
//! adds one builtin: `hostel_serve WAKE RING REQUESTS [CGROUPS PREFIX]`. It makes one copy of the shell, the *spare*, and another one once that
//! is used, which it says on RING, so that it comes out of WAKE. Two spares at once could take each other's requests. A copy is made with `CLONE_PARENT`: its parent is the host, which waits for it as for any child of its own, so
//! that the resident need not live for a command to end. In the spare the builtin puts right what a copy has wrong (process
//! id, session, jobs), says its number on REQUESTS, and that of its cgroup, and waits there for a request. That brings descriptors, which it makes its
//! own; then it returns to the script that called it, which goes on as that of a fresh shell would. So a command waits for no
//! copy to be made, unless there are many at once. The resident itself never runs a command.
//!
//! At its exit the copy writes down what a command has changed. The script only leaves word that its end or its trap was reached, in a variable;
//! the rest is done here, when the process calls `exit`, because making the shell print its variables costs as much as the command.
//!
//! There is no libc here, and it needs no particular one: system calls are made directly, and what is used of bash is
//! looked up by name in the bash that loaded us. What cannot be found makes `enable` fail, and the host starts shells in the
//! ordinary way.
//!
//! `build.rs` compiles it by itself; it belongs to no crate. All of it is unsafe by nature: it speaks to the kernel and to bash.
#![no_std]

mod bash;
mod copy;
mod record;
mod sys;
mod warm;

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};

use copy::Copies;
use warm::Warmth;

use bash::{BASH, BUILTIN_ENABLED, Bash, Builtin, Timeval, Words, find_bash};

// What bash wants to see.

struct Doc([*const c_char; 1]);
// SAFETY: never written.
unsafe impl Sync for Doc {}
static NO_DOC: Doc = Doc([null()]);

/// `enable -f` finds this by name, and writes to it (flags and handle), so it must lie in writable memory: hence `mut`.
#[unsafe(no_mangle)]
static mut hostel_serve_struct: Builtin = Builtin {
    name: c"hostel_serve".as_ptr(),
    function: serve,
    flags: BUILTIN_ENABLED,
    long_doc: NO_DOC.0.as_ptr(),
    short_doc: c"hostel_serve WAKE RING REQUESTS [CGROUPS PREFIX]".as_ptr(),
    handle: null_mut(),
};

/// Called by `enable -f`; 0 makes it fail.
#[unsafe(no_mangle)]
extern "C" fn hostel_serve_builtin_load(_name: *const c_char) -> c_int {
    // SAFETY: bash has one thread.
    unsafe {
        BASH = find_bash();
        c_int::from((*(&raw const BASH)).is_some())
    }
}

// The request.

/// What a request says besides its descriptors: the copy's input, output, errors and script, 0 to 3, and its record.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    magic: u32,
    flags: u32,
    /// What the copy carries in the environment that the kernel shows of it, up to a NUL.
    mark: [u8; LONGEST_MARK],
}

/// As long as the value of `HOSTEL_CALL` in the resident's own environment can be, and a NUL.
const LONGEST_MARK: usize = 504;

const MAGIC: u32 = 0x484f_5354;
/// Descriptor 0 becomes the controlling terminal.
const TERMINAL: u32 = 1;

const MOST_DESCRIPTORS: usize = 5;
/// Of these, the last goes to a number of its own, and is closed for programs.
const LOW: usize = 4;
const RECORD: usize = 99;
/// Out of reach of the numbers that the copy gets.
const FIRST_FREE: usize = 100;
/// After so many seconds without a request, neither the resident nor its spare is worth its memory.
const PATIENCE: usize = 120;

#[repr(C)]
struct Slice {
    base: *mut c_void,
    length: usize,
}

#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: u32,
    slices: *mut Slice,
    slice_count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

#[repr(C, align(8))]
struct Control {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptors: [c_int; MOST_DESCRIPTORS],
}

const SHUT_RD: usize = 0;
const POLLIN: i16 = 1;
const POLLHUP: i16 = 0x10;

/// `struct pollfd`.
#[repr(C)]
struct Poll {
    descriptor: c_int,
    wanted: i16,
    found: i16,
}

// The server.

extern "C" fn serve(words: *mut Words) -> c_int {
    // SAFETY: bash passes a well-formed list and has one thread; everything else is checked on the way.
    unsafe {
        let Some(bash) = *(&raw const BASH) else { return 1 };
        let Some(([wake, ring, requests], rest)) = numbers(words) else { return 2 };
        let mut copies = Copies::new(numbers(rest).and_then(|([parent], rest)| Some((parent, text(rest)?))));
        let Some(()) = record::note_options(&bash) else { return 1 };
        // So that a copy whose exports do not change finds them ready for its programs.
        (bash.maybe_make_export_env)();
        let warmth = Warmth::of_this_process();
        loop {
            let pid = copies.make();
            if pid == 0 {
                wait_for_request(&bash, &warmth, ring, requests, copies.number());
                return 0;
            }
            let mut word = 0_u8;
            // Without a copy, or once the host is gone or has no more use for us: no trap, no record: this is no command's shell.
            if pid < 0
                || !is_ready([wake, requests], [POLLIN, 0], PATIENCE)
                || sys::call(sys::READ, [wake, (&raw mut word) as usize, 1, 0, 0, 0]) != 1
            {
                leave();
            }
        }
    }
}

/// Returns whether the first of two can be read within so many seconds, and the second is not closed at its other end.
unsafe fn is_ready(descriptors: [usize; 2], wanted: [i16; 2], seconds: usize) -> bool {
    loop {
        let [first, second] = descriptors.map(|descriptor| descriptor as c_int);
        let mut polls = [
            Poll { descriptor: first, wanted: wanted[0], found: 0 },
            Poll { descriptor: second, wanted: wanted[1], found: 0 },
        ];
        let timeout: [usize; 2] = [seconds, 0];
        // SAFETY: both are values of this frame.
        let ready = unsafe {
            sys::call(sys::PPOLL, [(&raw mut polls) as usize, 2, (&raw const timeout) as usize, 0, 0, 0])
        };
        if ready != sys::EINTR {
            return ready > 0 && polls[0].found & POLLIN != 0 && polls[1].found & POLLHUP == 0;
        }
    }
}

/// Makes the copy a shell of its own, and waits until there is something for it to do.
unsafe fn wait_for_request(bash: &Bash, warmth: &Warmth, ring: usize, requests: usize, cgroup: u32) {
    // SAFETY: the pointers in `bash` were found by name in this process.
    unsafe {
        if sys::call(sys::SETSID, [0; 6]) < 0 {
            leave();
        }
        let own = i32::try_from(sys::call(sys::GETPID, [0; 6])).unwrap_or(0);
        *bash.dollar_dollar_pid = own;
        *bash.shell_pgrp = own;
        *bash.last_made_pid = -1;
        *bash.last_asynchronous_pid = -1;
        *bash.terminal_pgrp = -1;
        (bash.delete_all_jobs)(0);
        hide(bash);
        // Until this is read, the host does not know of us; after it, it waits for our end.
        let said = [own as u32, cgroup];
        if sys::write(requests, (&raw const said).cast(), 8) != 8 {
            leave();
        }
        // A request that is there already is better served at once.
        if !is_ready([requests, ring], [POLLIN, 0], 0) {
            warmth.bring_near();
        }
        let mut request = Request { magic: 0, flags: 0, mark: [0; LONGEST_MARK] };
        let mut control = Control { length: 0, level: 0, kind: 0, descriptors: [-1; MOST_DESCRIPTORS] };
        let got = loop {
            if !is_ready([requests, ring], [POLLIN, 0], PATIENCE) {
                // From here on the host cannot send any more, and what came just before that is still received: a request that nobody
                // reads would be a command that fails.
                sys::call(sys::SHUTDOWN, [requests, SHUT_RD, 0, 0, 0, 0]);
            }
            let got = receive(requests, &mut request, &mut control);
            if got != sys::EINTR {
                break got;
            }
        };
        let count = control.length.saturating_sub(16) / 4;
        // What was cut short would run something else than was asked for.
        let whole =
            got == size_of::<Request>() as isize && count == MOST_DESCRIPTORS && request.magic == MAGIC;
        if !whole {
            leave();
        }
        // From here on another one may wait.
        sys::write(ring, (&raw const request).cast(), 1);
        request.mark[LONGEST_MARK - 1] = 0;
        begin(bash, &request, &control.descriptors, own);
    }
}

/// Receives one request. Returns its length, 0 where nobody is left to send one, or a negative error number.
unsafe fn receive(socket: usize, request: &mut Request, control: &mut Control) -> isize {
    let mut slice = Slice { base: (&raw mut *request).cast(), length: size_of::<Request>() };
    let mut message = Message {
        name: null_mut(),
        name_length: 0,
        slices: &raw mut slice,
        slice_count: 1,
        control: (&raw mut *control).cast(),
        control_length: size_of::<Control>(),
        flags: 0,
    };
    // SAFETY: every pointer leads to a value of this or the caller's frame, with its length.
    let got = unsafe {
        sys::call(sys::RECVMSG, [socket, (&raw mut message) as usize, sys::MSG_CMSG_CLOEXEC, 0, 0, 0])
    };
    if message.control_length < 16 {
        control.length = 0;
    }
    // MSG_TRUNC, MSG_CTRUNC.
    if message.flags & 0x28 != 0 { 0 } else { got }
}

/// Gives the copy what the request brings.
unsafe fn begin(bash: &Bash, request: &Request, descriptors: &[c_int; MOST_DESCRIPTORS], own: c_int) {
    const TIOCSCTTY: usize = 0x540e;
    const F_DUPFD: usize = 0;
    const O_CLOEXEC: usize = 0o2_000_000;
    // SAFETY: the pointers in `bash` were found by name in this process.
    unsafe {
        let mut copies = [0_usize; MOST_DESCRIPTORS];
        for (descriptor, copy) in descriptors.iter().zip(&mut copies) {
            let number = sys::call(sys::FCNTL, [*descriptor as usize, F_DUPFD, FIRST_FREE, 0, 0, 0]);
            let Ok(number) = usize::try_from(number) else { leave() };
            *copy = number;
        }
        for (target, copy) in copies.iter().enumerate() {
            let (target, flags) = if target < LOW { (target, 0) } else { (RECORD, O_CLOEXEC) };
            if sys::call(sys::DUP3, [*copy, target, flags, 0, 0, 0]) < 0 {
                leave();
            }
        }
        close(LOW, RECORD - 1);
        close(RECORD + 1, u32::MAX as usize);
        if request.flags & TERMINAL != 0 && sys::call(sys::IOCTL, [0, TIOCSCTTY, 0, 0, 0, 0]) == 0 {
            *bash.terminal_pgrp = own;
        }
        (bash.seedrand)();
        if let Some(seedrand32) = bash.seedrand32 {
            seedrand32();
        }
        let mut now = [0 as c_long; 2];
        sys::call(sys::CLOCK_GETTIME, [0, (&raw mut now) as usize, 0, 0, 0, 0]);
        *bash.shell_start_time = now[0];
        if !bash.shellstart.is_null() {
            *bash.shellstart = Timeval { seconds: now[0], micros: now[1] / 1000 };
        }
        carry(bash, &request.mark);
        record::RECORDER = own;
    }
}

/// Takes the builtin off bash's list: a command has no such thing.
unsafe fn hide(bash: &Bash) {
    // SAFETY: the list is as long as bash says, and one more entry without a name ends it.
    unsafe {
        if bash.shell_builtins.is_null() || bash.num_shell_builtins.is_null() {
            return;
        }
        let (list, count) = (*bash.shell_builtins, usize::try_from(*bash.num_shell_builtins).unwrap_or(0));
        let own = (&raw const hostel_serve_struct.name).read();
        for index in 0..count {
            if (*list.add(index)).name == own {
                for next in index..count {
                    list.add(next).write(list.add(next + 1).read());
                }
                *bash.num_shell_builtins -= 1;
                return;
            }
        }
    }
}

/// Writes the call's mark over the value of `HOSTEL_CALL` with which the resident was started: whoever looks for the processes of
/// a call finds it in `/proc`. The host has made both equally long.
unsafe fn carry(bash: &Bash, mark: &[u8]) {
    // SAFETY: the strings are those that the kernel put on the stack, which is ours to write to, and each ends in NUL; no byte
    // beyond that is touched.
    unsafe {
        let mut entry = *bash.shell_environment;
        while !entry.is_null() && !(*entry).is_null() {
            let mut at = (*entry).cast::<u8>();
            let mut name = b"HOSTEL_CALL=".as_slice();
            while let [first, rest @ ..] = name {
                if *at != *first {
                    break;
                }
                at = at.add(1);
                name = rest;
            }
            if name.is_empty() {
                for byte in mark.iter().take_while(|byte| **byte != 0) {
                    if *at == 0 {
                        return;
                    }
                    *at = *byte;
                    at = at.add(1);
                }
                return;
            }
            entry = entry.add(1);
        }
    }
}

/// Closes the descriptors from `first` to `last`. Where the kernel has no `close_range`, those that there can be of ours.
unsafe fn close(first: usize, last: usize) {
    const MOST: usize = 1024;
    // SAFETY: closing harms nobody: this bash holds no descriptors of its own.
    unsafe {
        if sys::call(sys::CLOSE_RANGE, [first, last, 0, 0, 0, 0]) < 0 {
            for number in first..=last.min(MOST) {
                sys::call(sys::CLOSE, [number, 0, 0, 0, 0, 0]);
            }
        }
    }
}

/// Reads the first words, which are numbers. Returns the rest of them, too.
unsafe fn numbers<const N: usize>(mut words: *mut Words) -> Option<([usize; N], *mut Words)> {
    let mut numbers = [0; N];
    for slot in &mut numbers {
        // SAFETY: bash passes a well-formed list.
        unsafe {
            let word = words.as_ref()?;
            *slot = number((*word.word).text)?;
            words = word.next;
        }
    }
    Some((numbers, words))
}

unsafe fn text(words: *mut Words) -> Option<*const c_char> {
    // SAFETY: bash passes a well-formed list.
    unsafe { words.as_ref().map(|first| (*first.word).text.cast_const()) }
}

unsafe fn number(mut text: *const c_char) -> Option<usize> {
    // SAFETY: `text` ends in NUL.
    unsafe {
        let mut value = 0_usize;
        if *text == 0 {
            return None;
        }
        while *text != 0 {
            let digit = (*text as u8).wrapping_sub(b'0');
            if digit > 9 || value > 100_000 {
                return None;
            }
            value = value * 10 + usize::from(digit);
            text = text.add(1);
        }
        Some(value)
    }
}

/// Ends this process: a resident that nobody needs, or a copy that could not become a shell. It has read nothing of a command, which
/// the host can see.
fn leave() -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { sys::call(sys::EXIT_GROUP, [125, 0, 0, 0, 0, 0]) };
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    leave()
}
