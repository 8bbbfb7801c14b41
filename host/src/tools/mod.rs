//! What an agent is given to work with: a terminal, processes, files and code, in whichever environment is selected.
//!
//! Each tool is a [`Tool`] with typed input and output; every face calls them by [`call`], so that none can go past a rule.

mod arguments;
mod call;
mod catalog;
mod memory;
mod process;
mod script;
mod session;
mod shown;
mod terminal;
mod told;
mod tool;

pub use call::{Call, Listener};
pub use catalog::{all, call};
pub use script::{Ran, Script};
pub use session::Session;
pub use tool::{Answer, AnyTool, Effects, Failure, Tool};
