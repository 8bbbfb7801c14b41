//! Which variables no command may see.
//!
//! A vendor's token lets its holder make sandboxes at the user's cost, and a command that an agent wrote could print it. So
//! the secrets of every enabled provider are hidden from every command, whichever backend runs it.

use hostel_plugin_api::shell::StripList;

use crate::registry::Registry;

/// Holds the token that clients of `hostel mcp --http` show. It is ours, whatever backends there are.
pub const MCP_TOKEN: &str = "HOSTEL_MCP_TOKEN";

/// Returns the patterns that hold in this world.
#[must_use]
pub fn strip_list(registry: &Registry) -> StripList {
    StripList::new(registry.strip_env())
}
