//! Plugins: found by their manifests, trusted by their owner's word and a checksum, loaded when first needed.
//!
//! Everything that can go wrong with a plugin is dealt with here. The floors above see registry entries.

mod catalog;
mod crate_name;
mod enable;
mod error;
mod fields;
mod inspect;
#[allow(unsafe_code, reason = "one of its three places; each block says why it is sound")]
mod load;
mod manifest;
mod permissions;
mod preflight;
mod record;
mod scaffold;
mod source;
mod template;
mod trust;
pub mod worker;

pub use catalog::{Candidate, Catalog, Choice, Problem};
pub use enable::{EnableError, disable, enable};
pub use error::{LoadError, Step};
pub use load::{Discovered, Opened, Pin, Registered, Verified};
pub use manifest::{Kind, Manifest, ManifestError, RequiredEnv};
pub use permissions::{Host, Network, Permissions};
pub use record::{ProviderRecord, Record};
pub use scaffold::{Api, ScaffoldError, create};
pub use source::{Isolation, fill};
