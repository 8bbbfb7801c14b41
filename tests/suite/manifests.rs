//! Folders whose manifests are wrong: each is told by one line, and none hides its neighbours.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use hostel_tests::{Home, manifest};

#[test]
fn each_bad_manifest_is_listed_with_its_reason_and_the_good_one_works() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    let good = manifest("x");
    let line = |from: &str, to: &str| good.replace(from, to);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{below}]").unwrap();
    }
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("m-empty", Vec::new(), "`plugin.yaml` is empty"),
        ("m-list", b"- a\n- b\n".to_vec(), "must hold keys and values"),
        ("m-text", b"just text\n".to_vec(), "must hold keys and values"),
        ("m-number", line("name: x", "name: 123").into(), "`name` must be text"),
        ("m-null", line("name: x", "name: null").into(), "`name` must be text"),
        ("m-nameless", line("name: x\n", "").into(), "`name` is missing"),
        ("m-tab", format!("{good}\tkey: 1\n").into(), "not valid YAML"),
        ("m-twice", format!("{good}name: y\n").into(), "not valid YAML"),
        ("m-bomb", bomb.into(), "not valid YAML"),
        ("m-large", vec![b'x'; 1 << 20], "larger than 64 KiB"),
        ("m-binary", b"name: \xff\xfe\n".to_vec(), "not valid UTF-8"),
        ("m-library", format!("{good}library: ../../lib.so\n").into(), "a file in the plugin's own folder"),
        ("m-slash", line("name: x", "name: a/b").into(), "`a/b` is not a name"),
        ("m-dots", line("name: x", "name: '..'").into(), "`..` is not a name"),
        ("m-capitals", line("name: x", "name: Acme").into(), "`Acme` is not a name"),
        ("m-break", line("name: x", "name: \"con\\nfig\"").into(), "is not a name"),
        ("m-long", line("name: x", &format!("name: {}", "a".repeat(300))).into(), "is not a name"),
    ];
    for (folder, text, _) in &cases {
        home.add_manifest(folder, text);
    }
    fs::create_dir_all(home.plugin("m-none").join("target")).unwrap();
    let folder = home.add_manifest("m-away", "");
    fs::remove_file(folder.join("plugin.yaml")).unwrap();
    fs::write(home.path().join("away.yaml"), &good).unwrap();
    symlink("../../away.yaml", folder.join("plugin.yaml")).unwrap();
    let file = fs::File::create(home.add_manifest("m-huge", "").join("plugin.yaml")).unwrap();
    file.set_len(100 << 20).unwrap();

    let ran = home.hostel(&["plugins", "list", "--json"]).expect(0);
    assert!(ran.took < Duration::from_secs(2), "{ran:?}");
    let rows = ran.json();
    let find = |folder: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter()
            .find(|row| row["path"].as_str().unwrap().ends_with(folder))
            .unwrap_or_else(|| panic!("{folder}"))
            .clone()
    };
    let more = [
        ("m-none", "there is no `plugin.yaml` in it"),
        ("m-away", "leads out of the plugin's folder"),
        ("m-huge", "larger than 64 KiB"),
    ];
    for (folder, reason) in cases.iter().map(|(folder, _, reason)| (*folder, *reason)).chain(more) {
        let row = find(folder);
        assert_eq!(row["status"], "error", "{row}");
        let error = row["error"].as_str().unwrap();
        assert!(error.contains(reason) && !error.contains('\n') && error.len() < 300, "{row}");
    }
    assert_eq!(find("acmebox")["status"], "not enabled");
    let doctor = home.hostel(&["doctor", "--json"]).expect(1).json();
    assert_eq!(
        doctor.as_array().unwrap().iter().filter(|row| row["ok"] == false).count(),
        cases.len() + more.len()
    );
    assert_eq!(home.exec("echo hi").expect(0).text(), "hi\n");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    assert_eq!(home.hostel(&["exec", "--backend", "acmebox", "--", "echo hi"]).expect(0).text(), "hi\n");
}

#[test]
fn a_mark_line_ends_a_second_ending_and_a_version_are_taken_as_they_are() {
    let home = Home::new();
    home.add_manifest(
        "marked",
        format!("\u{feff}{}", manifest("marked").replace('\n', "\r\n").replace("0.1.0", "1.10")),
    );
    let folder = home.plugin("second");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.yml"), manifest("second")).unwrap();
    home.add_manifest("renamed", manifest("other") + "new_key: 1\n");
    let rows = home.hostel(&["plugins", "list", "--json"]).expect(0).json();
    assert_eq!((&rows[0]["status"], &rows[0]["version"]), (&"not enabled".into(), &"1.10".into()));
    assert_eq!(rows[1]["name"], "other");
    assert_eq!(rows[1]["warnings"][0], "`new_key` is not a key of a manifest");
    assert_eq!(rows[1]["kind"], "backend");
    assert_eq!(rows[1]["warnings"][1], "the folder is called `renamed`, the plugin `other`");
    assert_eq!(rows[2]["name"], "second");
}

#[test]
fn reserved_and_double_names_are_rejected_with_both_sides_named() {
    let home = Home::new();
    for name in ["docker", "managed_modal", "vercel_sandbox", "ssh"] {
        home.add_manifest(name, manifest(name));
    }
    home.add_manifest("z-upper", manifest("DOCKER"));
    home.add_manifest("a-first", manifest("a-first") + "provides: [shared]\n");
    home.add_manifest("b-second", manifest("b-second") + "provides: [shared]\n");
    let rows = home.hostel(&["plugins", "list", "--json"]).expect(0).json();
    let status = |row: &serde_json::Value| {
        (row["name"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned())
    };
    let seen: Vec<_> = rows.as_array().unwrap().iter().map(status).collect();
    let wanted = [
        ("a-first", "not enabled"),
        ("b-second", "rejected"),
        ("docker", "rejected"),
        ("managed_modal", "rejected"),
        ("ssh", "rejected"),
        ("vercel_sandbox", "rejected"),
        ("z-upper", "rejected"),
    ];
    assert_eq!(seen, wanted.map(|(name, status)| (name.to_owned(), status.to_owned())));
    let error = rows[1]["error"].as_str().unwrap();
    assert!(error.contains("`shared`") && error.contains("a-first"), "{error}");
    assert!(
        rows[2]["error"]
            .as_str()
            .unwrap()
            .contains("`docker` is the name of a backend that is built into Hostel")
    );
    home.hostel(&["plugins", "enable", "docker"]).fails(1, "built into Hostel");
    let _ = home.hostel(&["backends"]).expect(0);
}
