//! The numbers of the calls that a confined worker may not make, by what they reach.

/// Calls that reach into other processes, into the kernel's set-up, or around this filter, and that no provider needs.
pub(super) const NEVER: [i64; 52] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    // Its operations pass by filters.
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_process_madvise,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fspick,
    OPEN_TREE_ATTR,
    // The kernel's log, also to empty it.
    libc::SYS_syslog,
    // It can hold up everybody else's opening of files.
    libc::SYS_fanotify_init,
    // Memory and queues that any process of the user's can open; a number can be guessed.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The same of a single kind of machine.
#[cfg(target_arch = "x86_64")]
pub(super) const NEVER_HERE: [i64; 2] = [libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const NEVER_HERE: [i64; 0] = [];

/// Calls that tell of every file below a folder what is done with it, without opening any.
#[cfg(target_arch = "x86_64")]
pub(super) const WATCHING: [i64; 2] = [libc::SYS_inotify_init1, libc::SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const WATCHING: [i64; 1] = [libc::SYS_inotify_init1];

/// Calls that change the mode, the owner, the times or the attributes of a file by its path, which Landlock lets pass. Those that
/// take a descriptor need a file that could be opened.
pub(super) const METADATA: [i64; 9] = [
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// The same by their older names, which not every machine has.
#[cfg(target_arch = "x86_64")]
pub(super) const OLD_METADATA: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLD_METADATA: [i64; 0] = [];

/// Newer than the tables of some C libraries; numbers of this age are the same on all machines.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;

/// Calls that change another process's limits or processors, and the argument that names it: 0 is the caller.
pub(super) const OF_OTHERS: [(i64, u8); 5] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// Calls that change priorities: of one process if the first argument is this, and else of a group's or a user's. The second names whose.
pub(super) const PRIORITIES: [(i64, u64); 2] =
    [(libc::SYS_setpriority, PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
const PRIO_PROCESS: u64 = 0;
/// From the kernel's header; the C library has no name for it.
const IOPRIO_WHO_PROCESS: u64 = 1;

/// Calls that send a signal, and the argument that names the process.
pub(super) const SIGNALS: [(i64, u8); 4] = [
    (libc::SYS_kill, 0),
    (libc::SYS_tgkill, 0),
    (libc::SYS_rt_sigqueueinfo, 0),
    (libc::SYS_rt_tgsigqueueinfo, 0),
];
