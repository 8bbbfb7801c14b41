//! `hostel plugins check`: holds a plugin to every rule, in a throw-away home and a worker, as a host would meet it.
//!
//! What can be said of a provider alone is in `hostel_plugin_api::testing`, which a plugin's own tests use as well. Here comes
//! what only a host can see: the manifest, the library's file, its loading, and whether it keeps to what it asks for.

mod examine;
mod left;
mod room;
mod rules;
mod subject;

pub use examine::{Checked, Options, check};
pub use subject::SubjectError;
