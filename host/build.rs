//! Packs the plugin API for `hostel plugins new`, so that a new plugin builds without anything being published.
//!
//! The archive holds the crate beside this one: its sources, the licences, and a `Cargo.toml` in which whatever it inherits from the
//! workspace has been filled in. The same files make the same archive. Where there is no such crate beside this one, as in a
//! published one, the archive is empty, and new plugins depend on the published API.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

/// The crate.
const API: &str = "../plugin-api";

/// Its files and folders that are packed. Its tests need the workspace.
const PARTS: [&str; 3] = ["build.rs", "resident", "src"];

/// Files of the workspace that go along.
const SHARED: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "rustfmt.toml"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("`OUT_DIR` is not set")?);
    let workspace = Path::new("..");
    let own = fs::read_to_string(Path::new(API).join("Cargo.toml")).unwrap_or_default();
    let root = fs::read_to_string(workspace.join("Cargo.toml")).unwrap_or_default();
    let archive = if own.contains("name = \"hostel-plugin-api\"") && root.contains("[workspace.package]") {
        println!("cargo::rerun-if-changed={API}");
        println!("cargo::rerun-if-changed=../Cargo.toml");
        let mut files = vec![("Cargo.toml".to_owned(), resolved(&own, &root)?.into_bytes())];
        for name in SHARED {
            println!("cargo::rerun-if-changed=../{name}");
            files.push((name.to_owned(), fs::read(workspace.join(name))?));
        }
        for part in PARTS {
            read(Path::new(API), part, &mut files)?;
        }
        files.sort();
        packed(&files)?
    } else {
        Vec::new()
    };
    Ok(fs::write(out.join("plugin-api.tar.gz"), archive)?)
}

/// Reads a file, or all files of a folder.
fn read(folder: &Path, part: &str, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), Box<dyn Error>> {
    let path = folder.join(part);
    if !path.is_dir() {
        files.push((part.to_owned(), fs::read(path)?));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().into_string().map_err(|name| format!("{}", name.display()))?;
        read(folder, &format!("{part}/{name}"), files)?;
    }
    Ok(())
}

/// Packs files. Whoever they belong to, and when they were written, is left out.
fn packed(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut builder = tar::Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
    for (path, contents) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, contents.as_slice())?;
    }
    Ok(builder.into_inner()?.finish()?)
}

/// Fills in what a `Cargo.toml` inherits from the workspace's. Both are of our own making: a key to a line.
fn resolved(own: &str, root: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut here = "";
    for line in own.lines() {
        if line == "workspace = true" && here == "lints" {
            // The section that has just begun has nothing of its own.
            text.truncate(text.trim_end().len() - "[lints]".len());
            text.push_str(&lints(root));
        } else if let Some(key) = line.strip_suffix(".workspace = true") {
            let value = value(root, &format!("[workspace.{here}]"), key)
                .ok_or_else(|| format!("the workspace has no `{key}` for `[{here}]`"))?;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = {value}");
        } else {
            if let Some(name) = line.strip_prefix('[') {
                here = name.trim_end_matches(']');
            }
            let _ = writeln!(text, "{line}");
        }
    }
    if text.contains("workspace") {
        return Err(format!("something in it is still the workspace's:\n{text}"));
    }
    Ok(text)
}

/// Returns the lines of a section.
fn section<'a>(text: &'a str, header: &str) -> impl Iterator<Item = &'a str> {
    let after = text.lines().skip_while(move |line| *line != header).skip(1);
    after.take_while(|line| !line.starts_with('['))
}

fn value<'a>(root: &'a str, header: &str, key: &str) -> Option<&'a str> {
    section(root, header).find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// Returns the workspace's lints as a crate's own.
fn lints(root: &str) -> String {
    let mut text = String::new();
    for kind in ["rust", "clippy"] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[lints.{kind}]");
        for line in section(root, &format!("[workspace.lints.{kind}]")) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
