//! What must hold whatever a stranger sends: the bodies of the fuzzing targets in `fuzz/`, which the tests run on its corpora.

use std::path::Path;

use hostel::config::{ConfigFile, Key, get};
use hostel::plugins::worker::frame::{FrameReader, Kind, write};
use hostel::plugins::worker::message::{Call, Hello, Record, Reply, Welcome};
use hostel::plugins::{Manifest, Permissions};
use serde_yaml::Value;

/// A target: its name, and what is done with each input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 4] = [
    ("manifest", manifest),
    ("config", config),
    ("frames_to_host", frames_to_host),
    ("frames_to_worker", frames_to_worker),
];

/// Reads a manifest.
///
/// # Panics
///
/// Panics if what was accepted is not what a host relies on.
pub fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Manifest::parse("plugin.yaml", text);
    let Ok((manifest, warnings)) = read else {
        let message = read.expect_err("it is an error").to_string();
        assert!(!message.contains('\n'), "{message}");
        return;
    };
    for name in [&manifest.name].into_iter().chain(&manifest.provides) {
        assert!(hostel::registry::check_name(name).is_ok(), "{name}");
    }
    for file in manifest.library_names().iter().chain(&manifest.files) {
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        assert!(!file.is_empty() && Path::new(file).components().all(plain), "{file}");
    }
    assert!(warnings.iter().all(|warning| !warning.contains('\n')), "{warnings:?}");
    // What is granted is kept as JSON, and must come back as it was.
    let kept = serde_json::to_string(&manifest.permissions).expect("permissions are written");
    let back: Permissions = serde_json::from_str(&kept).expect("permissions are read");
    assert_eq!(back, manifest.permissions);
    assert!(back.beyond(&manifest.permissions).is_empty());
}

/// Edits a configuration: the first line is a key, the second a value, the rest the file.
///
/// # Panics
///
/// Panics if an edit changes anything but what was asked for.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let (Some(key), Some(value), Some(file)) = (parts.next(), parts.next(), parts.next()) else { return };
    let Ok(key) = Key::parse(key) else { return };
    let path = Path::new("config.yaml");
    let Ok(file) = ConfigFile::of_text(path, file.to_owned()) else { return };
    let value = match value.strip_prefix('-') {
        Some(list) => list.split(',').map(|item| Value::from(item.trim())).collect(),
        None => Value::from(value),
    };
    if let Ok(edited) = file.with(&key, &value) {
        let again = ConfigFile::of_text(path, edited.clone()).expect("what was edited can be read");
        assert_eq!(get(&again.tree, &key), Some(&value), "{edited}");
        // Setting it once more changes nothing.
        assert_eq!(again.with(&key, &value).expect("it is there"), edited);
    }
    if let Ok(edited) = file.without(&key) {
        let again = ConfigFile::of_text(path, edited.clone()).expect("what was edited can be read");
        assert_ne!(get(&again.tree, &key), get(&file.tree, &key), "{edited}");
    }
}

/// Reads frames until there are no more, and writes each again.
fn frames(data: &[u8], mut look: impl FnMut(Kind, &[u8])) {
    let mut reader = FrameReader::new(data);
    let mut written = Vec::new();
    while let Ok(frame) = reader.read() {
        write(&mut written, frame.kind, frame.call, &frame.body).expect("what was read can be written");
        look(frame.kind, &frame.body);
    }
    assert!(data.starts_with(&written), "frames come out as they went in");
}

/// Reads what a worker sends.
///
/// # Panics
///
/// Panics if a frame does not come out as it went in.
pub fn frames_to_host(data: &[u8]) {
    frames(data, |kind, body| {
        let _ = match kind {
            Kind::HELLO => serde_json::from_slice::<Welcome>(body).is_ok(),
            Kind::RESULT => serde_json::from_slice::<Reply>(body).is_ok(),
            Kind::LOG => serde_json::from_slice::<Record>(body).is_ok(),
            _ => true,
        };
    });
}

/// Reads what a host sends.
///
/// # Panics
///
/// Panics if a call cannot be written as it was read.
pub fn frames_to_worker(data: &[u8]) {
    frames(data, |kind, body| match kind {
        Kind::HELLO => drop(serde_json::from_slice::<Hello>(body)),
        Kind::CALL => {
            if let Ok(call) = serde_json::from_slice::<Call>(body) {
                let text = serde_json::to_vec(&call).expect("a call is written");
                let again: Call = serde_json::from_slice(&text).expect("a call is read");
                assert_eq!(again.name(), call.name());
            }
        }
        _ => {}
    });
}
