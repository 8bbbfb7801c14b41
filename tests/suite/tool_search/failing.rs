//! Searches that fail, and those that tell less than there is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use hostel::tools::{Call, call};
use hostel::{Host, Options};
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{Home, built, by_both_roads, finish, is_root};
use serde_json::{Value, json};

use super::calls::{ENGINES, Grep, failure, places, search, set};

by_both_roads! {
    a_search_that_fails_says_so a_program_that_is_missing_or_broken_is_an_error
    nothing_is_told_of_protected_files arguments_are_read_as_they_are_written
}

// O-32: failing is not finding nothing.
fn a_search_that_fails_says_so(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let _ = home.exec("echo x > file; mkfifo pipe; ln -s nowhere link; mkdir empty").expect(0);
        for (path, reason) in [
            ("missing", "`missing` does not exist"),
            ("-missing", "`-missing` does not exist"),
            ("file/below", "`file/below` cannot be searched: Not a directory"),
            ("pipe", "`pipe` is neither a folder nor a plain file"),
            ("/dev/zero", "`/dev/zero` is neither"),
            ("link", "`link` is a link to what does not exist"),
        ] {
            for target in ["content", "files"] {
                let error = failure(&home, &json!({ "pattern": "x", "path": path, "target": target }));
                assert!(error.contains(reason), "{engine:?} {error}");
            }
        }
        for pattern in ["[", "(", "a**[", "x{2,1}"] {
            let error = failure(&home, &json!({ "pattern": pattern }));
            assert!(error.contains("does not understand `pattern`: "), "{engine:?} {pattern} {error}");
        }
        for (pattern, reason) in [
            ("", "`pattern` is empty"),
            ("two\nlines", "`pattern` holds a line break"),
            (r"two\nlines", "`pattern` holds a line break"),
            ("a\0b", "`pattern` holds a NUL"),
        ] {
            assert!(failure(&home, &json!({ "pattern": pattern })).contains(reason), "{pattern:?}");
        }
        assert!(failure(&home, &json!({ "pattern": "x", "file_glob": "[a" })).contains("`file_glob`"));
        // And finding nothing is not failing.
        let object = search(&home, &json!({ "pattern": "nothing", "path": "empty" }));
        assert_eq!(
            (&object["matches"], &object["total_count"], &object["truncated"]),
            (&json!([]), &json!(0), &json!(false)),
            "{object}"
        );
        assert!(object["error"].is_null() && object["note"].is_null(), "{object}");
    }
}

fn a_program_that_is_missing_or_broken_is_an_error(road: Road) {
    let home = Grep.home(road).unwrap();
    let _ = home.exec("echo needle > a; rm ../programs/grep").expect(0);
    assert!(failure(&home, &json!({ "pattern": "needle" })).contains("`grep` is missing"));
    // It understands the pattern, and then fails of each file.
    let _ = home
        .exec(
            "printf '#!/bin/sh\\ncase \"$*\" in *./a*) echo \"grep: memory exhausted\" >&2; exit 2;; esac\\nexit 1\\n' \
             > ../programs/grep; chmod +x ../programs/grep",
        )
        .expect(0);
    let error = failure(&home, &json!({ "pattern": "needle" }));
    assert!(error.contains("grep: memory exhausted"), "{error}");
    let _ = home.exec("rm ../programs/find").expect(0);
    assert!(failure(&home, &json!({ "pattern": "a", "target": "files" })).contains("`find` is missing"));
}

#[test]
fn what_cannot_be_read_is_told() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let program = tempfile::tempdir().unwrap();
    for path in [program.path(), home.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    let tree = home.path().join("tree");
    for (name, text) in [("open/a", "needle\n"), ("closed/b", "needle\n"), ("c", "needle\nother\n")] {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), text).unwrap();
    }
    for name in ["closed", "c"] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let chown = Command::new("chown").args(["-R", "64323:64323"]).arg(home.path()).status();
    assert!(chown.unwrap().success());
    let search = |arguments: &Value| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=64323", "--regid=64323", "--clear-groups"]).arg(program.path().join("hostel"));
        command.args(["tool", "search_files", "--json", &arguments.to_string()]);
        command.env("HOSTEL_HOME", home.path()).env("HOME", home.path()).current_dir(&tree);
        finish(command, b"").json()
    };
    // Beside what was found it is a warning, without anything it is why nobody knows.
    let object = search(&json!({ "pattern": "needle" }));
    assert_eq!((&object["total_count"], object["error"].is_null()), (&json!(1), true), "{object}");
    let warnings = object["warnings"].to_string();
    assert!(
        warnings.contains("closed") && warnings.contains("/c") && warnings.contains("denied"),
        "{object}"
    );
    let object = search(&json!({ "pattern": "other" }));
    let error = object["error"].as_str().unwrap();
    assert!(error.starts_with("nothing was found, but not everything could be searched"), "{object}");
    assert!(error.contains("Permission denied"), "{object}");
    for path in ["closed", "c"] {
        let error = search(&json!({ "pattern": "needle", "path": path }))["error"].to_string();
        assert!(error.contains(&format!("`{path}` cannot be searched: Permission denied")), "{error}");
    }
}

fn nothing_is_told_of_protected_files(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "mkdir -p ~/.aws ~/keys; echo 'needle secret' > ~/.aws/credentials; echo 'needle secret' > .env; \
                      ln -s ~/.aws/credentials plain; ln -s ~/.aws ~/keys/folder; echo needle > ok";
        let _ = home.exec(script).expect(0);
        for arguments in [
            json!({ "pattern": "needle" }),
            json!({ "pattern": "needle", "path": ".env" }),
            json!({ "pattern": "needle", "path": "plain" }),
            json!({ "pattern": "needle", "path": "~/.aws" }),
            json!({ "pattern": "needle", "path": "~/.aws/credentials" }),
            json!({ "pattern": "needle", "path": "~/keys/folder" }),
            json!({ "pattern": "needle", "path": "~/keys/folder", "output_mode": "count" }),
            json!({ "pattern": "credentials", "target": "files", "path": "~/.aws" }),
        ] {
            let object = search(&home, &arguments);
            let told = object.to_string();
            assert!(!told.contains("secret"), "{engine:?} {told}");
            assert!(
                !told.contains("credentials\":")
                    && names_of(&object).all(|name| !name.contains("credentials")),
                "{told}"
            );
        }
        assert_eq!(places(&home, &json!({ "pattern": "needle" })), set(&[("ok", 1)]), "{engine:?}");
    }
}

fn names_of(object: &Value) -> impl Iterator<Item = &str> {
    object["files"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn arguments_are_read_as_they_are_written(road: Road) {
    let home = TidyHome::new().by(road);
    let _ = home.exec("mkdir t && cd t && seq 1 3 > a").expect(0);
    let all = json!({ "pattern": "1", "path": null, "target": null, "file_glob": null, "limit": null, "offset": null,
        "output_mode": null, "context": null });
    assert_eq!(places(&home, &all), set(&[("a", 1)]));
    assert_eq!(
        places(&home, &json!({ "pattern": "2", "limit": "5", "context": "0", "path": "" })),
        set(&[("a", 2)])
    );
    for (arguments, reason) in [
        (json!({}), "missing field `pattern`"),
        (
            json!({ "pattern": "1", "glob": "*" }),
            "unknown field `glob`, expected one of `pattern`, `target`, `path`",
        ),
        (json!({ "pattern": "1", "limit": -1 }), "a whole number"),
        (json!({ "pattern": "1", "target": "web" }), "`content`"),
    ] {
        assert!(failure(&home, &arguments).contains(reason), "{arguments}");
    }
    let none = search(&home, &json!({ "pattern": "[123]", "limit": 0 }));
    assert_eq!((&none["total_count"], &none["truncated"]), (&json!(3), &json!(true)), "{none}");
}

#[test]
fn the_fourth_search_of_the_same_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let home = hostel::home::Home::at(dir.path().join("home")).unwrap();
    let host = Host::open(Options { home: Some(home), backend: Some("local".into()) }).unwrap();
    let session = host.session("here").unwrap();
    fs::write(dir.path().join("a"), "needle\n").unwrap();
    let run = |tool: &str, arguments: Value| call(&session, tool, arguments, &Call::new().unwrap()).value;
    let search = |pattern: &str| run("search_files", json!({ "pattern": pattern, "path": dir.path() }));
    for _ in 0..2 {
        assert!(search("needle")["warnings"].is_null());
    }
    let third = search("needle");
    assert!(third["total_count"] == 1 && third["warnings"].to_string().contains("3 times"), "{third}");
    for _ in 0..2 {
        assert!(search("needle")["error"].as_str().unwrap().contains("was made 3 times already"));
    }
    // Another search makes it a new one, and so does whatever else is done.
    assert!(search("other")["error"].is_null());
    for _ in 0..3 {
        assert_eq!(search("needle")["total_count"], 1);
    }
    assert_eq!(run("terminal", json!({ "command": "true" }))["exit_code"], 0);
    assert_eq!(search("needle")["total_count"], 1);
    assert!(host.close().is_empty());
}
