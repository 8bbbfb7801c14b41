//! The tools `read_file` and `write_file`, as an agent sees them.
//!
//! Files are put there and looked at by commands of the session, so that it does not matter where a backend has them.

mod calls;
mod rights;

use std::fs;

use calls::{assert_holds, in_folder, not_read, not_written, put, read, refused, says, write};
use hostel::tools::{Call, call};
use hostel::{Host, Options};
use hostel_tests::tools::Road;
use hostel_tests::{Home, by_both_roads, on_every_backend_by_both_roads};
use serde_json::{Value, json};

by_both_roads! {
    what_is_no_text_file_is_said_with_what_to_do what_cannot_be_read_by_what_it_is_for_is_not_written
    the_policy_is_neither_written_nor_shown
}

on_every_backend_by_both_roads! {
    // O-29
    fn mark_and_line_ends_of_a_file_stay_and_do_not_show(home) {
        put(home, "f.txt", b"\xef\xbb\xbfalpha\r\nBETA2\r\ngamma");
        let object = read(home, &json!({ "path": "f.txt" }));
        assert_eq!(object["content"], "1|alpha\n2|BETA2\n3|gamma");
        assert_eq!((&object["total_lines"], &object["file_size"]), (&json!(3), &json!(22)));
        assert_eq!(write(home, "f.txt", "x\ny\n")["bytes_written"], 9);
        assert_holds(home, "f.txt", b"\xef\xbb\xbfx\r\ny\r\n");
        write(home, "f.txt", "x\ny");
        assert_holds(home, "f.txt", b"\xef\xbb\xbfx\r\ny");
        // A new file holds what it is given.
        write(home, "new.txt", "a\r\nb\n\n");
        assert_holds(home, "new.txt", "a\r\nb\n\n");
        write(home, "g.txt", "");
        assert_holds(home, "g.txt", "");
        let object = read(home, &json!({ "path": "g.txt" }));
        assert_eq!((&object["content"], &object["total_lines"]), (&json!(""), &json!(0)));
    }

    // O-31
    fn what_a_file_is_stays_but_for_what_it_holds(home) {
        write(home, "new.txt", "x\n");
        says(home, "test $(stat -c %a new.txt) = $(printf %o $((0666 & ~$(umask)))) && echo same", "same\n");
        let _ = home.exec("printf '#!/bin/sh\\necho 1\\n' > s.sh; chmod 755 s.sh; echo t > target.txt").expect(0);
        let _ = home.exec("ln -s target.txt link.txt; ln -s made.txt dangling; echo h > h1; ln h1 h2").expect(0);
        write(home, "s.sh", "#!/bin/sh\necho 2\n");
        says(home, "stat -c %a s.sh; ./s.sh", "755\n2\n");
        let object = write(home, "link.txt", "via link\n");
        assert!(object["resolved_path"].as_str().unwrap().ends_with("/target.txt"), "{object}");
        says(home, "readlink link.txt; cat target.txt", "target.txt\nvia link\n");
        write(home, "dangling", "made\n");
        says(home, "readlink dangling; cat made.txt", "made.txt\nmade\n");
        // All names of a file see what is written by one of them.
        for text in ["new and longer\n", "n\n", ""] {
            write(home, "h1", text);
            says(home, "cat h2; stat -c %h h1", &format!("{text}2\n"));
        }
        let object = write(home, "a/b c/d.txt", "deep\n");
        let made: Vec<&str> = object["dirs_created"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(made.len() == 2 && made[0].ends_with("/a") && made[1].ends_with("/a/b c"), "{object}");
        says(home, "find . -name '.hostel-*'", "");
    }

    fn a_large_file_is_read_in_pages(home) {
        let _ = home.exec("i=0; while [ $i -lt 1200 ]; do i=$((i+1)); echo line $i; done > big; printf end >> big").expect(0);
        let object = read(home, &json!({ "path": "big" }));
        let lines: Vec<&str> = object["content"].as_str().unwrap().lines().collect();
        assert_eq!((lines.len(), lines[0], lines[499]), (500, "1|line 1", "500|line 500"));
        assert_eq!((&object["truncated"], &object["next_offset"]), (&json!(true), &json!(501)));
        assert_eq!(object["total_lines"], 1201);
        let object = read(home, &json!({ "path": "big", "offset": "1200", "limit": 9000 }));
        assert_eq!((&object["content"], &object["truncated"]), (&json!("1200|line 1200\n1201|end"), &json!(false)));
        assert!(object.get("next_offset").is_none() && object["hint"].as_str().unwrap().contains("2000"), "{object}");
        let object = read(home, &json!({ "path": "big", "offset": 1202 }));
        assert_eq!((&object["content"], &object["total_lines"]), (&json!(""), &json!(1201)));
        assert!(object["error"].is_null() && object["hint"].as_str().unwrap().contains("past the end"), "{object}");
        // Two gigabytes of which hardly any are on the disk: neither they nor their one line are held.
        let _ = home.exec("printf 'first\\n' > huge; dd if=/dev/null of=huge bs=1 seek=2147483648 2>/dev/null").expect(0);
        let object = read(home, &json!({ "path": "huge", "limit": 1 }));
        assert!(object["is_binary"] == true && object["file_size"] == 2_147_483_648_u64, "{object}");
        put(home, "long", format!("a\n{}\nz\n", "é".repeat(50_000)));
        let object = read(home, &json!({ "path": "long" }));
        let lengths: Vec<usize> = object["content"].as_str().unwrap().lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [3, 2002, 3]);
        put(home, "wide", (("y".repeat(1500)) + "\n").repeat(300));
        let object = read(home, &json!({ "path": "wide" }));
        assert_eq!((&object["truncated"], &object["next_offset"]), (&json!(true), &json!(67)));
        assert!(object["content"].as_str().unwrap().len() <= 100_000);
    }

    fn names_of_any_kind_are_names(home) {
        let _ = home.exec("mkdir w && cd w").expect(0);
        for name in ["-n.txt", "a:12:b", "two\nlines", "ends\n", "q'\"$x`y`*", "ä ö", "~x", "x"] {
            write(home, name, "z\n");
            assert_eq!(read(home, &json!({ "path": name }))["content"], "1|z", "{name:?}");
        }
        says(home, "ls -A | wc -l", "10\n");
        not_read(home, "", "is not the path of a file");
        not_read(home, "a\0b", "is not the path of a file");
    }

    // upstream #106441: credentials were read like any other file
    fn what_protects_others_is_refused_by_any_name(home) {
        let _ = home.exec("echo A=1 > .env; ln -s .env soft; echo A=1 > .env.example").expect(0);
        for path in [".env", "./.env", "soft"] {
            not_read(home, path, "is protected");
            not_written(home, path, "is protected");
        }
        assert_eq!(read(home, &json!({ "path": ".env.example" }))["content"], "1|A=1");
        for path in ["/proc/self/environ", "//proc/1/mem", "/proc/self/fd/0", "/dev/stdin", "~/.netrc", "/etc/shadow"] {
            not_read(home, path, "is protected");
        }
        // Whatever a session calls its home: the user's stays what it is.
        let user = home.path().display().to_string();
        for change in ["export HOME=/elsewhere", "unset HOME"] {
            let _ = home.exec(change).expect(0);
            not_read(home, &format!("{user}/.netrc"), "is protected");
            not_written(home, &format!("{user}/.bashrc"), "is protected");
        }
        let _ = home.exec(&format!("export HOME='{user}'")).expect(0);
        let _ = home.exec("ln -s /etc etc; ln -s /etc/none none").expect(0);
        for path in ["/etc/x", "etc/x", "none", "/usr/x", "~/.bashrc", "~/.ssh/authorized_keys", "/boot/x"] {
            not_written(home, path, "is protected");
        }
    }
}

fn what_is_no_text_file_is_said_with_what_to_do(road: Road) {
    let home = in_folder(road);
    let _ =
        home.exec("mkdir dir; mkfifo pipe; ln -s loop2 loop1; ln -s loop1 loop2; echo x > main.rs").expect(0);
    put(&home, "bin", [b"\x7fELF\x02\0\0".as_slice(), &[1; 500]].concat());
    put(&home, "p.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR");
    for (path, words) in [
        ("dir", "`search_files`"),
        ("dir/", "is a folder"),
        ("pipe", "is a named pipe"),
        ("/dev/zero", "is a device"),
        ("loop1", "in a circle"),
        ("main.rs/x", "is not a folder"),
        ("none.txt", "`none.txt` does not exist"),
        ("none/../main.rs", "does not exist"),
    ] {
        not_read(&home, path, words);
    }
    for path in ["dir", "pipe", "loop1", "main.rs/x", "new/"] {
        not_written(&home, path, "`");
    }
    let object = read(&home, &json!({ "path": "bin" }));
    refused(&object, "is binary");
    assert_eq!((&object["is_binary"], &object["is_image"]), (&json!(true), &json!(false)));
    let object = read(&home, &json!({ "path": "p.png" }));
    refused(&object, "is a picture");
    assert_eq!((&object["is_image"], &object["file_size"]), (&json!(true), &json!(16)));
    assert_eq!(read(&home, &json!({ "path": "mian.rs" }))["similar_files"], json!(["main.rs"]));
    put(&home, "utf16", b"\xff\xfea\0\xe9\0\r\0\n\0b\0");
    assert_eq!(read(&home, &json!({ "path": "utf16" }))["content"], "1|aé\n2|b");
    put(&home, "latin", b"caf\xe9\n");
    assert_eq!(read(&home, &json!({ "path": "latin" }))["content"], "1|caf\u{fffd}");
    put(&home, "n.ipynb", r#"{"cells": [{"cell_type": "code", "source": ["a = 1\n", "a"]}]}"#);
    assert_eq!(read(&home, &json!({ "path": "n.ipynb" }))["content"], "1|# %% cell 1 [code]\n2|a = 1\n3|a");
    refused(
        &read(&home, &json!({ "path": "bin", "line": 1 })),
        "unknown field `line`, expected one of `path`",
    );
}

fn what_cannot_be_read_by_what_it_is_for_is_not_written(road: Road) {
    let home = in_folder(road);
    for (path, content, words) in [
        ("a.json", "{\"a\": 1,}", "line 1 column 9"),
        ("a.yaml", "a: [1\nb: 2\n", "no valid YAML"),
        ("a.yml", "a: 1\n---\n\tb: 1\n", "line 3"),
        ("a.toml", "a = 1\nb = = 1\n", "no valid TOML: line 2"),
    ] {
        refused(&home.tool("write_file", &json!({ "path": path, "content": content })), words);
    }
    says(&home, "ls -A", "");
    for (path, content, status) in [
        ("a.json", "{\"a\": [1]}\n", "ok"),
        ("a.yaml", "a: 1\n---\nb: 2\n", "ok"),
        ("tsconfig.json", "// words\n{}\n", "skipped"),
        ("chart.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}\n", "skipped"),
        ("a.toml", "[a]\nb = 1\n", "ok"),
        ("a.txt", "{", "skipped"),
    ] {
        assert_eq!(write(&home, path, content)["lint"]["status"], status, "{path}");
    }
    refused(
        &home.tool("write_file", &json!({ "path": "a.json", "content": "{" })),
        "`a.json` was not written",
    );
    assert_holds(&home, "a.json", "{\"a\": [1]}\n");
    if home.exec("command -v python3").code != 0 {
        assert!(!hostel_tests::strict(), "there is no `python3`");
        eprintln!("skipped: there is no `python3`");
        return;
    }
    let lint = |content: &str| write(&home, "p.py", content)["lint"].clone();
    assert_eq!(lint("x = 1\n"), json!({ "status": "ok" }));
    let broken = lint("x = 1\ndef f(:\n");
    assert!(broken["status"] == "error" && broken["output"].as_str().unwrap().starts_with("line 2: "));
    // It was there before.
    assert_eq!(lint("y = 2\ndef f(:\n")["status"], "ok");
    assert_holds(&home, "p.py", "y = 2\ndef f(:\n");
}

#[test]
fn a_session_knows_what_it_has_seen() {
    let home = Home::new();
    let path = home.path().join("f.txt");
    fs::write(&path, "one\n").unwrap();
    let own = hostel::home::Home::at(home.path().join("own")).unwrap();
    let host = Host::open(Options { home: Some(own), backend: Some("local".into()) }).unwrap();
    let session = host.session("here").unwrap();
    let run = |name: &str, arguments: Value| call(&session, name, arguments, &Call::new().unwrap()).value;
    let read = || run("read_file", json!({ "path": path }));
    let write = |content: &str| run("write_file", json!({ "path": path, "content": content }));
    assert_eq!(read()["content"], "1|one");
    let again = read();
    assert!(again["unchanged"] == true && again["error"].is_null(), "{again}");
    assert!(!again["content"].as_str().unwrap().contains("1|one"), "{again}");
    refused(&read(), "was refused");
    assert_eq!(run("read_file", json!({ "path": path, "limit": 501 }))["content"], "1|one");
    let script = Call::new().unwrap().of_script();
    for _ in 0..4 {
        let object = call(&session, "read_file", json!({ "path": path }), &script).value;
        assert_eq!(object["content"], "1|one", "{object}");
    }
    // A change begins anew, by whomever it was made.
    assert!(write("two\n").get("warning").is_none());
    assert_eq!(read()["content"], "1|two");
    fs::write(&path, "six\n").unwrap();
    assert_eq!(read()["content"], "1|six");
    fs::write(&path, "ten\n").unwrap();
    let object = write("two\n");
    assert!(object["warning"].as_str().unwrap().contains("changed by something else"), "{object}");
    assert!(write("three\n").get("warning").is_none());
    // What fails is told to stop.
    let missing = || run("read_file", json!({ "path": "/none/x.txt" }));
    let errors: Vec<String> = (0..4).map(|_| missing()["error"].as_str().unwrap().to_owned()).collect();
    assert!(
        errors[1] == errors[0] && errors[2].contains("3 times") && errors[3].contains("was refused"),
        "{errors:?}"
    );
    assert!(host.close().is_empty());
}

// O-28
fn the_policy_is_neither_written_nor_shown(road: Road) {
    let home = in_folder(road);
    let text = "approvals:\n  mode: ask\n";
    home.set_config(text);
    let config = home.path().join("config.yaml");
    let config = config.to_str().unwrap();
    let _ = home.exec(&format!("ln -s '{config}' soft; ln '{config}' hard; ln -s .. up")).expect(0);
    for path in
        [config, "../config.yaml", ".././config.yaml", "soft", "hard", "up/config.yaml", "~/config.yaml"]
    {
        not_read(&home, path, "is protected");
        not_written(&home, path, "is protected");
    }
    not_written(&home, "../plugins/evil/plugin.yaml", "is protected");
    not_written(&home, "../.env", "is protected");
    assert_eq!(home.config(), text);
    assert!(!home.path().join("plugins").exists());
}
