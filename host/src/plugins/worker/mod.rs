//! Workers: a process for each plugin, so that what happens there stays there.
//!
//! Native code can crash, exit, hang, leak, or overwrite its own memory, and nothing inside a process helps against that. So
//! each plugin's library is loaded in a child of this program, and the host speaks to it over a socket. Two processes stand
//! behind a link: the *keeper*, which has none of the plugin's code and cleans up whatever happens, and the *worker*, which
//! is confined to the plugin's permissions before it loads the library. `docs/plugin-protocol.md` describes what they say.
//!
//! The host's side: `lifecycle` starts and restarts by a `plan`, `greeting` begins one, `link`, `slot` and `inbox` carry calls, `errors` and `masks` see to what is
//! shown, `provider` and `environment` look like those of any backend. The other side: `keeper`, `enter` (the start), `confine`
//! with `paths`, `syscalls`, `refused` and `bpf` (what it gives up), `hosts` (what the keeper judges), `serve` and `running` (the calls). Both: `frame`, `message` and `values`.

mod bpf;
mod breaker;
mod confine;
mod enter;
mod environment;
mod errors;
pub mod frame;
mod greeting;
mod hosts;
mod inbox;
mod incoming;
mod keeper;
mod lifecycle;
mod limits;
mod link;
mod log;
mod masks;
pub mod message;
mod paths;
mod plan;
mod provider;
mod refused;
mod running;
mod serve;
mod slot;
mod start;
mod syscalls;
pub mod values;

pub(super) use confine::UNSEEN;
pub use confine::{kernel_lacks, not_enforceable};
pub use keeper::{WORKER_COMMAND, keeper_main};
pub use lifecycle::{Ready, Worker};
pub use limits::Limits;
pub use plan::Plan;
pub use provider::RemoteProvider;
pub(crate) use start::program;
pub use start::this_program_serves_workers;
