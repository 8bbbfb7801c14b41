//! What a backend or plugin may be called.

/// The names of Hostel's own backends, built yet or not.
pub const RESERVED: [&str; 8] =
    ["local", "docker", "singularity", "modal", "managed_modal", "daytona", "vercel_sandbox", "ssh"];

/// The longest name, in characters.
const LONGEST: usize = 64;

/// Why a text is not a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// It is Hostel's own.
    #[error("`{given}` is {}", taken(.given, .own))]
    Reserved {
        /// The text.
        given: String,
        /// The backend's name.
        own: &'static str,
    },
    /// It is not of the right form.
    #[error("`{0}` is not a name: lower-case letters, digits, `_` and `-`, a letter first, 64 at the most")]
    Form(String),
}

fn taken(given: &str, own: &str) -> String {
    let built_in = "the name of a backend that is built into Hostel";
    if given == own { built_in.to_owned() } else { format!("too much like `{own}`, {built_in}") }
}

/// Checks that `name` is of the form `^[a-z][a-z0-9_-]{0,63}$` and not Hostel's own.
///
/// # Errors
///
/// Fails if it is not.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if let Some(own) = reserved(name) {
        return Err(NameError::Reserved { given: name.escape_debug().to_string(), own });
    }
    let first = name.starts_with(|first: char| first.is_ascii_lowercase());
    let rest = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'));
    if first && rest && name.len() <= LONGEST {
        return Ok(());
    }
    let mut short: String = name.chars().take(LONGEST).collect::<String>().escape_debug().to_string();
    if name.chars().count() > LONGEST {
        short.push('…');
    }
    Err(NameError::Form(short))
}

/// Brings names that could be taken for one another to one form.
#[must_use]
pub fn fold(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Returns the built-in backend that `name` would be taken for.
#[must_use]
pub fn reserved(name: &str) -> Option<&'static str> {
    let folded = fold(name.trim());
    RESERVED.into_iter().find(|own| *own == folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_become_paths_options_or_builtins_are_refused() {
        for good in ["acmebox", "a", "a-b_c9", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(300);
        for bad in
            [".", "..", "../evil", "/abs", "a/b", "", " ", "con\nfig", "-rf", "Acme", "ä", "1a", "a.b", &long]
        {
            assert!(matches!(check_name(bad), Err(NameError::Form(_))), "{bad}");
        }
        for own in ["docker", "DOCKER", "managed_modal", "managed-modal", " ssh ", "Vercel-Sandbox"] {
            assert!(matches!(check_name(own), Err(NameError::Reserved { .. })), "{own}");
        }
        assert!(check_name(&long).unwrap_err().to_string().len() < 200);
    }
}
