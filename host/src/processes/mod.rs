//! Commands that run in the background: started by one program, and watched, fed and ended by others.
//!
//! A background process is one call on an environment, as any command is, so it works wherever commands do. The call is made
//! by a process of ours, its keeper (`keeper.rs`), and everything else stands in the process's folder: its record, its log, the
//! socket on which its keeper is spoken to, and a lock that says whether the keeper lives.
//!
//! | file | holds |
//! | --- | --- |
//! | `id.rs`, `record.rs`, `folder.rs` | a process's name, what is known of it, and where that is |
//! | `log.rs`, `reader.rs`, `text.rs`, `follow.rs` | its output, written, read, and read as it comes |
//! | `start.rs`, `keeper.rs`, `call.rs`, `settings.rs` | how it begins |
//! | `serve.rs`, `answers.rs`, `connection.rs`, `input.rs`, `bell.rs` | what its keeper does as long as it runs |
//! | `control.rs`, `client.rs` | what is said to a keeper |
//! | `watch.rs`, `limit.rs`, `notices.rs` | what is told of it unasked |
//! | `list.rs`, `manager.rs`, `output.rs`, `tasks.rs`, `background.rs`, `view.rs`, `error.rs`, `signal.rs` | what can be done with it |

mod answers;
mod background;
mod bell;
mod call;
mod client;
mod connection;
mod control;
mod error;
mod folder;
mod follow;
mod id;
mod input;
mod keeper;
pub mod limit;
mod list;
mod log;
mod manager;
mod notices;
mod output;
mod reader;
mod record;
mod serve;
mod settings;
mod signal;
mod start;
mod tasks;
mod text;
mod view;
pub mod watch;

pub use error::{ProcessError, Refusal};
pub use follow::{Follower, Piece};
pub use id::ProcessId;
pub use keeper::{PROCESS_KEEPER_COMMAND, process_keeper_main};
pub use manager::Processes;
pub use notices::{Event, Notice};
pub use output::Lines;
pub use record::{Keeper, Lifetime, PtySize, Record, RecordError, Source, Status};
pub use signal::parse_signal;
pub use start::{HostLink, StartRequest, Started};
pub use view::{BytesView, Fate, KillStatus, KillView, LogView, TaskEnd, View, WaitStatus, WaitView};
