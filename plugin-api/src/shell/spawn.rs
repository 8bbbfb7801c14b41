//! The one function that starts a process.
//!
//! Everything that a child of ours must not inherit is settled here, once: it gets its own session and process group, so
//! that it has no controlling terminal and can be killed as one; all signals at their defaults and none blocked, because
//! the host may ignore some (Rust's runtime ignores `SIGPIPE`); exactly the descriptors that are named; and exactly the
//! environment that is given. `posix_spawn` does all this without copying the host's page tables, which for a large host
//! is most of the cost of a `fork`. What it cannot do is put the child into a cgroup; `spawn_into.rs` takes the same steps where one is
//! named.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, pidfd_open, setrlimit,
    waitpid,
};

use super::transport::Process;

#[path = "spawn_into.rs"]
mod into;

pub(super) use into::may_be_possible as birth_in_cgroups_may_be_possible;
use into::{Steps, spawn_into};

/// What to start on this machine.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The path of the program.
    pub program: &'a Path,
    /// The name that it is called by, and its arguments.
    pub argv: &'a [OsString],
    /// The whole environment.
    pub env: &'a [(OsString, OsString)],
    /// Directory in which it starts.
    pub cwd: &'a Path,
    /// The first becomes its descriptor 0, and so on. It gets no others.
    pub descriptors: Vec<BorrowedFd<'a>>,
    /// Whether the first is a terminal that becomes its controlling one.
    pub terminal: bool,
    /// A folder of the kernel's tree of cgroups, version 2, opened: the process is born in that cgroup, if the system can do so, and else in
    /// ours.
    pub cgroup: Option<BorrowedFd<'a>>,
}

/// Copies below this number could be overwritten by a copy made before their own.
const FIRST_FREE: i32 = 10;

/// Why a process is not there.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct SpawnError {
    /// What the operating system said.
    #[source]
    pub error: io::Error,
    /// Whether it may have run for a moment all the same.
    pub started: bool,
}

impl From<io::Error> for SpawnError {
    fn from(error: io::Error) -> Self {
        Self { error, started: false }
    }
}

impl From<rustix::io::Errno> for SpawnError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// Starts a process in a session of its own, with default signals and none blocked. It becomes a zombie when it ends, until
/// somebody waits for it.
///
/// # Errors
///
/// Fails as the operating system says.
pub fn spawn(spawn: &Spawn<'_>) -> Result<Process, SpawnError> {
    let argv = spawn.argv.iter().map(|word| c_string(word)).collect::<io::Result<Vec<_>>>()?;
    let env = spawn.env.iter().map(|(name, value)| variable(name, value)).collect::<io::Result<Vec<_>>>()?;
    let cwd = c_string(spawn.cwd.as_os_str())?;
    let program = c_string(spawn.program.as_os_str())?;
    let first_unused = i32::try_from(spawn.descriptors.len()).map_err(io::Error::other)?;
    let sources =
        spawn.descriptors.iter().map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, first_unused.max(FIRST_FREE)));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let terminal = sources.first().filter(|_| spawn.terminal).map(again).transpose()?;
    let argv = pointers(&argv);
    let env = pointers(&env);
    if let Some(cgroup) = spawn.cgroup {
        let descriptors: Vec<i32> = sources.iter().map(AsRawFd::as_raw_fd).collect();
        let steps = Steps {
            program: &program,
            argv: &argv,
            env: &env,
            cwd: &cwd,
            descriptors: &descriptors,
            terminal: terminal.as_deref(),
        };
        if let Some(process) = under_limits_of_host(|| spawn_into(cgroup, &steps))? {
            return Ok(process);
        }
    }
    let mut actions = FileActions::new()?;
    for (target, source) in (0..).zip(&sources) {
        match terminal.as_ref().filter(|_| target == 0) {
            Some(path) => actions.open(path, target)?,
            None => actions.dup2(source, target)?,
        }
    }
    actions.close_from(first_unused)?;
    actions.chdir(&cwd)?;
    let attributes = Attributes::new()?;
    let mut pid = 0;
    // SAFETY: every pointer leads to a value that lives until the call has returned: the strings are owned by the vectors
    // above, the arrays end in a null pointer, and both attribute objects are initialised.
    let code = under_limits_of_host(|| unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            &raw const actions.raw,
            &raw const attributes.raw,
            argv.as_ptr(),
            env.as_ptr(),
        )
    });
    check(code)?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("the kernel gave no process id"))?;
    watched(pid).map_err(|error| SpawnError { error, started: true })
}

/// Makes a copy of this process, for one that is to go on without starting its program anew. Returns None in the copy, which is in
/// a session of its own, and has everything else of this process.
///
/// # Errors
///
/// Fails as the operating system says, and if this process has more than one thread.
pub fn copy_of_this_process() -> io::Result<Option<Process>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be copied"));
    }
    // SAFETY: this is the only thread, so none is missing in the copy that could hold a lock or be half-way through anything.
    let number = unsafe { libc::fork() };
    match Pid::from_raw(number) {
        Some(pid) if number > 0 => Ok(Some(watched(pid)?)),
        None if number == 0 => {
            rustix::process::setsid()?;
            Ok(None)
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes hold of a child that has just been made, and so cannot have been reaped.
fn watched(pid: Pid) -> io::Result<Process> {
    pidfd_open(pid, PidfdFlags::empty()).map(|pidfd| Process { pid, pidfd }).map_err(|error| {
        // A process that cannot be watched must not run on.
        let _ = kill_process(pid, Signal::KILL);
        let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
        error.into()
    })
}

/// Tells a worker's shared shell session which limits its host had before the worker lowered its own: of memory that can be
/// written to, in bytes, of open files, and of core dumps, in bytes, as `BYTES:FILES:BYTES`, with `-` for none. A host may name fewer.
pub const LIMITS_VARIABLE: &str = "HOSTEL_COMMAND_LIMITS";

/// Starts a command under the limits of the host: those of a worker are meant for the plugin, and not for what it starts. A
/// child has the limits that its parent has at that moment, so ours are lifted for as long.
fn under_limits_of_host<T>(start: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let Ok(text) = std::env::var(LIMITS_VARIABLE) else { return start() };
    // One at a time: the next would take what is lifted for its own limits.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let own =
        [Resource::Data, Resource::Nofile, Resource::Core].map(|resource| (resource, getrlimit(resource)));
    for ((resource, limit), wanted) in own.iter().zip(text.split(':')) {
        let current = wanted.parse().ok().or(limit.maximum);
        // Where it fails, the command has the limits of the worker.
        let _ = setrlimit(*resource, Rlimit { current, maximum: limit.maximum });
    }
    let started = start();
    for (resource, limit) in own {
        let _ = setrlimit(resource, limit);
    }
    started
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    let mut bytes = Vec::with_capacity(name.len() + value.len() + 2);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    Ok(CString::new(bytes)?)
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|text| text.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// Returns a path under which a child can open a terminal anew: the first that the leader of a session opens becomes its controlling
/// terminal.
fn again(terminal: &OwnedFd) -> io::Result<CString> {
    Ok(CString::new(format!("/proc/self/fd/{}", terminal.as_raw_fd()))?)
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// The steps between the birth of the child and its program.
struct FileActions {
    raw: libc::posix_spawn_file_actions_t,
}

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the call initialises the object that it is given.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: it returned success.
        Ok(Self { raw: unsafe { raw.assume_init() } })
    }

    /// The source must be open until the child has its copy.
    fn dup2(&mut self, source: &OwnedFd, target: i32) -> io::Result<()> {
        let number = source.as_raw_fd();
        // SAFETY: `raw` is initialised, and the call only writes down two numbers.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.raw, number, target) })
    }

    fn open(&mut self, path: &CString, target: i32) -> io::Result<()> {
        // SAFETY: `raw` is initialised, and the call copies the path.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(&raw mut self.raw, target, path.as_ptr(), libc::O_RDWR, 0)
        })
    }

    fn close_from(&mut self, first: i32) -> io::Result<()> {
        // SAFETY: `raw` is initialised, and the call only writes down a number.
        check(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(&raw mut self.raw, first) })
    }

    fn chdir(&mut self, path: &CString) -> io::Result<()> {
        // SAFETY: `raw` is initialised, and the call copies the path.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&raw mut self.raw, path.as_ptr()) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: `raw` is initialised, and nothing uses it after this.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.raw) };
    }
}

/// A session of its own, every signal at its default, none blocked.
struct Attributes {
    raw: libc::posix_spawnattr_t,
}

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the call initialises the object that it is given.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: it returned success.
        let mut attributes = Self { raw: unsafe { raw.assume_init() } };
        let flags = libc::c_int::from(libc::POSIX_SPAWN_SETSID)
            | libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK;
        let flags = libc::c_short::try_from(flags).map_err(io::Error::other)?;
        let mut all = MaybeUninit::uninit();
        let mut none = MaybeUninit::uninit();
        // SAFETY: the two sets are initialised before they are read, `raw` is initialised, and each call copies what it is
        // given.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.raw, all.as_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.raw, none.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.raw, flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: `raw` is initialised, and nothing uses it after this.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.raw) };
    }
}
