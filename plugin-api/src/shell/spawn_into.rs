//! The start of a process in a cgroup, which is a part of the spawn function.
//!
//! A process that is moved into a cgroup is moved under a lock of the kernel's that can take milliseconds to get, and may have
//! children by then. One that is born there costs nothing, but no libc of today lets `posix_spawn` ask for it. So its steps are taken
//! here, by the same means: the child borrows our memory on a stack of its own (`CLONE_VM`, `CLONE_VFORK`), this thread stands
//! still until it has become another program, and what failed stands in our memory then. No signal reaches the child meanwhile: all
//! are blocked, and have no handler of ours.
//!
//! The child calls nothing but the kernel, and that without those functions of libc at which a thread can be cancelled. It allocates
//! nothing, takes no lock, and cannot panic.

use std::arch::asm;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::super::transport::Process;

/// What the child does before it becomes the program.
pub(super) struct Steps<'a> {
    pub(super) program: &'a CStr,
    /// Both end in a null pointer.
    pub(super) argv: &'a [*mut c_char],
    pub(super) env: &'a [*mut c_char],
    pub(super) cwd: &'a CStr,
    /// The first becomes its descriptor 0, and so on. All have numbers above.
    pub(super) descriptors: &'a [c_int],
    /// The path of the terminal that is opened anew as descriptor 0, where that is to be.
    pub(super) terminal: Option<&'a CStr>,
}

/// What the child is told, and what it says.
struct Shared<'a> {
    steps: &'a Steps<'a>,
    /// The error number of the step that failed.
    failed: AtomicI32,
}

/// `struct clone_args`, as the kernel has it since it knows cgroups there.
#[repr(C)]
#[derive(Default)]
struct Arguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Not in every libc's headers: all signals that have a handler get their defaults.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Room for the child's few frames, as `posix_spawn` has it, in units of what a stack must be aligned to.
const STACK: usize = 32 * 1024 / size_of::<u128>();

/// The highest signal's number.
const SIGNALS: c_int = 64;

/// The signals that libc keeps for itself. Its `posix_spawn` leaves them ignored, and so are they in all other shells of ours.
const LIBC_OWN: std::ops::RangeInclusive<c_int> = 32..=33;

/// Whether the system has refused, as it will the next time.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns whether a process can be born in a cgroup, as far as is known.
pub(crate) fn may_be_possible() -> bool {
    !REFUSED.load(Ordering::Relaxed)
}

/// Starts a process in the cgroup. None where this system cannot do it, and nothing was started.
pub(super) fn spawn_into(cgroup: BorrowedFd<'_>, steps: &Steps<'_>) -> io::Result<Option<Process>> {
    if !may_be_possible() {
        return Ok(None);
    }
    let shared = Shared { steps, failed: AtomicI32::new(0) };
    let mut stack: Vec<UnsafeCell<MaybeUninit<u128>>> = Vec::with_capacity(STACK);
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    let arguments = Arguments {
        flags: u64::from(flags.cast_unsigned()) | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP,
        pidfd: (&raw mut pidfd).expose_provenance() as u64,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        stack: stack.as_mut_ptr().expose_provenance() as u64,
        stack_size: (STACK * size_of::<u128>()) as u64,
        cgroup: u64::from(cgroup.as_raw_fd().cast_unsigned()),
        ..Arguments::default()
    };
    let blocked = Blocked::new()?;
    // SAFETY: the stack is as long as is said, aligned, and nobody else's until the call returns; `shared` and all that it leads to live
    // as long; `become_program` never returns and does nothing that another thread of ours could be half-way through.
    let number = unsafe { clone3(&arguments, become_program, &shared) };
    drop(blocked);
    drop(stack);
    let Some(pid) = i32::try_from(number).ok().filter(|number| *number > 0).and_then(Pid::from_raw) else {
        // Of a kernel that is too old, or of a filter of system calls. All else is for the ordinary way to find out.
        let lasting = [libc::ENOSYS, libc::EPERM, libc::E2BIG, libc::EINVAL];
        if lasting.into_iter().any(|error| number == -i64::from(error)) {
            REFUSED.store(true, Ordering::Relaxed);
        }
        return Ok(None);
    };
    // SAFETY: the call has made this descriptor, and nobody else knows of it.
    let process = Process { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } };
    match shared.failed.load(Ordering::Relaxed) {
        0 => Ok(Some(process)),
        failed => {
            let _ = waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED);
            // Filters of system calls know some of the steps too; `posix_spawn` has other ways.
            if failed == libc::ENOSYS { Ok(None) } else { Err(io::Error::from_raw_os_error(failed)) }
        }
    }
}

/// Blocks all signals of this thread for as long as it lives, so that no handler of ours runs in the child.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the first call initialises `all`, and the second `before` if it succeeds.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) {
                0 => Ok(Self(before.assume_init())),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is one that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// What runs in the child: takes all steps, and becomes the program. It has its own descriptors, directory and signals, and our memory.
extern "C" fn become_program(shared: *const Shared<'_>) -> ! {
    // SAFETY: the parent stands still and keeps everything alive until this process is another program or has ended. Its `errno` is
    // written to, which it does not read again. Every path ends in NUL and both arrays in a null pointer.
    unsafe {
        let Shared { steps, failed } = &*shared;
        if take_steps(steps) {
            let Steps { program, argv, env, .. } = steps;
            libc::syscall(libc::SYS_execve, program.as_ptr(), argv.as_ptr(), env.as_ptr());
        }
        failed.store((*libc::__errno_location()).max(1), Ordering::Relaxed);
        libc::_exit(127)
    }
}

/// Returns whether all went well; else `errno` says what did not.
///
/// # Safety
///
/// As in [`become_program`].
unsafe fn take_steps(steps: &Steps<'_>) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        // The kernel has done so for those with a handler, not for those that are ignored.
        for signal in 1..=SIGNALS {
            // Flags and mask are zero. Two signals cannot be set, which is no failure.
            let action = [u64::from(LIBC_OWN.contains(&signal)), 0, 0, 0];
            let none = std::ptr::null_mut::<c_void>();
            libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), none, size_of::<u64>());
        }
        if libc::syscall(libc::SYS_setsid) < 0 {
            return false;
        }
        let mut target: c_uint = 0;
        for source in steps.descriptors {
            let mut source = c_long::from(*source);
            // The first terminal that the leader of a session opens becomes its own.
            if let (0, Some(path)) = (target, steps.terminal) {
                let here = libc::AT_FDCWD;
                source = libc::syscall(libc::SYS_openat, here, path.as_ptr(), libc::O_RDWR, 0 as c_uint);
            }
            // Where descriptor 0 was free, it is that already.
            let there = source == c_long::from(target);
            if source < 0 || (!there && libc::syscall(libc::SYS_dup3, source, target, 0 as c_int) < 0) {
                return false;
            }
            target += 1;
        }
        if libc::syscall(libc::SYS_close_range, target, c_uint::MAX, 0 as c_uint) < 0
            || libc::syscall(libc::SYS_chdir, steps.cwd.as_ptr()) < 0
        {
            return false;
        }
        let empty = 0_u64;
        let none = std::ptr::null_mut::<c_void>();
        let size = size_of::<u64>();
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const empty, none, size) == 0
    }
}

/// Makes a child that runs `run` on the stack that `arguments` name. Returns its number, or a negative error number.
///
/// # Safety
///
/// That stack must be real, and what `shared` leads to must outlive the child's use of our memory, which `CLONE_VFORK` waits for.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(
    arguments: &Arguments,
    run: extern "C" fn(*const Shared<'_>) -> !,
    shared: &Shared<'_>,
) -> i64 {
    let result: i64;
    // SAFETY: the kernel's convention. In the child, which has our registers and its own stack, nothing here goes on.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const *arguments,
            in("rsi") size_of::<Arguments>(),
            in("r12") &raw const *shared,
            in("r13") run,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As above.
///
/// # Safety
///
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(
    arguments: &Arguments,
    run: extern "C" fn(*const Shared<'_>) -> !,
    shared: &Shared<'_>,
) -> i64 {
    let result: i64;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "blr x21",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone3,
            inlateout("x0") &raw const *arguments => result,
            in("x1") size_of::<Arguments>(),
            in("x20") &raw const *shared,
            in("x21") run,
            options(nostack),
        );
    }
    result
}

/// For processors that this is not written for: the system cannot do it.
///
/// # Safety
///
/// None is needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone3(_: &Arguments, _: extern "C" fn(*const Shared<'_>) -> !, _: &Shared<'_>) -> i64 {
    -1
}
