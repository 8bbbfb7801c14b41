//! Plugins: found by their manifests, trusted by their owner's word and a checksum, loaded when first needed.
//!
//! Everything that can go wrong with a plugin is dealt with here. The floors above see registry entries.

mod catalog;
mod enable;
mod error;
mod fields;
mod inspect;
#[allow(unsafe_code, reason = "one of its three places; each block says why it is sound")]
mod load;
mod manifest;
mod preflight;
mod record;
mod source;
mod trust;

pub use catalog::{Candidate, Catalog, Choice, Problem};
pub use enable::{EnableError, disable, enable};
pub use error::{LoadError, Step};
pub use inspect::{INSPECT_COMMAND, inspect_here};
pub use load::{Discovered, Opened, Pin, Registered, Verified};
pub use manifest::{Kind, Manifest, ManifestError, RequiredEnv};
pub use record::{ProviderRecord, Record};
pub use source::fill;
