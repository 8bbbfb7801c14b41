//! What crosses the boundary between the host and a plugin's library.
//!
//! Two programs meet here that were built apart, perhaps years apart, by different compilers. Nothing of Rust's own layout
//! may cross, no panic may cross, and either side may be the older one. So each file of this folder holds one shared type
//! in a fixed order: the type as it crosses, the plugin's side, the host's side, and tests of the way there and back.
//!
//! What may change within a major version: new methods at the end of a trait, each with a default body; new fields at the
//! end of the root module; new numbers in [`ErrorKind`](crate::ErrorKind) and its like; new keys in `extra`. Nothing else.

#![allow(
    unreachable_pub,
    reason = "the ABI layer's macro makes its helpers as visible as the trait, which must be `pub`"
)]
#![allow(clippy::used_underscore_binding, reason = "the ABI layer's macro names its receivers so")]
#![allow(non_local_definitions, reason = "the ABI layer's macro writes impls into a constant")]
#![allow(unsafe_code, reason = "one of its three places; each block says why it is sound")]

pub(crate) mod creation;
mod difference;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod guard;
pub(crate) mod io;
pub(crate) mod log;
pub(crate) mod provider;
pub(crate) mod registration;
pub mod root;
#[cfg(test)]
mod snapshot;

pub use provider::ForeignProvider;
