//! Environments: one for each backend and task id, made when first needed.
//!
//! | file | holds |
//! | --- | --- |
//! | `live.rs`, `running.rs`, `threads.rs`, `terminal.rs` | those of this process, the calls on them, and calls on a terminal |
//! | `aside.rs` | short commands of ours in front of a call |
//! | `call_id.rs` | what calls are called |
//! | `create.rs` | what a provider is told of the one that it is to make |
//! | `ledger.rs`, `identity.rs`, `in_use.rs` | what all processes of the host know of each |
//! | `cleanup.rs`, `reaper.rs`, `idle.rs` | their end: asked for, and after a while |

mod aside;
mod call_id;
pub mod cleanup;
mod create;
mod identity;
pub mod idle;
mod in_use;
pub mod ledger;
mod live;
mod login;
pub mod reaper;
mod running;
pub mod terminal;
mod threads;

pub use aside::Aside;
pub use live::Environments;
pub use running::SharedIo;
