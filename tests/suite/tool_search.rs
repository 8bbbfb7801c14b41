//! The tool `search_files`, as an agent sees it: with ripgrep, with GNU grep and with busybox, which must not differ.
//!
//! Files are put there by commands of the session, so that it does not matter where a backend has them.

mod calls;
mod failing;
mod texts;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use calls::{Busybox, ENGINES, Engine, Grep, Ripgrep, failure, files, found, names, places, search, set};
use hostel_tests::tools::Road;
use hostel_tests::{Home, by_both_roads, on_every_backend_by_both_roads};
use serde_json::{Value, json};

by_both_roads! {
    names_that_are_no_text_are_not_merged nothing_in_a_tree_holds_it_up
    only_files_of_some_names_are_searched what_is_protected_is_left_out_and_that_is_said hidden_and_ignored_files_are_left_out_unless_named
    files_are_found_by_name_newest_first
}

fn dashes_and_colons(home: &Home, engine: Engine) {
    let _ = home
        .exec(
            "printf -- '- [ ] task\\ntemp is -77\\nsee --pdf-engine\\n' > todo.md\n\
             printf 'needle\\n' > -n.txt; printf 'x\\nneedle\\n' > 'a:12:b.txt'; printf 'needle\\n' > $'two\\nlines.txt'",
        )
        .expect(0);
    for (pattern, line) in [("-77", 2), ("--pdf-engine", 3), (r"- \[ \]", 1)] {
        assert_eq!(places(home, &json!({ "pattern": pattern })), set(&[("todo.md", line)]), "{engine:?}");
    }
    let needles = set(&[("-n.txt", 1), ("a:12:b.txt", 2), ("two\nlines.txt", 1)]);
    assert_eq!(places(home, &json!({ "pattern": "needle", "path": "." })), needles, "{engine:?}");
    assert_eq!(
        places(home, &json!({ "pattern": "needle", "path": "-n.txt" })),
        set(&[("-n.txt", 1)]),
        "{engine:?}"
    );
    let error = failure(home, &json!({ "pattern": "[", "path": "." }));
    assert!(error.contains("does not understand `pattern`"), "{engine:?} {error}");
    let object = search(home, &json!({ "pattern": "needle" }));
    let expected: &[&str] = match engine {
        Ripgrep => &["ripgrep"],
        Grep => &["grep -P", "grep -E"],
        Busybox => &["grep -E"],
    };
    assert!(expected.contains(&object["engine"].as_str().unwrap()), "{object}");
}

on_every_backend_by_both_roads! {
    // O-32
    fn dashes_and_colons_with_ripgrep(home) {
        if Ripgrep.prepare(home) {
            dashes_and_colons(home, Ripgrep);
        }
    }

    // O-32
    fn dashes_and_colons_with_grep(home) {
        assert!(Grep.prepare(home));
        dashes_and_colons(home, Grep);
    }

    // O-32
    fn dashes_and_colons_with_busybox(home) {
        assert!(Busybox.prepare(home));
        dashes_and_colons(home, Busybox);
    }

    fn a_search_starts_where_the_session_stands(home) {
        let _ = home.exec("mkdir -p t/deep && cd t && printf 'needle\\n' > deep/a && cd deep").expect(0);
        assert_eq!(places(home, &json!({ "pattern": "needle" })), set(&[("a", 1)]));
        assert_eq!(places(home, &json!({ "pattern": "needle", "path": ".." })), set(&[("../deep/a", 1)]));
        let dir = home.exec("pwd").expect(0).text().trim_end().to_owned();
        let absolute = format!("{dir}/a");
        assert_eq!(places(home, &json!({ "pattern": "needle", "path": dir })), set(&[(&absolute, 1)]));
        // What the session has defined is not in the way, nor does a search change where it stands.
        let script = "grep() { echo mine; }; find() { false; }; export -f grep find; export CDPATH=/usr";
        let _ = home.exec(script).expect(0);
        assert_eq!(places(home, &json!({ "pattern": "needle", "path": ".." })), set(&[("../deep/a", 1)]));
        assert_eq!(home.exec("pwd").expect(0).text().trim_end(), dir);
    }
}

fn names_that_are_no_text_are_not_merged(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "for name in $'caf\\351' $'caf\\352' 'caf\\xe9' $'a\\n1:b' ' a ' 'x:0'; do echo needle > \"$name\"; done";
        let _ = home.exec(script).expect(0);
        let expected = [r"$'caf\xe9'", r"$'caf\xea'", r"caf\xe9", "a\n1:b", " a ", "x:0"];
        let expected: BTreeSet<String> = expected.map(str::to_owned).into();
        let found: BTreeSet<String> =
            places(&home, &json!({ "pattern": "needle" })).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, expected, "{engine:?}");
        for arguments in [
            json!({ "pattern": "needle", "output_mode": "files_only" }),
            json!({ "pattern": "*", "target": "files" }),
        ] {
            assert_eq!(BTreeSet::from_iter(files(&home, &arguments)), expected, "{engine:?}");
        }
        let counts = search(&home, &json!({ "pattern": "needle", "output_mode": "count" }));
        assert_eq!(counts["counts"].as_object().unwrap().len(), 6, "{counts}");
        assert!(counts["counts"].as_object().unwrap().values().all(|count| *count == 1), "{counts}");
    }
}

fn nothing_in_a_tree_holds_it_up(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "mkdir d e; echo needle > d/a; mkfifo d/pipe; ln -s .. d/loop; ln -s /dev/zero d/zero; \
                      ln -s d/a link; ln -s ../d e/d; ln -s self self";
        let _ = home.exec(script).expect(0);
        let begun = Instant::now();
        let object = search(&home, &json!({ "pattern": "needle" }));
        assert!(begun.elapsed() < Duration::from_secs(20), "{object}");
        assert_eq!(found(&object), [("d/a".to_owned(), 1, "needle".to_owned())], "{engine:?}");
        // Whoever names a link means what it leads to.
        assert_eq!(places(&home, &json!({ "pattern": "needle", "path": "link" })), set(&[("link", 1)]));
        assert_eq!(places(&home, &json!({ "pattern": "needle", "path": "e/d" })), set(&[("e/d/a", 1)]));
    }
}

/// Some files of a project.
const PROJECT: &str = "mkdir -p src/deep lib node_modules/x .git .hidden venv; touch venv/pyvenv.cfg; \
    for name in top.rs src/a.rs src/deep/b.rs lib/c.rs lib/d.ts lib/e.tsx 'lib/f.min.js' lib/g.js \
    node_modules/x/i.js .git/config .hidden/h.rs venv/p.py .gitlab.yml; do echo 'a needle' > \"$name\"; done; \
    printf 'node_modules\\nvenv\\n' > .ignore";

fn only_files_of_some_names_are_searched(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let _ = home.exec(PROJECT).expect(0);
        for (glob, expected) in [
            ("*.rs", vec!["lib/c.rs", "src/a.rs", "src/deep/b.rs", "top.rs"]),
            ("src/*.rs", vec!["src/a.rs"]),
            ("src/**/*.rs", vec!["src/a.rs", "src/deep/b.rs"]),
            ("**/b.rs", vec!["src/deep/b.rs"]),
            ("*.{ts,tsx}", vec!["lib/d.ts", "lib/e.tsx"]),
            ("*.ts, *.tsx", vec!["lib/d.ts", "lib/e.tsx"]),
            ("*.js,!*.min.js", vec!["lib/g.js"]),
            ("[a-c].rs", vec!["lib/c.rs", "src/a.rs", "src/deep/b.rs"]),
            ("?.ts", vec!["lib/d.ts"]),
            ("src/", vec!["src/a.rs", "src/deep/b.rs"]),
            ("no.such", vec![]),
        ] {
            let arguments = json!({ "pattern": "needle", "file_glob": glob, "output_mode": "files_only" });
            assert_eq!(files(&home, &arguments), expected, "{engine:?} {glob}");
            let arguments = json!({ "pattern": "*", "file_glob": glob, "target": "files" });
            let mut found = files(&home, &arguments);
            found.sort();
            assert_eq!(found, expected, "{engine:?} {glob}");
        }
        // The whole is where the search begins.
        let below =
            json!({ "pattern": "needle", "path": "src", "file_glob": "deep/*", "output_mode": "files_only" });
        assert_eq!(files(&home, &below), ["src/deep/b.rs"], "{engine:?}");
        let one = json!({ "pattern": "needle", "path": "top.rs", "file_glob": "*.py" });
        let object = search(&home, &one);
        assert_eq!(
            (&object["total_count"], &object["matches"]),
            (&json!(0), &json!([])),
            "{engine:?} {object}"
        );
        assert!(object["note"].as_str().unwrap().contains("does not fit `file_glob`"), "{engine:?} {object}");
        let one = json!({ "pattern": "needle", "path": "src/a.rs", "file_glob": "*.rs" });
        assert_eq!(places(&home, &one), set(&[("src/a.rs", 1)]), "{engine:?}");
    }
}

fn what_is_protected_is_left_out_and_that_is_said(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let files = "mkdir -p .ssh sub/.aws; echo needle > .ssh/deploy_key; echo needle > .ssh/id_x; echo needle > sub/plain; \
                     echo needle > sub/.aws/credentials";
        let _ = home.exec(files).expect(0);
        for arguments in [
            json!({ "pattern": "needle", "path": ".ssh" }),
            json!({ "pattern": "*", "path": ".ssh", "target": "files" }),
            // Whether it would match is not told.
            json!({ "pattern": "nothing of the kind", "path": ".ssh" }),
            json!({ "pattern": "needle", "path": "sub/.aws", "output_mode": "files_only" }),
        ] {
            let object = search(&home, &arguments);
            assert_eq!(object["total_count"], 0, "{engine:?} {object}");
            assert!(object["error"].is_null(), "{engine:?} {object}");
            let note = object["note"].as_str().unwrap_or_default();
            assert!(note.starts_with("protected files were not searched"), "{engine:?} {object}");
        }
        let _ = home.exec("echo needle > .ssh/id_x.pub").expect(0);
        assert_eq!(
            places(&home, &json!({ "pattern": "needle", "path": ".ssh" })),
            set(&[(".ssh/id_x.pub", 1)])
        );
        let object = search(&home, &json!({ "pattern": "no such", "path": "sub/plain" }));
        assert!(object["note"].is_null(), "{engine:?} {object}");
    }
}

fn hidden_and_ignored_files_are_left_out_unless_named(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let _ = home.exec(PROJECT).expect(0);
        let object = search(&home, &json!({ "pattern": "needle", "output_mode": "files_only" }));
        assert_eq!(object["total_count"], 8, "{engine:?} {object}");
        assert!(object["note"].is_null(), "{object}");
        for (path, expected) in [
            (".hidden", ".hidden/h.rs"),
            (".gitlab.yml", ".gitlab.yml"),
            ("node_modules", "node_modules/x/i.js"),
            ("venv/p.py", "venv/p.py"),
        ] {
            let found = places(&home, &json!({ "pattern": "needle", "path": path }));
            assert_eq!(found, set(&[(expected, 1)]), "{engine:?} {path}");
        }
        let object = search(&home, &json!({ "pattern": "nowhere" }));
        assert!(object["note"].as_str().unwrap().contains("were not searched"), "{engine:?} {object}");
        let object = search(&home, &json!({ "pattern": "nowhere", "path": "src" }));
        assert!(object["note"].is_null(), "{engine:?} {object}");
    }
}

fn files_are_found_by_name_newest_first(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "mkdir -p sub; touch -d '2001-01-01' old.py; touch -d '2024-01-01' sub/new.py; \
                      touch -d '2012-01-01' test_middle.py; touch -d '2013-01-01' $'test\\nline.txt' other.txt";
        let _ = home.exec(script).expect(0);
        let of = |arguments: Value| files(&home, &arguments);
        let all = ["sub/new.py", "test_middle.py", "old.py"];
        assert_eq!(of(json!({ "pattern": "*.py", "target": "files" })), all, "{engine:?}");
        assert_eq!(of(json!({ "pattern": "test", "target": "files" })), ["test\nline.txt", "test_middle.py"]);
        assert_eq!(of(json!({ "pattern": "sub/n", "target": "files" })), ["sub/new.py"], "{engine:?}");
        assert_eq!(of(json!({ "pattern": "**/*.py", "target": "files", "path": "sub" })), ["sub/new.py"]);
        assert_eq!(of(json!({ "pattern": "", "target": "files" })).len(), 5, "{engine:?}");
        assert_eq!(of(json!({ "pattern": "-x", "target": "files" })), [""; 0], "{engine:?}");
        // Page by page.
        let first = search(&home, &json!({ "pattern": "*.py", "target": "files", "limit": 2 }));
        assert_eq!(names(&first), all[..2], "{first}");
        assert_eq!(
            (&first["total_count"], &first["truncated"], &first["next_offset"]),
            (&json!(3), &json!(true), &json!(2)),
            "{first}"
        );
        let last =
            search(&home, &json!({ "pattern": "*.py", "target": "files", "limit": "2", "offset": "2" }));
        assert_eq!(names(&last), all[2..], "{last}");
        assert!(last["truncated"] == false && last["next_offset"].is_null(), "{last}");
    }
}
