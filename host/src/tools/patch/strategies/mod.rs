//! The ways to find in a file what a model believes to stand there.
//!
//! | file | holds |
//! | --- | --- |
//! | `strategy.rs`, `order.rs` | the nine strategies, and how one after the other is tried |
//! | `found.rs` | what is looked for, and what is found |
//! | `lines.rs` | a text cut into lines, and blocks of them |
//! | `spaces.rs`, `unicode.rs`, `unescape.rs` | what may make no difference |
//! | `mapped.rs` | a text in a form for comparing, and the way back |
//! | `similarity.rs` | how alike two texts are, and when two lines say the same |
//! | `boundary.rs` | the one that leaves off blank lines at either end |
//! | `block_anchor.rs`, `context_aware.rs` | the two that find what is merely alike |

mod block_anchor;
mod boundary;
mod context_aware;
mod found;
mod lines;
mod mapped;
mod order;
mod similarity;
mod spaces;
mod strategy;
mod unescape;
mod unicode;

pub(super) use found::{Fit, Found, Match, Wanted};
pub(super) use lines::Lines;
pub(super) use mapped::{Form, Mapped};
pub(super) use order::find;
pub(super) use similarity::{names, plain, similarity};
pub(super) use spaces::{indent, is_space, trail, trimmed};
pub(super) use strategy::Strategy;
pub(super) use unicode::Dash;
