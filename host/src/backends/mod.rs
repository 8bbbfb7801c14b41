//! The backends that are built in, and the names that are kept for those to come.

mod local;

use std::sync::Arc;

use hostel_plugin_api::{Error, ErrorKind};

use crate::registry::{Entry, Origin, Provider, RESERVED, Registry};

/// What each built-in backend is, for lists.
const ABOUT: [(&str, &str); 8] = [
    ("local", "Run commands on this machine, as this user"),
    ("docker", "Run commands in a Docker or Podman container"),
    ("singularity", "Run commands in a Singularity or Apptainer container"),
    ("modal", "Run commands in a Modal sandbox"),
    ("managed_modal", "Run commands in a Modal sandbox behind a gateway"),
    ("daytona", "Run commands in a Daytona sandbox"),
    ("vercel_sandbox", "Run commands in a Vercel sandbox"),
    ("ssh", "Run commands on another machine over SSH"),
];

/// Variables that hold the secrets of the vendors behind built-in backends, of Hostel itself, and of `sudo`. They are hidden
/// from every command, whichever backend runs it.
const SECRETS: [&str; 8] = [
    "DAYTONA_API_KEY",
    "HOSTEL_TOKEN",
    "MODAL_*",
    "SUDO_PASSWORD",
    "VERCEL_ACCESS_TOKEN",
    "VERCEL_OIDC_TOKEN",
    "VERCEL_TEAM_TOKEN",
    "VERCEL_TOKEN",
];

/// Takes the built-in backends into the registry.
///
/// # Errors
///
/// Fails only if two have one name.
pub fn fill(registry: &mut Registry) -> Result<(), Error> {
    debug_assert!(ABOUT.iter().all(|(name, _)| RESERVED.contains(name)));
    for (name, about) in ABOUT {
        let entry = match name {
            "local" => Entry::new(name, Origin::Builtin, || Ok(Arc::new(local::Local) as Provider))
                .stripping(SECRETS.map(str::to_owned).to_vec()),
            _ => Entry::closed(name, Origin::Builtin, not_built(name)),
        };
        registry.add(entry.described(about))?;
    }
    Ok(())
}

fn not_built(name: &str) -> Error {
    let message = format!("backend `{name}` is not part of this version of Hostel");
    let hint =
        "select another one with `hostel config set terminal.backend NAME`; `hostel backends` lists them";
    Error::new(ErrorKind::UNSUPPORTED, message).with_hint(hint).not_started()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reserved_name_is_known_and_secrets_are_hidden() {
        let mut registry = Registry::default();
        fill(&mut registry).unwrap();
        for name in RESERVED {
            let entry = registry.get(name).unwrap();
            assert!(!entry.description().is_empty());
            assert_eq!(entry.provider().is_ok(), name == "local");
        }
        assert!(registry.strip_env().contains(&"MODAL_*".to_owned()));
    }
}
