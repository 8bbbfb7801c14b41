//! System calls, made directly: there is no libc here.

use core::arch::asm;

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
    SHUTDOWN 48 210
    CLONE 56 220
    FCNTL 72 25
    SETSID 112 157
    PRCTL 157 167
    GETTID 186 178
    CLOCK_GETTIME 228 113
    EXIT_GROUP 231 94
    OPENAT 257 56
    MKDIRAT 258 34
    UNLINKAT 263 35
    PPOLL 271 73
    DUP3 292 24
    CLONE3 435 435
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
