//! A builtin that turns a bash into a server of shells.
//!
//! A fresh `bash -c` costs mostly what comes before the command: exec, the dynamic linker, locale, the import of the environment.
//! A bash that has all this behind it can be copied instead. This file is loaded by such a bash (the *resident*) with `enable -f`, and
//! adds one builtin: `hostel_serve WAKE RING REQUESTS`. It makes one copy of the shell, the *spare*, and another one once that
//! is used, which it says on RING, so that it comes out of WAKE. Two spares at once could take each other's requests. A copy is made with `CLONE_PARENT`: its parent is the host, which waits for it as for any child of its own, so
//! that the resident need not live for a command to end. In the spare the builtin puts right what a copy has wrong (process
//! id, session, jobs), says its number on REQUESTS, and waits there for a request. That brings descriptors, which it makes its
//! own; then it returns to the script that called it, which goes on as that of a fresh shell would. So a command waits for no
//! copy to be made, unless there are many at once. The resident itself never runs a command.
//!
//! At its exit the copy writes down what a command has changed. The script's trap only leaves word that it was reached, in a variable;
//! the rest is done here, when the process calls `exit`, because making the shell print its variables costs as much as the command.
//!
//! There is no libc here, and it needs no particular one: system calls are made directly, and what is used of bash is
//! looked up by name in the bash that loaded us. What cannot be found makes `enable` fail, and the host starts shells in the
//! ordinary way.
//!
//! `build.rs` compiles it by itself; it belongs to no crate. All of it is unsafe by nature: it speaks to the kernel and to bash.
#![no_std]

use core::arch::asm;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};

// What bash wants to see.

/// `WORD_DESC` of bash's command.h.
#[repr(C)]
struct Word {
    text: *mut c_char,
    flags: c_int,
}

/// `WORD_LIST` of bash's command.h.
#[repr(C)]
struct Words {
    next: *mut Words,
    word: *mut Word,
}

/// `struct builtin` of bash's builtins.h.
#[repr(C)]
struct Builtin {
    name: *const c_char,
    function: extern "C" fn(*mut Words) -> c_int,
    flags: c_int,
    long_doc: *const *const c_char,
    short_doc: *const c_char,
    handle: *mut c_void,
}

const BUILTIN_ENABLED: c_int = 1;

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
    short_doc: c"hostel_serve WAKE RING REQUESTS".as_ptr(),
    handle: null_mut(),
};

unsafe extern "C" {
    /// The only symbol that must be there for the library to load. A bash without it has no `enable -f` either.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Timeval {
    seconds: c_long,
    micros: c_long,
}

/// `HASH_TABLE` of bash's hashlib.h.
#[repr(C)]
struct HashTable {
    buckets: *mut c_void,
    bucket_count: c_int,
    entry_count: c_int,
}

/// What we use of bash, by bash's own names.
#[derive(Clone, Copy)]
struct Bash {
    dollar_dollar_pid: *mut c_int,
    shell_pgrp: *mut c_int,
    terminal_pgrp: *mut c_int,
    last_made_pid: *mut c_int,
    last_asynchronous_pid: *mut c_int,
    shell_start_time: *mut c_long,
    seedrand: extern "C" fn(),
    delete_all_jobs: extern "C" fn(c_int),
    maybe_make_export_env: extern "C" fn(),
    export_env: *mut *mut *mut c_char,
    get_working_directory: extern "C" fn(*const c_char) -> *mut c_char,
    get_string_value: extern "C" fn(*const c_char) -> *mut c_char,
    shell_functions: *mut *mut HashTable,
    aliases: *mut *mut HashTable,
    parse_and_execute: extern "C" fn(*mut c_char, *const c_char, c_int) -> c_int,
    xmalloc: extern "C" fn(usize) -> *mut c_void,
    /// Since bash 5.2.
    shellstart: *mut Timeval,
    /// Seed of `SRANDOM` where there is no getrandom.
    seedrand32: Option<extern "C" fn()>,
    shell_builtins: *mut *mut Builtin,
    num_shell_builtins: *mut c_int,
    /// The environment that the process was started with.
    shell_environment: *mut *mut *mut c_char,
}

static mut BASH: Option<Bash> = None;

/// Finds everything, or nothing: half of it would make shells that are wrong in a way nobody sees.
unsafe fn find_bash() -> Option<Bash> {
    // SAFETY: a null handle searches the whole process, the executable first; a function has the type of its declaration in
    // the headers of bash 5. The host asks for a version that is known.
    unsafe {
        macro_rules! perhaps {
            ($name:literal) => {
                core::mem::transmute_copy(&dlsym(null_mut(), concat!($name, "\0").as_ptr().cast()))
            };
        }
        macro_rules! find {
            ($name:literal) => {{
                let address = dlsym(null_mut(), concat!($name, "\0").as_ptr().cast());
                if address.is_null() {
                    return None;
                }
                core::mem::transmute_copy(&address)
            }};
        }
        Some(Bash {
            dollar_dollar_pid: find!("dollar_dollar_pid"),
            shell_pgrp: find!("shell_pgrp"),
            terminal_pgrp: find!("terminal_pgrp"),
            last_made_pid: find!("last_made_pid"),
            last_asynchronous_pid: find!("last_asynchronous_pid"),
            shell_start_time: find!("shell_start_time"),
            seedrand: find!("seedrand"),
            delete_all_jobs: find!("delete_all_jobs"),
            maybe_make_export_env: find!("maybe_make_export_env"),
            export_env: find!("export_env"),
            get_working_directory: find!("get_working_directory"),
            get_string_value: find!("get_string_value"),
            shell_functions: find!("shell_functions"),
            aliases: find!("aliases"),
            parse_and_execute: find!("parse_and_execute"),
            xmalloc: find!("xmalloc"),
            shell_environment: find!("shell_environment"),
            shellstart: perhaps!("shellstart"),
            seedrand32: perhaps!("seedrand32"),
            shell_builtins: perhaps!("shell_builtins"),
            num_shell_builtins: perhaps!("num_shell_builtins"),
        })
    }
}

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
        let Some([wake, ring, requests]) = numbers(words) else { return 2 };
        // So that a copy whose exports do not change finds them ready for its programs.
        (bash.maybe_make_export_env)();
        loop {
            let pid = copy();
            if pid == 0 {
                wait_for_request(&bash, ring, requests);
                return 0;
            }
            let mut word = 0_u8;
            // Without a copy, or once the host is gone or has no more use for us: no trap, no record: this is no command's shell.
            if pid < 0
                || !is_ready([wake, requests], [POLLIN, 0])
                || sys::call(sys::READ, [wake, (&raw mut word) as usize, 1, 0, 0, 0]) != 1
            {
                leave();
            }
        }
    }
}

/// Returns whether the first of two can be read within our patience, and the second is not closed at its other end.
unsafe fn is_ready(descriptors: [usize; 2], wanted: [i16; 2]) -> bool {
    loop {
        let [first, second] = descriptors.map(|descriptor| descriptor as c_int);
        let mut polls = [
            Poll { descriptor: first, wanted: wanted[0], found: 0 },
            Poll { descriptor: second, wanted: wanted[1], found: 0 },
        ];
        let timeout: [usize; 2] = [PATIENCE, 0];
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
unsafe fn wait_for_request(bash: &Bash, ring: usize, requests: usize) {
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
        if sys::write(requests, (&raw const own).cast(), 4) != 4 {
            leave();
        }
        let mut request = Request { magic: 0, flags: 0, mark: [0; LONGEST_MARK] };
        let mut control = Control { length: 0, level: 0, kind: 0, descriptors: [-1; MOST_DESCRIPTORS] };
        let got = loop {
            let ready = is_ready([requests, ring], [POLLIN, 0]);
            let got = if ready { receive(requests, &mut request, &mut control) } else { 0 };
            if got != sys::EINTR {
                break got;
            }
        };
        let count = control.length.saturating_sub(16) / 4;
        // What was cut short would run something else than was asked for.
        let whole = got == size_of::<Request>() as isize && count == MOST_DESCRIPTORS && request.magic == MAGIC;
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
    let got =
        unsafe { sys::call(sys::RECVMSG, [socket, (&raw mut message) as usize, sys::MSG_CMSG_CLOEXEC, 0, 0, 0]) };
    if message.control_length < 16 {
        control.length = 0;
    }
    // MSG_TRUNC, MSG_CTRUNC.
    if message.flags & 0x28 != 0 { 0 } else { got }
}

/// Copies this process; the copy's parent is ours. Returns 0 in the copy, its id here, or a negative error number.
unsafe fn copy() -> isize {
    const CLONE_PARENT: usize = 0x8000;
    const CLONE_CHILD_CLEARTID: usize = 0x20_0000;
    const CLONE_CHILD_SETTID: usize = 0x0100_0000;
    const SIGCHLD: usize = 17;
    const PR_GET_TID_ADDRESS: usize = 40;
    // SAFETY: no memory is shared and the stack is ours, as in fork.
    unsafe {
        // libc keeps the thread's id in its own memory; the kernel knows where, and can write the copy's there as fork does.
        let mut tid_address = 0_usize;
        // Not every libc has the id there (musl has a lock): so only if it is what stands there now.
        let known = sys::call(sys::PRCTL, [PR_GET_TID_ADDRESS, (&raw mut tid_address) as usize, 0, 0, 0, 0]) == 0
            && tid_address != 0
            && *(tid_address as *const c_int) as isize == sys::call(sys::GETTID, [0; 6]);
        let flags = CLONE_PARENT | SIGCHLD | if known { CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID } else { 0 };
        // Not clone3, which filters of system calls often refuse.
        if cfg!(target_arch = "aarch64") {
            sys::call(sys::CLONE, [flags, 0, 0, 0, tid_address, 0])
        } else {
            sys::call(sys::CLONE, [flags, 0, 0, tid_address, 0, 0])
        }
    }
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
        RECORDER = own;
    }
}

// The record.

/// The process that writes a record. Copies of it, such as subshells, have another number.
static mut RECORDER: c_int = 0;

/// The variable in which the script's trap leaves the options that were on before and after the command.
const WORD: *const c_char = c"__hostel".as_ptr();

/// What bash itself must write down, where there is any of it: aliases, names of functions, and the functions. As in the trap of
/// a shell that was started.
const DEFINITIONS: &[u8] = b"{ \\unset -f builtin; \\builtin set +vx; \\builtin trap - DEBUG; \\builtin alias -p; \\builtin printf '\\0'; \\builtin compgen -A function && \\builtin shopt -u expand_aliases && \\builtin eval '\\builtin printf \"\\0\"; \\builtin declare -F; \\builtin printf \"\\0\"; \\builtin mapfile -t -d \"\" __hostel_list </proc/self/fd/99; \\builtin set -f; IFS=\"\n\"; for __hostel in ${__hostel_list[-1]}; do \\builtin declare -f -- \"${__hostel##* }\"; \\builtin printf \"\\0\"; done'; } 2>/dev/null\0";

/// Runs when the process calls `exit`, after all traps. Whoever is killed or replaces itself by a program does not come here.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = record;

extern "C" fn record() {
    // SAFETY: bash's variables are still there: it frees none of them at exit.
    unsafe {
        if RECORDER == 0 || sys::call(sys::GETPID, [0; 6]) != RECORDER as isize {
            return;
        }
        let Some(bash) = *(&raw const BASH) else { return };
        let word = (bash.get_string_value)(WORD);
        if word.is_null() {
            // The trap was replaced.
            return;
        }
        // A limit on the size of files is the command's, and must not kill us: SIGXFSZ to SIG_IGN.
        let ignore: [usize; 4] = [1, 0, 0, 0];
        sys::call(sys::RT_SIGACTION, [25, (&raw const ignore) as usize, 0, 8, 0, 0]);
        let mut out = Out { used: 0, buffer: [0; 4096] };
        let directory = (bash.get_working_directory)(c"hostel".as_ptr());
        if !directory.is_null() {
            out.text(directory);
        }
        out.bytes(b"\n\0");
        (bash.maybe_make_export_env)();
        let mut entry = *bash.export_env;
        while !entry.is_null() && !(*entry).is_null() {
            out.bytes(b"\x01");
            out.text(*entry);
            out.bytes(b"\0");
            entry = entry.add(1);
        }
        out.text(word);
        out.bytes(b"\0");
        let some = |table: *mut *mut HashTable| !(*table).is_null() && (**table).entry_count > 0;
        if some(bash.shell_functions) || some(bash.aliases) {
            out.flush();
            sys::call(sys::DUP3, [RECORD, 1, 0, 0, 0, 0]);
            let text = (bash.xmalloc)(DEFINITIONS.len()).cast::<u8>();
            core::ptr::copy_nonoverlapping(DEFINITIONS.as_ptr(), text, DEFINITIONS.len());
            // SEVAL_NOHIST. It frees the text.
            (bash.parse_and_execute)(text.cast(), c"hostel".as_ptr(), 0x004);
        } else {
            out.bytes(b"\0");
        }
        out.bytes(b"end");
        out.flush();
    }
}

/// Collects what goes to the record.
struct Out {
    used: usize,
    buffer: [u8; 4096],
}

impl Out {
    unsafe fn text(&mut self, text: *const c_char) {
        // SAFETY: `text` ends in NUL.
        unsafe {
            let mut at = text.cast::<u8>();
            while *at != 0 {
                self.byte(*at);
                at = at.add(1);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.used >= self.buffer.len() {
            self.flush();
        }
        if let Some(slot) = self.buffer.get_mut(self.used) {
            *slot = byte;
            self.used += 1;
        }
    }

    fn flush(&mut self) {
        let mut done = 0;
        while done < self.used {
            let rest = self.buffer.get(done..self.used).unwrap_or(&[]);
            // SAFETY: `rest` is our own memory.
            let wrote = unsafe { sys::write(RECORD, rest.as_ptr(), rest.len()) };
            // A record without its end mark is not read.
            if wrote <= 0 {
                break;
            }
            done += wrote as usize;
        }
        self.used = 0;
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

unsafe fn numbers<const N: usize>(mut words: *mut Words) -> Option<[usize; N]> {
    let mut numbers = [0; N];
    for slot in &mut numbers {
        // SAFETY: bash passes a well-formed list.
        unsafe {
            let word = words.as_ref()?;
            *slot = number((*word.word).text)?;
            words = word.next;
        }
    }
    Some(numbers)
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

/// System calls.
mod sys {
    use super::asm;

    pub const EINTR: isize = -4;
    pub const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
    pub const CLOSE_RANGE: usize = 436;

    macro_rules! numbers {
        ($($name:ident $x86_64:literal $aarch64:literal)*) => {
            $(pub const $name: usize = if cfg!(target_arch = "aarch64") { $aarch64 } else { $x86_64 };)*
        };
    }
    numbers! {
        READ 0 63
        WRITE 1 64
        CLOSE 3 57
        RT_SIGACTION 13 134
        IOCTL 16 29
        GETPID 39 172
        RECVMSG 47 212
        CLONE 56 220
        FCNTL 72 25
        SETSID 112 157
        PRCTL 157 167
        GETTID 186 178
        CLOCK_GETTIME 228 113
        EXIT_GROUP 231 94
        PPOLL 271 73
        DUP3 292 24
    }

    pub unsafe fn write(file: usize, from: *const u8, length: usize) -> isize {
        // SAFETY: as the caller promises.
        unsafe { call(WRITE, [file, from as usize, length, 0, 0, 0]) }
    }

    #[cfg(target_arch = "x86_64")]
    pub unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        let result: isize;
        // SAFETY: the kernel's convention; what the call does is the caller's promise.
        unsafe {
            asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
                in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
        }
        result
    }

    #[cfg(target_arch = "aarch64")]
    pub unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        let result: isize;
        // SAFETY: the kernel's convention; what the call does is the caller's promise.
        unsafe {
            asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e,
                in("x5") f, options(nostack));
        }
        result
    }
}
