//! Holds a worker to the *hosts* that its manifest names.
//!
//! Landlock knows ports and no addresses, and a filter of system calls sees numbers and not what they point to. So the calls
//! by which a process can reach an address are handed to the keeper while their caller waits (seccomp user notification).
//! The caller's other threads run on and may change the address, or put another socket in its place, after it was looked at;
//! therefore no call that was judged is let through. The keeper copies what it is given, judges the copy, makes the call
//! itself on a duplicate of the socket, and hands the result back.
//!
//! `plugins check` has sockets handed over instead, in a worker of its own: the keeper refuses the first that leads to another machine, and
//! ends the worker. So a program that an attribute starts is seen as well as the plugin itself.
//!
//! | file | what |
//! | --- | --- |
//! | `handover` | the start: the worker gives the keeper what it needs, before foreign code is there |
//! | `raw` | the few calls to the kernel that Rust has no safe form of |
//! | `courier` | hands over the worker's descriptors, which the kernel lets nobody else take from a process like it |
//! | `caller` | memory and descriptors of whoever waits |
//! | `address`, `outgoing` | what is read from there |
//! | `names`, `judge` | who may be reached |
//! | `perform` | the calls, made by the keeper |
//! | `watch` | the keeper's thread that waits for them |

mod address;
mod caller;
mod courier;
mod handover;
mod judge;
mod names;
mod outgoing;
mod perform;
#[allow(unsafe_code, reason = "one of its places; each block says why it is sound")]
mod raw;
mod watch;

pub(super) use handover::{Handover, HandoverError, gate, supported};
pub(super) use raw::install;
pub(super) use watch::keep;
