//! Plugins: found by their manifests, trusted by their owner's word and a checksum, loaded when first needed.
//!
//! Everything that can go wrong with a plugin is dealt with here. The floors above see registry entries.

mod catalog;
mod enable;
mod error;
mod load;
mod manifest;
mod preflight;
mod record;
mod source;
mod trust;

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

pub use catalog::{Candidate, Catalog, Choice, Problem};
pub use enable::{EnableError, INSPECT_COMMAND, disable, enable, inspect_here};
pub use error::{LoadError, Step};
pub use load::{Discovered, Opened, Pin, Registered, Verified};
pub use manifest::{Kind, Manifest, ManifestError, RequiredEnv};
pub use record::{ProviderRecord, Record};
pub use source::fill;

/// Returns the SHA-256 of `bytes`, in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
