//! What an agent is given to work with: a terminal, processes, files and code, in whichever environment is selected.
//!
//! Each tool is a [`Tool`] with typed input and output; every face calls them by [`call`], so that none can go past a rule.

mod arguments;
mod ask;
mod call;
mod catalog;
mod code;
mod files;
mod gate;
mod live;
mod memory;
mod patch;
mod process;
mod script;
mod search;
mod session;
mod shown;
mod terminal;
mod told;
mod tool;

pub use ask::{Asked, Asker, Choice, Question, Reply};
pub use call::{Call, Listener};
pub use catalog::{all, call};
pub use script::{Ran, Script};
pub use session::Session;
pub use tool::{Answer, AnyTool, Effects, Failure, Tool};
