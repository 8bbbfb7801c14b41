//! What the documents promise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hostel_tests::{Home, built, put};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the first block of `language` in a document.
fn block(document: &str, language: &str) -> String {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let (_, rest) =
        text.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("{language} in {document}"));
    rest.split_once("```").unwrap().0.to_owned()
}

/// Compiles a plugin's source against the library that the workspace has built.
fn compile(source: &str, to: &Path, options: &[&str]) -> Output {
    let file = to.with_extension("rs");
    fs::write(&file, source).unwrap();
    let (api, dependencies) = (built().join("libhostel_plugin_api.rlib"), built().join("deps"));
    let mut rustc = Command::new("rustc");
    rustc
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=mybox", "-o"])
        .arg(to)
        .arg(&file)
        .args(options);
    rustc.arg("--extern").arg(format!("hostel_plugin_api={}", api.display()));
    rustc.arg("-L").arg(format!("dependency={}", dependencies.display()));
    rustc.output().unwrap()
}

#[test]
fn the_readme_opens_with_the_two_commands() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let first_screen: String = text.lines().take(24).collect::<Vec<_>>().join("\n");
    assert!(
        first_screen.contains("cargo xtask quickstart") && first_screen.contains("cargo xtask test"),
        "{first_screen}"
    );
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.contains("cargo xtask test"));
}

#[test]
fn the_plugin_in_the_guide_builds_and_runs() {
    let home = Home::new().with("MYBOX_TOKEN", "x");
    let folder = home.add_manifest("mybox", block("docs/plugins.md", "yaml"));
    let library = home.path().join("libmybox.so");
    let output = compile(&block("docs/plugins.md", "rust,ignore"), &library, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    put(&library, &folder.join("libmybox.so"));
    let _ = home.hostel(&["plugins", "enable", "mybox"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "mybox"]).expect(0);
    let ran = home.exec("echo hello from $PWD; echo ${MYBOX_TOKEN-hidden}").expect(0);
    assert_eq!(ran.text(), "hello from /tmp\nhidden\n");
}

#[test]
fn a_plugin_whose_panics_would_end_the_host_does_not_compile() {
    let dir = tempfile::tempdir().unwrap();
    let source = block("docs/plugins.md", "rust,ignore");
    let output = compile(&source, &dir.path().join("lib.rmeta"), &["-Cpanic=abort", "--emit=metadata"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("must be built with `panic = \"unwind\"`"),
        "{message}"
    );
}

#[test]
fn every_key_in_the_table_is_in_the_guide() {
    let text = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    for declared in hostel::config::schema::KEYS {
        let key = declared.key;
        let section = key.rsplit_once('.').map_or(key, |(section, _)| section);
        let last = key.rsplit('.').next().unwrap();
        let known = [format!("`{key}`"), format!("`{section}.*`"), format!("`{last}`"), format!("`{key}.*`")];
        let known = known.iter().any(|form| text.contains(form)) || text.contains(&key.replace('*', "NAME"));
        assert!(known, "{key}");
    }
}

/// Returns all sources below the repository's folder.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn unsafe_is_allowed_in_its_three_places_only() {
    let lints = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(lints.contains("unsafe_code = \"deny\""));
    let allows = |path: &PathBuf| fs::read_to_string(path).unwrap().matches("allow(unsafe_code").count();
    let mut found: Vec<(String, usize)> = sources()
        .into_iter()
        .map(|path| (path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(), allows(&path)))
        .filter(|(path, count)| *count > 0 && !path.starts_with("tests/"))
        .collect();
    found.sort();
    // The macro marks two exported symbols, which counts as unsafe and holds no code.
    let wanted = [
        "host/src/plugins/mod.rs",
        "host/src/plugins/worker/hosts/mod.rs",
        "plugin-api/src/abi/mod.rs",
        "plugin-api/src/export.rs",
        "plugin-api/src/shell/mod.rs",
    ];
    let places: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(places, wanted, "{found:?}");
}
