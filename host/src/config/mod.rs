//! The configuration: `config.yaml`, what overrides it, and how it is changed.

mod check;
pub mod declared;
mod edit;
mod effective;
mod file;
mod key;
pub mod schema;
pub mod value;

use serde_yaml::Value;

pub use check::Finding;
pub use edit::EditError;
pub use effective::{BACKEND_VARIABLE, Config, ConfigError, Origin, Setting};
pub use file::{ConfigFile, FileError};
pub use key::{Key, KeyError};

/// Returns what stands at `key` in a tree.
#[must_use]
pub fn get<'a>(tree: &'a Value, key: &Key) -> Option<&'a Value> {
    key.parts().iter().try_fold(tree, |at, part| match (at.as_mapping(), at.as_sequence()) {
        (Some(map), _) => map.get(part.as_str()),
        (_, Some(items)) if schema::is_index(part) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}
