//! Takes secrets out of text that is told to an agent.
//!
//! What an agent reads goes to a model, into logs and into the next prompt. Commands do not get the secrets of providers, but files
//! hold keys too, and what was printed once cannot be taken back. So the values of the host's own secrets are replaced by
//! their variable's name, and what has the well-known form of a key by what it is.
//!
//! It is a net and no wall: a command that wants to show a secret can turn it round first.
//!
//! | file | holds |
//! | --- | --- |
//! | `secrets.rs` | the values that are known, and text without them |
//! | `shapes.rs` | what keys look like whose value is not known |
//! | `redactor.rs` | output that comes in pieces |

mod redactor;
mod secrets;
mod shapes;

pub use redactor::Redactor;
pub use secrets::Secrets;
