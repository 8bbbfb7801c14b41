//! The plugin API that this program carries, for new plugins to depend on; `build.rs` has packed it.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::Archive;

/// The archive; empty where there was nothing to pack.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin-api.tar.gz"));

/// Returns the files of the crate, by their paths in it; none where it is not carried.
pub(super) fn files() -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    if ARCHIVE.is_empty() {
        return Ok(files);
    }
    for entry in Archive::new(GzDecoder::new(ARCHIVE)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        files.push((path, text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_crate_is_the_one_beside_this_one_and_needs_no_workspace() {
        let files = files().unwrap();
        let text = |path: &str| files.iter().find(|(known, _)| known == path).map(|(_, text)| text.as_str());
        let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api");
        for path in ["src/lib.rs", "src/shell/session.rs", "build.rs", "resident/builtin.rs"] {
            assert_eq!(text(path), Some(std::fs::read_to_string(api.join(path)).unwrap().as_str()), "{path}");
        }
        let manifest = text("Cargo.toml").unwrap();
        assert!(!manifest.contains("workspace"), "{manifest}");
        let rust = concat!("rust-version = \"", env!("CARGO_PKG_RUST_VERSION"), "\"");
        for line in [rust, "[lints.clippy]", "unsafe_code = \"deny\""] {
            assert!(manifest.lines().any(|written| written == line), "{line}: {manifest}");
        }
        assert!(text("LICENSE-MIT").is_some() && text("LICENSE-APACHE").is_some());
    }
}
