//! What the tests have in common: a home, and plugins that pass every check that runs none of their code.

mod adding;
mod hostile;
mod http;
mod later;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hostel_plugin_api::abi::root::{ROOT_SYMBOL, VERSION_SYMBOL, version_note};

use super::*;
use crate::home::Home;
use crate::plugins::{Catalog, Discovered, ManifestError};

fn home() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home")).unwrap();
    (dir, home)
}

/// The least that passes for a plugin's library until it is opened: a segment, the two symbols, and the version.
fn library(more: &str) -> Vec<u8> {
    const NOTE: u64 = 128;
    const SYMBOLS: u64 = NOTE + 48;
    const STRINGS: u64 = SYMBOLS + 3 * 24;
    let strings = format!("\0{ROOT_SYMBOL}\0{VERSION_SYMBOL}\0");
    let sections = (STRINGS + strings.len() as u64).next_multiple_of(8);
    let total = sections + 3 * 64;
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let mut put = |fields: &[(usize, u64)]| {
        for (size, value) in fields {
            file.extend_from_slice(&value.to_le_bytes()[..*size]);
        }
    };
    put(&[(2, 3), (2, machine), (4, 1), (8, 0), (8, 64), (8, sections), (4, 0)]);
    put(&[(2, 64), (2, 56), (2, 1), (2, 64), (2, 3), (2, 2)]);
    put(&[(4, 1), (4, 4), (8, 0), (8, 0), (8, 0), (8, total), (8, total), (8, 4096)]);
    put(&[(8, 0)]);
    for byte in version_note() {
        put(&[(1, u64::from(byte))]);
    }
    put(&[(8, 0), (8, 0), (8, 0)]);
    put(&[(4, 1), (1, 0x11), (1, 0), (2, 1), (8, NOTE), (8, 8)]);
    put(&[(4, 2 + ROOT_SYMBOL.len() as u64), (1, 0x11), (1, 0), (2, 1), (8, NOTE), (8, 48)]);
    for byte in strings.bytes() {
        put(&[(1, u64::from(byte))]);
    }
    for _ in STRINGS + strings.len() as u64..sections {
        put(&[(1, 0)]);
    }
    put(&[(8, 0); 8]);
    put(&[(4, 0), (4, 11), (8, 2), (8, SYMBOLS), (8, SYMBOLS), (8, 72), (4, 2), (4, 1), (8, 8), (8, 24)]);
    put(&[(4, 0), (4, 3), (8, 2), (8, STRINGS), (8, STRINGS), (8, strings.len() as u64)]);
    put(&[(4, 0), (4, 0), (8, 1), (8, 0)]);
    assert_eq!(file.len() as u64, total);
    file.extend_from_slice(more.as_bytes());
    file
}

fn manifest(name: &str, version: &str) -> String {
    format!("name: {name}\nversion: {version}\ndescription: d\nkind: backend\n")
}

/// Makes the folder of a plugin.
fn plugin(folder: &Path, name: &str, version: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("plugin.yaml"), manifest(name, version)).unwrap();
    fs::write(folder.join(format!("lib{name}.so")), library(version)).unwrap();
}

fn add(home: &Home, source: &Path, force: bool) -> Result<Installed, InstallError> {
    let options = InstallOptions { force, ..Default::default() };
    install(home, &Source::parse(source.to_str().unwrap())?, &options, &Silent)
}

/// What lies in a folder, in order.
fn listed(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn version(home: &Home, name: &str) -> String {
    let text = fs::read_to_string(home.plugins().join(name).join("plugin.yaml")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("version: ")).unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
