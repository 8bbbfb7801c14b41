//! What the documents promise.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
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
fn unsafe_lives_in_its_three_places() {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).unwrap();
                let has = text.lines().any(|line| {
                    line.contains("unsafe {") && !line.trim_start().starts_with("//") && !line.contains('"')
                });
                if has {
                    found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
                }
            }
        }
    }
    let allowed = |path: &String| {
        path.starts_with("plugin-api/src/abi/")
            || path == "plugin-api/src/shell/spawn.rs"
            || path == "host/src/plugins/load.rs"
    };
    assert!(found.iter().all(allowed) && found.len() >= 3, "{found:?}");
}
