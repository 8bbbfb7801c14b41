//! The shared shell session: state that lasts between the commands of one task.
//!
//! A command that ran a moment ago may have changed directory, exported a variable, left a child behind or been killed,
//! and the next one must find the first two and nothing of the rest. This module does that once for every place that can
//! start a process: [`ShellEnvironment`] is an [`Environment`](crate::Environment) over a [`Transport`], which says how a
//! process is started there. `local` spawns it; a plugin may put it into a sandbox of its own.
//!
//! The rules it keeps:
//!
//! * The command is one unit. It reaches the shell on a descriptor of its own, whole, and is never pasted into a script.
//! * The exit code is what the kernel says of the shell's process, so nothing that a command prints can change it.
//! * State is data. Directory and variables travel as bytes to and fro, and are never sourced. Functions, aliases and options, which a
//!   shell must read as code, come back one by one as bash itself has printed them.
//! * A call ends when its shell has ended and what it wrote has been read, not at end-of-file: a child that was left in
//!   the background may hold the pipe for ever.
//! * At the deadline the whole tree ends, also those members that have left the process group: the call's cgroup holds them, or `/proc` shows them.
//! * Secrets are taken out of the environment last, after everything else has been put in.

mod begin;
mod boot;
mod call;
mod cgroup;
mod channel;
mod drain;
mod environ;
mod exports;
mod feed;
mod launch;
mod leftover;
mod lock;
mod login;
mod place;
mod prelude;
mod record;
mod remember;
mod resident;
mod resident_end;
mod residents;
mod session;
mod session_cgroups;
#[allow(unsafe_code, reason = "one of its three places; each block says why it is sound")]
mod spawn;
mod stat;
mod state;
mod store;
mod transport;
mod tree;
mod turn;
mod untaken;
mod watched;

pub use cgroup::outside_of_calls;
pub use environ::StripList;
pub use lock::{lock_within, open_lock};
pub use login::Login;
pub use session::{SessionOptions, ShellEnvironment};
pub use spawn::{LIMITS_VARIABLE, Spawn, SpawnError, copy_of_this_process, spawn};
pub use transport::{Launch, LocalTransport, Process, Shell, Transport, find_program};
pub use tree::{end_call, end_calls, signal_call};
