//! The backends that are built in, and the names that are kept for those to come.

mod local;

use std::sync::Arc;

use hostel_plugin_api::{Error, ErrorKind};

use crate::registry::{Entry, Origin, Provider, RESERVED, Registry};

/// A built-in backend: its name, what it is, and its provider, if it is built yet.
struct Builtin(&'static str, &'static str, Option<fn() -> Provider>);

const BUILTINS: [Builtin; 8] = [
    Builtin("local", "Run commands on this machine, as this user", Some(|| Arc::new(local::Local))),
    Builtin("docker", "Run commands in a Docker or Podman container", None),
    Builtin("singularity", "Run commands in a Singularity or Apptainer container", None),
    Builtin("modal", "Run commands in a Modal sandbox", None),
    Builtin("managed_modal", "Run commands in a Modal sandbox behind a gateway", None),
    Builtin("daytona", "Run commands in a Daytona sandbox", None),
    Builtin("vercel_sandbox", "Run commands in a Vercel sandbox", None),
    Builtin("ssh", "Run commands on another machine over SSH", None),
];

/// Variables that hold the secrets of the vendors behind built-in backends, of Hostel itself, and of `sudo`. They are hidden
/// from every command, whichever backend runs it and whether or not the vendor's backend is built yet.
const SECRETS: [&str; 5] = ["DAYTONA_API_KEY", "HOSTEL_TOKEN", "MODAL_*", "SUDO_PASSWORD", "VERCEL_*"];

/// Takes the built-in backends into the registry.
///
/// # Errors
///
/// Fails only if two have one name.
pub fn fill(registry: &mut Registry) -> Result<(), Error> {
    debug_assert!(BUILTINS.iter().all(|builtin| RESERVED.contains(&builtin.0)));
    registry.strip_always(SECRETS.map(str::to_owned));
    for Builtin(name, about, provider) in BUILTINS {
        let entry = match provider {
            Some(provider) => Entry::new(name, Origin::Builtin, move || Ok(provider())),
            None => Entry::closed(name, Origin::Builtin, not_built(name)),
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
            assert_eq!(entry.provider().is_ok(), entry.closed_because().is_none());
        }
        assert!(registry.strip_env().contains(&"MODAL_*".to_owned()));
    }
}
