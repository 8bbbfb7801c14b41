//! Rules that every face obeys. Each asks the registry, and none knows a backend by its name.

pub mod cwd;
pub mod secrets;
