//! Signatures, by `minisign`: beside a file `F`, its author's signature as `F.minisig`.
//!
//! The manifest is signed like the library and the other files that it names, because the permissions stand in it.

use std::path::Path;

use minisign_verify::{PublicKey, Signature};

use super::error::{LoadError, Step};
use super::granted;
use super::load::Discovered;
use crate::config::{Config, ConfigError};
use crate::home::read_regular;

/// A signature is a few lines.
const LONGEST: u64 = 64 * 1024;
/// A file that is signed is no larger than a library may be.
const LONGEST_FILE: u64 = 1 << 30;

/// Whose signatures count, and whether there must be one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signing {
    keys: Vec<String>,
    required: bool,
}

impl Signing {
    /// Reads `plugins.trusted_keys` and `plugins.require_signature`.
    ///
    /// # Errors
    ///
    /// Fails if a value is of another type.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            keys: config.list("plugins.trusted_keys")?,
            required: config.flag("plugins.require_signature")?,
        })
    }

    /// Returns what is wrong with the keys, if anything is.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let bad = self.keys.iter().find(|key| PublicKey::from_base64(key.trim()).is_err())?;
        Some(format!("`plugins.trusted_keys`: `{}` is no minisign public key", bad.escape_debug()))
    }

    /// Checks the plugin's signatures. Returns the key that signed all of its files, if one did.
    ///
    /// # Errors
    ///
    /// Fails if a signature by a trusted key does not fit its file, and if none is there where one is required.
    pub fn check(&self, found: &Discovered) -> Result<Option<String>, LoadError> {
        let plugin = &found.manifest.name;
        let failed = |reason: String, hint: &str| LoadError::new(plugin, Step::Signature, reason, hint);
        if self.keys.is_empty() {
            let hint = "put the author's public key into `plugins.trusted_keys`";
            let missing = || failed("a signature is required, and no key is trusted".into(), hint);
            return if self.required { Err(missing()) } else { Ok(None) };
        }
        let files = found.signed_files()?;
        for text in &self.keys {
            let key = PublicKey::from_base64(text.trim()).map_err(|_| {
                failed(
                    format!("`plugins.trusted_keys`: `{}` is no minisign public key", text.escape_debug()),
                    "it is the second line of the file `minisign.pub`",
                )
            })?;
            let mut signed = 0;
            for file in &files {
                let shown =
                    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                match verify(&key, file, &found.folder) {
                    Ok(true) => signed += 1,
                    Ok(false) => {}
                    Err(reason) => {
                        let hint = "get the plugin again, from its author";
                        return Err(failed(
                            format!("the signature of `{shown}` does not fit: {reason}"),
                            hint,
                        ));
                    }
                }
            }
            if signed == files.len() {
                return Ok(Some(text.clone()));
            }
        }
        if !self.required {
            return Ok(None);
        }
        let names: Vec<String> = files
            .iter()
            .filter_map(|file| Some(format!("`{}.minisig`", file.file_name()?.to_string_lossy())))
            .collect();
        let reason = format!("no trusted key has signed all of its files ({} are wanted)", names.join(", "));
        Err(failed(reason, "ask its author for signatures, or trust the key that made those that are there"))
    }
}

/// Returns whether `key` signed a file in `folder`: not where there is no signature, or another key's.
fn verify(key: &PublicKey, file: &Path, folder: &Path) -> Result<bool, String> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".minisig");
    if Path::new(&beside).canonicalize().is_ok_and(|real| !real.starts_with(folder)) {
        return Err("it is a link that leads out of the plugin's folder".into());
    }
    let text = match read_regular(Path::new(&beside), LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let text = String::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let signature = Signature::decode(&text).map_err(|error| error.to_string())?;
    let bytes = read_regular(file, LONGEST_FILE).map_err(|error| error.to_string())?;
    match key.verify(&bytes, &signature, false) {
        Ok(()) => Ok(true),
        Err(minisign_verify::Error::UnexpectedKeyId) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

impl Discovered {
    /// Returns the paths of all that is signed: manifest, library, and the other files.
    fn signed_files(&self) -> Result<Vec<std::path::PathBuf>, LoadError> {
        let manifest = super::manifest::path_in(&self.folder).into_iter();
        let library = self.trusted_library()?;
        let others = self.manifest.files.iter().map(|name| granted::inside(self, name));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        Ok(manifest.chain([library]).chain(others).collect())
    }
}
