//! What is used of bash, as its headers have it.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::null_mut;

/// `WORD_DESC` of bash's command.h.
#[repr(C)]
pub(crate) struct Word {
    pub(crate) text: *mut c_char,
    pub(crate) flags: c_int,
}

/// `WORD_LIST` of bash's command.h.
#[repr(C)]
pub(crate) struct Words {
    pub(crate) next: *mut Words,
    pub(crate) word: *mut Word,
}

/// `struct builtin` of bash's builtins.h.
#[repr(C)]
pub(crate) struct Builtin {
    pub(crate) name: *const c_char,
    pub(crate) function: extern "C" fn(*mut Words) -> c_int,
    pub(crate) flags: c_int,
    pub(crate) long_doc: *const *const c_char,
    pub(crate) short_doc: *const c_char,
    pub(crate) handle: *mut c_void,
}

pub(crate) const BUILTIN_ENABLED: c_int = 1;

unsafe extern "C" {
    /// The only symbol that must be there for the library to load. A bash without it has no `enable -f` either.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Timeval {
    pub(crate) seconds: c_long,
    pub(crate) micros: c_long,
}

/// `HASH_TABLE` of bash's hashlib.h.
#[repr(C)]
pub(crate) struct HashTable {
    pub(crate) buckets: *mut c_void,
    pub(crate) bucket_count: c_int,
    pub(crate) entry_count: c_int,
}

/// What we use of bash, by bash's own names.
#[derive(Clone, Copy)]
pub(crate) struct Bash {
    pub(crate) dollar_dollar_pid: *mut c_int,
    pub(crate) shell_pgrp: *mut c_int,
    pub(crate) terminal_pgrp: *mut c_int,
    pub(crate) last_made_pid: *mut c_int,
    pub(crate) last_asynchronous_pid: *mut c_int,
    pub(crate) shell_start_time: *mut c_long,
    pub(crate) seedrand: extern "C" fn(),
    pub(crate) delete_all_jobs: extern "C" fn(c_int),
    pub(crate) maybe_make_export_env: extern "C" fn(),
    pub(crate) export_env: *mut *mut *mut c_char,
    pub(crate) get_working_directory: extern "C" fn(*const c_char) -> *mut c_char,
    pub(crate) get_string_value: extern "C" fn(*const c_char) -> *mut c_char,
    pub(crate) shell_functions: *mut *mut HashTable,
    pub(crate) aliases: *mut *mut HashTable,
    pub(crate) parse_and_execute: extern "C" fn(*mut c_char, *const c_char, c_int) -> c_int,
    pub(crate) xmalloc: extern "C" fn(usize) -> *mut c_void,
    /// Since bash 5.2.
    pub(crate) shellstart: *mut Timeval,
    /// Seed of `SRANDOM` where there is no getrandom.
    pub(crate) seedrand32: Option<extern "C" fn()>,
    pub(crate) shell_builtins: *mut *mut Builtin,
    pub(crate) num_shell_builtins: *mut c_int,
    /// The environment that the process was started with.
    pub(crate) shell_environment: *mut *mut *mut c_char,
}

pub(crate) static mut BASH: Option<Bash> = None;

/// Finds everything, or nothing: half of it would make shells that are wrong in a way nobody sees.
pub(crate) unsafe fn find_bash() -> Option<Bash> {
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
