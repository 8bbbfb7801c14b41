//! What a plugin may have hidden from every command: its own secrets, and not what others cannot do without.

use hostel_plugin_api::shell::StripList;

use super::{Manifest, Record};

/// Variables without which no command is what its user expects, and that hold no secret of a vendor's.
const NEEDED: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TERM", "TZ", "TMPDIR", "HOSTEL_HOME"];

/// The shortest beginning of names that a plugin may have hidden.
const SHORTEST: usize = 3;

/// Returns whether a plugin may have this hidden from every command, whichever backend runs it.
pub(super) fn may_be_secret(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => prefix.len() >= SHORTEST && !NEEDED.iter().any(|name| name.starts_with(prefix)),
        None => !NEEDED.contains(&pattern),
    }
}

/// Returns what no command may see because a plugin is enabled: what its providers said when they were asked, and what its
/// manifest calls a secret.
pub(super) fn named(record: Option<&Record>, manifest: &Manifest) -> Vec<String> {
    let recorded = record.into_iter().flat_map(|record| &record.providers);
    let recorded = recorded.flat_map(|provider| provider.strip_env_keys.iter().cloned());
    recorded.chain(manifest.secrets()).filter(|pattern| StripList::is_valid(pattern)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_cannot_hide_what_every_command_needs() {
        for good in ["ACME_TOKEN", "ACME_*", "PATHS"] {
            assert!(may_be_secret(good), "{good}");
        }
        for bad in ["PATH", "HOME", "*", "A*", "PAT*", "HOM*"] {
            assert!(!may_be_secret(bad), "{bad}");
        }
    }
}
