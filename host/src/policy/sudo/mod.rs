//! `sudo` in commands that have no terminal: it is given its password on standard input.
//!
//! | file | holds |
//! | --- | --- |
//! | `rewrite.rs` | which `sudo`s in a command read a password, and what they are rewritten to |
//! | `source.rs` | where the password comes from |
//! | `call.rs` | what becomes of a request, and of the outcome of its call |
//! | `stdin.rs` | the lines in front of what the command reads |
//! | `watch.rs` | the output: whether `sudo` refused the password, and that it does not show it |
//! | `secret.rs` | the bytes themselves |

mod call;
mod rewrite;
mod secret;
mod source;
mod stdin;
mod watch;

pub use call::{Place, Prepared, Sudo};
pub use rewrite::{Rewritten, rewrite};
pub use source::Ask;
