//! Plugins: found by their manifests, trusted by their owner's word and a checksum, loaded when first needed.
//!
//! Everything that can go wrong with a plugin is dealt with here. The floors above see registry entries.

mod carried;
mod catalog;
pub mod check;
mod crate_name;
mod enable;
mod error;
mod fields;
mod granted;
mod group;
mod inspect;
pub mod install;
#[allow(unsafe_code, reason = "one of its three places; each block says why it is sound")]
mod load;
mod manifest;
mod permissions;
mod preflight;
mod record;
mod scaffold;
mod sealed;
mod secrets;
mod signature;
mod source;
mod template;
mod trust;
pub mod worker;

pub use catalog::{Candidate, Catalog, Choice, Problem};
pub(crate) use enable::sound;
pub use enable::{Asked, EnableError, disable, enable};
pub use error::{LoadError, Step};
pub use granted::differences;
pub use load::{Discovered, Opened, Pin, Registered, Sealed, Verified};
pub use manifest::{Kind, Manifest, ManifestError, RequiredEnv};
pub use permissions::{Host, Network, Permissions};
pub use record::{ProviderRecord, Record};
pub use scaffold::{Api, ScaffoldError, create};
pub use signature::Signing;
pub use source::{Isolation, Terms, fill};
pub(crate) use trust::flaw_on_the_way;
