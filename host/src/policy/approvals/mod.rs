//! Which calls of tools need a person's yes, and what has been answered.
//!
//! A person who is there is asked at once, by whatever face the agent speaks through. Where nobody can be asked, the request is
//! kept, and a person answers it by `hostel approvals`; the agent then makes the same call again, perhaps of another process.
//! What is not clearly a yes, silence too, is a no.
//!
//! | file | holds |
//! | --- | --- |
//! | `rules.rs` | what the configuration asks for |
//! | `request.rs` | one call, as a person is asked about it, and what a yes to it covers |
//! | `arguments.rs` | what a call is given, in words |
//! | `visible.rs` | text in which nothing can hide |
//! | `id.rs`, `record.rs` | a request that is kept, with its answer |
//! | `folder.rs`, `store.rs` | all of them, for every process of a home |

mod arguments;
mod folder;
mod id;
mod record;
mod request;
mod rules;
mod store;
mod visible;

pub use id::ApprovalId;
pub use record::{Record, Standing};
pub use request::Request;
pub use rules::{Concern, Mode, Rules, Verdict};
pub use store::{Answer, Store};
pub use visible::line;
