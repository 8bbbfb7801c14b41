//! What a copy writes down at its exit of what a command has changed.

use core::ffi::{c_char, c_int};

use crate::bash::{BASH, Bash, HashTable};
use crate::{RECORD, sys};

/// The process that writes a record. Copies of it, such as subshells, have another number.
pub(crate) static mut RECORDER: c_int = 0;

/// The options that are on before any command, as `$SHELLOPTS/$BASHOPTS` has them, up to a NUL.
static mut BEFORE: [u8; LONGEST_OPTIONS] = [0; LONGEST_OPTIONS];

/// The names of all options take half as much.
const LONGEST_OPTIONS: usize = 2048;

/// The variable in which the script leaves the options that are on at the end of the command.
const WORD: *const c_char = c"__hostel".as_ptr();

/// What bash itself must write down, where there is any of it: aliases, names of functions, and the functions. As in the trap of
/// a shell that was started.
const DEFINITIONS: &[u8] = b"{ \\unset -f builtin; \\builtin set +vx; \\builtin trap - DEBUG; \\builtin alias -p; \\builtin printf '\\0'; \\builtin compgen -A function && \\builtin shopt -u expand_aliases && \\builtin eval '\\builtin printf \"\\0\"; \\builtin declare -F; \\builtin printf \"\\0\"; \\builtin mapfile -t -d \"\" __hostel_list </proc/self/fd/99; \\builtin set -f; IFS=\"\n\"; for __hostel in ${__hostel_list[-1]}; do \\builtin declare -f -- \"${__hostel##* }\"; \\builtin printf \"\\0\"; done'; } 2>/dev/null\0";

/// Notes the options that are on now. None where there is no room for them.
pub(crate) unsafe fn note_options(bash: &Bash) -> Option<()> {
    let mut used = 0;
    for (name, end) in [(c"SHELLOPTS", b'/'), (c"BASHOPTS", 0)] {
        // SAFETY: bash has one thread, its strings end in NUL, and no byte beyond `BEFORE` is touched.
        unsafe {
            let to = (&raw mut BEFORE).cast::<u8>();
            let mut from = (bash.get_string_value)(name.as_ptr()).cast::<u8>();
            while !from.is_null() && *from != 0 && used + 1 < LONGEST_OPTIONS {
                to.add(used).write(*from);
                (used, from) = (used + 1, from.add(1));
            }
            if used + 1 >= LONGEST_OPTIONS {
                return None;
            }
            to.add(used).write(end);
        }
        used += 1;
    }
    Some(())
}

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
        out.text((&raw const BEFORE).cast());
        out.bytes(b" ");
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
