//! Where a session starts.

use std::path::{Path, PathBuf};

use crate::registry::Flags;

/// Beginnings of paths that mean a user's files on the host. In a container they would be somebody else's, or nothing.
const HOST_ONLY: [&str; 2] = ["/home/", "/Users/"];

/// Chooses the first directory of a session from `terminal.cwd`, for a provider with these flags. None leaves the choice to
/// the provider.
#[must_use]
pub fn start(configured: Option<&str>, flags: &Flags) -> Option<String> {
    let configured = configured.filter(|path| !matches!(*path, "" | "." | "auto" | "cwd"));
    if !flags.is_container && !flags.is_remote {
        return configured.map(|path| expand_home(path).to_string_lossy().into_owned());
    }
    let own = |path: &&str| {
        let in_guest_home = flags.guest_home.as_ref().is_some_and(|home| Path::new(path).starts_with(home));
        let foreign =
            HOST_ONLY.iter().any(|prefix| path.starts_with(prefix)) && flags.is_container && !in_guest_home;
        (path.starts_with('/') || (*path == "~" || path.starts_with("~/"))) && !foreign
    };
    configured.filter(own).map(str::to_owned).or_else(|| flags.default_cwd.clone())
}

fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix('~'), dirs::home_dir()) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(is_container: bool) -> Flags {
        Flags {
            is_remote: is_container,
            is_container,
            skip_container_guards: false,
            cache_path_base: None,
            strip_env_keys: Vec::new(),
            session_isolated_when_nonpersistent: false,
            default_cwd: Some("/w".into()),
            guest_home: Some("/home/guest".into()),
            costs_to_create: false,
            env_description: String::new(),
        }
    }

    // upstream #94888: a home below `/home` of the container's own was taken for one of the host's
    #[test]
    fn a_path_of_the_hosts_does_not_reach_a_container() {
        for path in ["/home/me/project", "/Users/me", "relative", "C:\\x", ""] {
            assert_eq!(start(Some(path), &flags(true)).as_deref(), Some("/w"), "{path}");
        }
        for path in ["/srv", "~", "~/x", "/home/guest/x"] {
            assert_eq!(start(Some(path), &flags(true)).as_deref(), Some(path));
        }
        assert_eq!(start(Some("/home/me"), &flags(false)).as_deref(), Some("/home/me"));
        assert_eq!(start(Some("."), &flags(false)), None);
    }
}
