//! What files hold, what patterns mean, and how much of it stands on a page.

use std::collections::BTreeMap;

use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{by_both_roads, finish};
use serde_json::{Value, json};

use super::calls::{Busybox, ENGINES, found, lines, places, search, set};

by_both_roads! {
    files_hold_more_than_short_lines_of_text patterns_mean_the_same_to_all pages_fit_together
    lines_stand_with_their_neighbours five_matches_and_more_stand_under_their_file
    a_result_is_never_too_long
}

fn files_hold_more_than_short_lines_of_text(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "printf 'a\\0needle\\nneedle\\n' > binary; printf 'one needle\\r\\ntwo\\r\\n' > crlf; \
                      printf '\\357\\273\\277needle first\\n' > bom; printf 'caf\\351 needle\\n' > latin; \
                      printf 'no newline needle' > open; : > empty; \
                      { printf 'needle '; head -c 3000000 /dev/zero | tr '\\0' x; printf '\\nneedle after\\n'; } > long";
        let _ = home.exec(script).expect(0);
        let object = search(&home, &json!({ "pattern": "needle" }));
        let mut all: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
        for (path, line, content) in found(&object) {
            all.entry(path).or_default().push((line, content));
        }
        let one = |path: &str| all[path].as_slice();
        assert_eq!(one("binary"), [(0, "binary file matches".to_owned())], "{engine:?}");
        assert_eq!(object["matches_by_file"]["binary"][0]["binary"], true, "{object}");
        assert_eq!(one("crlf"), [(1, "one needle".to_owned())], "{engine:?}");
        assert_eq!(one("bom"), [(1, "needle first".to_owned())], "{engine:?}");
        assert_eq!(one("latin"), [(1, "caf\u{fffd} needle".to_owned())], "{engine:?}");
        assert_eq!(one("open"), [(1, "no newline needle".to_owned())], "{engine:?}");
        assert_eq!(one("long")[0].1.chars().count(), 500, "{engine:?}");
        assert_eq!(one("long")[1], (2, "needle after".to_owned()), "{engine:?}");
        // The end of a line stands before its carriage return too.
        for (pattern, path) in [("needle$", "crlf"), (r"^two$", "crlf"), (r"one .*e$", "crlf")] {
            let found = places(&home, &json!({ "pattern": pattern, "path": path }));
            assert_eq!(found.len(), 1, "{engine:?} {pattern}");
        }
    }
}

fn patterns_mean_the_same_to_all(road: Road) {
    let text = "foo bar 123\nfoobar\nFOO\nv1.2.3\ttab\na_b c-d\n$price {x} (y)\nC:\\\\dir\nend]\n";
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let command = home.command("hostel", &["exec", "--stdin", "--", "cat > text"]);
        let _ = finish(command, text.as_bytes()).expect(0);
        for (pattern, expected) in [
            (r"\d{3}", vec![1]),
            (r"\bfoo\b", vec![1]),
            (r"\<foo\>", vec![1]),
            (r"foo\Bbar", vec![2]),
            (r"(?i)^foo$", vec![3]),
            (r"v(\d+\.)+\d", vec![4]),
            (r"\ttab$", vec![4]),
            (r"^\w+\s\w-\w$", vec![5]),
            (r"[\w]+_[^\s]", vec![5]),
            (r"\$price \{x\} \(y\)", vec![6]),
            (r"\$price [{]x[}]", vec![6]),
            (r"C:\\\\dir", vec![7]),
            (r"[^\]]\]", vec![8]),
            (r"(?:foo|end)[\]b]", vec![2, 8]),
            (r"(?P<word>foo)(?: )", vec![1]),
            (r"fo+?b", vec![2]),
            ("foo|FOO", vec![1, 2, 3]),
            (r"\x66oobar", vec![2]),
            (r"[a-c_]{3}", vec![5]),
        ] {
            let found = places(&home, &json!({ "pattern": pattern }));
            let expected: Vec<_> = expected.into_iter().map(|line| ("text", line)).collect();
            assert_eq!(found, set(&expected), "{engine:?} {pattern}");
        }
        // What is too much for one is done by another, or said.
        let object = search(&home, &json!({ "pattern": "foo(?=bar)" }));
        match object["error"].as_str() {
            None => assert_eq!(found(&object).len(), 1, "{object}"),
            Some(error) => assert!(error.contains("(?=") || error.contains("look-around"), "{error}"),
        }
        if engine == Busybox {
            assert!(object["error"].as_str().unwrap().contains("`pattern` holds `(?=`"), "{object}");
        }
    }
}

fn pages_fit_together(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "mkdir d; for n in 1 2 3 4 5 6 7; do seq $n | while read i; do echo \"needle $n $i\"; echo hay; done \
                      > d/f$n; done; echo needle > a; echo needle > z";
        let _ = home.exec(script).expect(0);
        let whole = lines(&home, &json!({ "pattern": "needle", "limit": 1000 }));
        assert_eq!(whole.len(), 30, "{engine:?}");
        let (mut seen, mut offset) = (Vec::new(), json!(0));
        while !offset.is_null() {
            let page =
                search(&home, &json!({ "pattern": "needle", "limit": 7, "offset": offset, "context": 1 }));
            assert_eq!(page["total_count"], 30, "{page}");
            assert_eq!(page["truncated"], !page["next_offset"].is_null(), "{page}");
            assert!(found(&page).len() <= 7, "{page}");
            seen.extend(found(&page));
            assert!(
                page["next_offset"].is_null() || page["next_offset"].as_u64() > offset.as_u64(),
                "{page}"
            );
            offset = page["next_offset"].clone();
        }
        assert_eq!(seen, whole, "{engine:?}");
        let behind = search(&home, &json!({ "pattern": "needle", "offset": 30 }));
        assert_eq!(
            (&behind["matches"], &behind["truncated"], &behind["note"]),
            (&json!([]), &json!(false), &json!("`offset` is behind the last result")),
            "{behind}"
        );
        let counts =
            search(&home, &json!({ "pattern": "needle", "output_mode": "count", "limit": 3, "path": "d" }));
        assert_eq!(counts["counts"], json!({ "d/f1": 1, "d/f2": 2, "d/f3": 3 }), "{counts}");
        assert_eq!((&counts["total_count"], &counts["next_offset"]), (&json!(28), &json!(3)), "{counts}");
    }
}

fn lines_stand_with_their_neighbours(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let _ = home.exec("seq 1 30 > n; printf '1\\n' > 'dash-7-x'").expect(0);
        let object = search(&home, &json!({ "pattern": "^(3|5|20)$", "context": 2 }));
        let shown = |object: &Value| -> Vec<(u64, bool)> {
            let rows = object["matches"].as_array().unwrap().iter();
            rows.map(|row| (row["line"].as_u64().unwrap(), row["context"] == true)).collect()
        };
        let around = |first: u64, last: u64, matches: &[u64]| -> Vec<(u64, bool)> {
            (first..=last).map(|line| (line, !matches.contains(&line))).collect()
        };
        let expected = [around(1, 7, &[3, 5]), around(18, 22, &[20])].concat();
        assert_eq!(shown(&object), expected, "{engine:?}");
        assert_eq!(object["total_count"], 3, "{object}");
        // On the last page too, where a neighbour is a match of the page before.
        let object =
            search(&home, &json!({ "pattern": "^(3|5|20)$", "context": 2, "offset": 1, "limit": 1 }));
        assert_eq!(shown(&object), around(3, 7, &[5]), "{engine:?}");
    }
}

fn five_matches_and_more_stand_under_their_file(road: Road) {
    let home = TidyHome::new().by(road);
    let _ = home.exec("mkdir t && cd t && seq 1 4 > a && echo 5 > b").expect(0);
    let object = search(&home, &json!({ "pattern": "[1-4]" }));
    assert_eq!(object["matches"][3], json!({ "path": "a", "line": 4, "content": "4" }), "{object}");
    assert!(object["matches_by_file"].is_null());
    let object = search(&home, &json!({ "pattern": "[1-5]" }));
    assert_eq!(object["matches_by_file"]["a"][1], json!({ "line": 2, "content": "2" }), "{object}");
    assert_eq!(object["matches_by_file"]["b"], json!([{ "line": 1, "content": "5" }]), "{object}");
    assert!(object["matches"].is_null());
}

fn a_result_is_never_too_long(road: Road) {
    for engine in ENGINES {
        let Some(home) = engine.home(road) else { continue };
        let script = "line=$(head -c 480 /dev/zero | tr '\\0' x); seq 1 1500 | while read n; do echo \"$n $line\"; done > long";
        let _ = home.exec(script).expect(0);
        let object = search(&home, &json!({ "pattern": "x", "limit": 1000 }));
        assert!(object.to_string().len() < 150_000);
        assert_eq!(
            (&object["truncated"], &object["limit_reason"], &object["total_count"]),
            (&json!(true), &json!("result_size"), &json!(1500)),
            "{engine:?}"
        );
        let next = object["next_offset"].as_u64().unwrap();
        assert_eq!(found(&object).len() as u64, next, "{engine:?}");
        let object = search(&home, &json!({ "pattern": "x", "limit": 1, "offset": next }));
        assert!(found(&object)[0].2.starts_with(&format!("{} x", next + 1)), "{engine:?} {object}");
    }
}
