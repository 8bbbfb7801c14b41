//! The Model Context Protocol: the tools for any client that speaks it, over standard input and output or HTTP.
//!
//! A connection is served by one thread, and each call runs on one of its own: tools wait for commands, and a hundred commands may
//! run at once. The protocol itself is the official library's.
//!
//! | file | holds |
//! | --- | --- |
//! | `server.rs`, `instructions.rs`, `resources.rs` | what a client can ask for |
//! | `running.rs`, `cancel.rs`, `progress.rs`, `elicit.rs`, `parked.rs` | a call: its end, its output, its questions |
//! | `session.rs`, `sessions.rs`, `arrival.rs` | clients, and whose request it is |
//! | `message.rs`, `halves.rs`, `in_use.rs` | what is wrong with what is no message, or one too many |
//! | `stdio.rs`, `frames.rs` | standard input and output |
//! | `http.rs`, `door.rs`, `token.rs`, `attended.rs`, `events.rs`, `refusal.rs` | HTTP |
//! | `runtime.rs`, `signals.rs` | what both stand on |

mod arrival;
mod attended;
mod cancel;
mod door;
mod elicit;
mod events;
mod frames;
mod halves;
pub mod http;
mod in_use;
mod instructions;
mod message;
mod parked;
mod progress;
mod refusal;
mod resources;
mod running;
mod runtime;
mod server;
mod session;
mod sessions;
mod signals;
pub mod stdio;
mod token;
