//! Whoever grants a plugin more than before is shown what, and nobody grants it by the way.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use hostel_tests::{Home, Ran, four_keys, library, put};

use super::install;

const BEFORE: &str = "permissions: {network: [api.example.com]}\n";
const MORE: &str = "permissions: {network: [api.example.com, evil.example.com], exec: true}\n";
const NEW: [&str; 2] = ["new: it may speak to evil.example.com:443", "new: it may start programs"];

fn uses(home: &Home) -> Ran {
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
}

#[track_caller]
fn shows_what_is_new(text: &str) {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("new: ")).map(str::trim_end).collect();
    assert_eq!(lines, NEW, "{text}");
}

/// Answers the question on a terminal, which `script` makes. Returns the exit code and what was shown.
fn answered(home: &Home, answer: &str) -> (Option<i32>, String) {
    let hostel = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{hostel} plugins enable spy"), "/dev/null"]);
    script.env("HOSTEL_HOME", home.path()).env("HOME", home.path()).env("TERM", "dumb");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut typed, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains("grant that? [y/N] ") {
        let read = screen.read(&mut bytes).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    writeln!(typed, "{answer}").unwrap();
    screen.read_to_string(&mut seen).unwrap();
    (child.wait().unwrap().code(), seen)
}

#[test]
fn a_person_is_asked_and_a_script_that_names_the_plugin_is_not() {
    let home = Home::new();
    let ran = install(&home, BEFORE).expect(0);
    assert!(!ran.stderr.contains("new:"), "nothing was granted before: {ran:?}");
    let manifest = home.plugin("spy").join("plugin.yaml");
    fs::write(&manifest, four_keys("spy") + MORE).unwrap();
    for no in ["n", ""] {
        let (code, seen) = answered(&home, no);
        shows_what_is_new(&seen);
        assert!(code == Some(1) && seen.contains("nothing was changed"), "{code:?} {seen}");
        uses(&home).fails(125, "more than was granted");
    }
    let (code, seen) = answered(&home, "y");
    assert!(code == Some(0) && seen.contains("enabled spy"), "{code:?} {seen}");
    let _ = uses(&home).expect(0);
    // What has been granted is not new.
    let ran = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    assert!(!ran.stderr.contains("new:"), "{ran:?}");
    fs::write(&manifest, four_keys("spy") + BEFORE).unwrap();
    let _ = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    fs::write(&manifest, four_keys("spy") + MORE).unwrap();
    let ran = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    shows_what_is_new(&ran.stderr);
    let _ = uses(&home).expect(0);
}

#[test]
fn an_update_grants_nothing_by_the_way() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join("spy");
    fs::create_dir(&source).unwrap();
    put(&library("hostile"), &source.join("libspy.so"));
    let asks = |permissions: &str| {
        fs::write(source.join("plugin.yaml"), four_keys("spy") + permissions).unwrap();
    };
    let path = source.to_str().unwrap().to_owned();
    asks(BEFORE);
    let ran = home.hostel(&["plugins", "install", &path, "--enable"]).expect(0);
    assert!(!ran.stderr.contains("new:"), "{ran:?}");
    asks(MORE);
    for words in [&["update", "spy", "--enable"][..], &["install", &path, "--force", "--enable"]] {
        let words: Vec<&str> = ["plugins"].iter().chain(words).copied().collect();
        let ran = home.hostel(&words).expect(1);
        shows_what_is_new(&ran.stderr);
        assert!(ran.stderr.contains("asks for more than was granted; nothing was changed"), "{ran:?}");
        assert!(ran.stderr.contains("hint: if it may have that, add `--yes`"), "{ran:?}");
        // The one before is there, and works.
        let _ = uses(&home).expect(0);
    }
    let ran = home.hostel(&["plugins", "update", "spy", "--enable", "--yes"]).expect(0);
    shows_what_is_new(&ran.stderr);
    let _ = uses(&home).expect(0);
    // Less needs no word.
    asks("");
    let _ = home.hostel(&["plugins", "update", "spy", "--enable"]).expect(0);
    let _ = uses(&home).expect(0);
}
