//! The calls to the kernel that neither Rust nor rustix has a safe form of: a filter with a listener, its notices and their
//! answers, and a process that shares its parent's descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use seccompiler::sock_filter;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notice {
    /// Its number, for the answer.
    pub(super) id: u64,
    /// The thread that makes it.
    pub(super) thread: i32,
    /// Which call, as in `libc::SYS_connect`.
    pub(super) call: i64,
    /// Its arguments.
    pub(super) arguments: [u64; 6],
}

/// Installs a filter for this thread and all that it starts, and returns the listener that is asked where the filter says so.
///
/// # Errors
///
/// Fails as the kernel says: `EINVAL` where it is too old, `EBUSY` where somebody listens already.
pub(in super::super) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    rustix::thread::set_no_new_privs(true)?;
    let mut steps: Vec<libc::sock_filter> = program
        .iter()
        .map(|step| libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k })
        .collect();
    let len = u16::try_from(steps.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
    let listen = |flags: libc::c_ulong| {
        // SAFETY: the kernel copies the program, whose `len` steps live until this function returns.
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) }
    };
    // A signal is not to tear a caller away from a call that is being made for it.
    let mut number =
        listen(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if number < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // Linux before 5.19.
        number = listen(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    }
    let number = i32::try_from(number).ok().filter(|number| *number >= 0);
    let number = number.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just opened it for us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Takes the next notice. `ENOENT`: whoever waited has gone.
pub(super) fn receive(listener: &OwnedFd) -> Result<Notice, Errno> {
    let mut notice = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the kernel wants a zeroed object of this type, whose size is a part of the request's number, and fills it.
    let code =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, notice.as_mut_ptr()) };
    if code != 0 {
        return Err(last());
    }
    // SAFETY: the object consists of numbers only, for which zeros are valid as well.
    let notice = unsafe { notice.assume_init() };
    Ok(Notice {
        id: notice.id,
        thread: notice.pid.cast_signed(),
        call: notice.data.nr.into(),
        arguments: notice.data.args,
    })
}

/// Whether the caller still waits, so that its number is still its own.
pub(super) fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads one number of 64 bits.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Lets a call return. If it fails, the caller is gone.
pub(super) fn answer(listener: &OwnedFd, id: u64, result: Result<i64, Errno>) {
    let (val, error) = match result {
        Ok(value) => (value, 0),
        Err(errno) => (0, -errno.raw_os_error()),
    };
    // No flags: never `SECCOMP_USER_NOTIF_FLAG_CONTINUE`, which would let the caller make the call itself.
    let mut answer = libc::seccomp_notif_resp { id, val, error, flags: 0 };
    // SAFETY: the kernel reads an object of this type, whose size is a part of the request's number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
}

/// Starts a process with a copy of this one's memory and the *same* descriptors, which does `work` and ends. Its parent is not
/// told of its end.
///
/// There must be no other thread: what one had locked would stay locked in the copy.
pub(super) fn split(work: impl FnOnce()) -> io::Result<()> {
    let (flags, none): (libc::c_long, libc::c_long) = (libc::CLONE_FILES.into(), 0);
    // SAFETY: without `CLONE_VM` this is a `fork`: the copy goes on upon its own copy of the stack, and touches nothing of ours.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // A panic must not run on in the caller's frames, which are the parent's.
            let _ = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: it ends this process, and runs nothing that the parent has registered for its own end.
            unsafe { libc::_exit(0) }
        }
        _ => Ok(()),
    }
}

/// Does something with the descriptor of this number, if there is one.
pub(super) fn with_descriptor<T>(number: i32, work: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
    // SAFETY: nobody in this process, which does nothing else, owns it. It may be closed or exchanged at any time by the process that
    // shares it, whose it is; the kernel then says so, or passes the other one, and no memory depends on it.
    (number >= 0).then(|| work(unsafe { BorrowedFd::borrow_raw(number) }))
}

fn last() -> Errno {
    io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
