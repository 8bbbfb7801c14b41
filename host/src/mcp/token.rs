//! The secret that lets a client in.
//!
//! Any user of this machine, and any page in a browser on it, can connect to a port. So a client must show a secret that only
//! this user can read.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use crate::home::{Home, make_private, read_regular};
use crate::policy::secrets::MCP_TOKEN;
use crate::random;

/// More than any secret has, in bytes.
const LONGEST: u64 = 4096;

/// Fewer characters than that are no secret.
const SHORTEST: usize = 16;

/// What others may do with a file.
const OTHERS: u32 = 0o077;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is none.
    #[error("{0} holds no token: it must be one line of visible characters")]
    Empty(String),
    /// Others could guess it.
    #[error("{0} holds a token of fewer than {SHORTEST} characters, which others could guess")]
    Short(String),
    /// Others could know it.
    #[error("`{0}` could be read or written by others")]
    Open(PathBuf),
    /// The operating system says no.
    #[error("failed to use the token in `{0}`: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// Knows the secret, and does not show it.
pub(super) struct Token([u8; 32]);

impl Token {
    /// Finds the secret: the variable, or else the file in `home`, which is made if there is none. Returns also the file's path.
    ///
    /// # Errors
    ///
    /// Fails if what is there cannot be used.
    pub(super) fn find(home: &Home) -> Result<(Self, Option<PathBuf>), TokenError> {
        if let Some(value) = std::env::var_os(MCP_TOKEN) {
            return Ok((Self::held(value.to_str().unwrap_or_default(), format!("`{MCP_TOKEN}`"))?, None));
        }
        let path = home.path().join("state").join("mcp").join("token");
        let text = kept(&path).map_err(|error| TokenError::Io(path.clone(), error))?;
        let text = text.ok_or_else(|| TokenError::Open(path.clone()))?;
        Ok((Self::held(&text, format!("`{}`", path.display()))?, Some(path)))
    }

    /// Takes what `place` holds.
    fn held(text: &str, place: String) -> Result<Self, TokenError> {
        match Self::new(text) {
            None => Err(TokenError::Empty(place)),
            Some(_) if text.trim().len() < SHORTEST => Err(TokenError::Short(place)),
            Some(token) => Ok(token),
        }
    }

    /// Takes one line of visible characters. None for anything else.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_visible.then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }

    /// Returns whether `shown` is the secret. How long that takes says nothing of where it is wrong.
    pub(super) fn is(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        self.0.iter().zip(shown).fold(0, |wrong, (one, other)| wrong | (one ^ other)) == 0
    }
}

/// Reads the file, which is made if there is none. None if others have access to it.
fn kept(path: &Path) -> io::Result<Option<String>> {
    if !path.try_exists()? {
        make(path)?;
    }
    let meta = fs::metadata(path)?;
    let of_others = meta.permissions().mode() & OTHERS != 0;
    if of_others || meta.uid() != geteuid().as_raw() {
        return Ok(None);
    }
    let bytes = read_regular(path, LONGEST)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn make(path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private(dir)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
    writeln!(file, "{}", random::hex::<32>()?)?;
    match file.persist_noclobber(path) {
        // Another server was quicker: its secret is ours.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/mcp/token");
        let text = kept(&path).unwrap().unwrap();
        assert_eq!(kept(&path).unwrap().as_deref(), Some(text.as_str()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let token = Token::new(&text).unwrap();
        assert!(token.is(text.trim()));
        for wrong in ["", text[1..].trim(), &format!("{}x", text.trim())] {
            assert!(!token.is(wrong));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(kept(&path).unwrap(), None);
    }

    #[test]
    fn what_can_be_guessed_is_no_secret() {
        let held = |text: &str| Token::held(text, "x".into());
        assert!(held(" 0123456789abcdef\n").is_ok_and(|token| token.is("0123456789abcdef")));
        assert!(matches!(held(" 0123456789abcde   "), Err(TokenError::Short(_))));
        assert!(matches!(held("  "), Err(TokenError::Empty(_))));
    }

    #[test]
    fn nothing_is_no_secret() {
        for none in ["", " \n", "two words", "line\nline"] {
            assert!(Token::new(none).is_none(), "{none:?}");
        }
    }
}
