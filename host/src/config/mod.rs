//! The configuration: `config.yaml`, what overrides it, and how it is changed.

mod edit;
mod effective;
mod file;
mod key;
pub mod schema;
pub mod value;

use serde_yaml::Value;

pub use edit::EditError;
pub use effective::{BACKEND_VARIABLE, Config, ConfigError, Finding, Origin, Setting};
pub use file::{ConfigFile, FileError};
pub use key::{Key, KeyError};

/// Returns what stands at `key` in a tree.
#[must_use]
pub fn get<'a>(tree: &'a Value, key: &Key) -> Option<&'a Value> {
    key.parts().iter().try_fold(tree, |at, part| match at {
        Value::Mapping(map) => map.get(part.as_str()),
        Value::Sequence(items) if schema::is_index(part) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}
