//! O-11 and O-12: bytes that are no text, and text that comes in pieces.

use hostel_tests::by_both_roads;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::Case;

by_both_roads! { o_11_bytes_that_are_no_text o_12_a_character_in_two_pieces }

fn o_11_bytes_that_are_no_text(road: Road) {
    let case = Case::by(road);
    let wanted = "caf\u{fffd} \u{fffd}\u{fffd} end\ntail";
    let script = "printf 'caf\\351 \\377\\376 end\\n'; echo tail; exit 2";
    case.x(script, 2, wanted);
    case.ends(&case.bg(script, &json!({})), 2, &format!("{wanted}\n"));
}

fn o_12_a_character_in_two_pieces(road: Road) {
    let case = Case::by(road);
    case.x("printf 'price \\342\\202'; sleep 0.5; printf '\\254 5\\n'", 0, "price € 5");
    let script = "printf '\\360\\237'; read -r go; printf '\\230\\200\\n'";
    let a = case.bg(script, &json!({ "stdin": true }));
    case.hear(&a, b"\xf0\x9f");
    assert_eq!(case.act("poll", &a)["output_preview"], "");
    case.stdin(&a, "\n");
    case.ends(&a, 0, "\u{1f600}\n");
    // On a terminal nothing is typed, whose echo would stand in between.
    let a = case.bg("printf '\\360\\237'; sleep 0.5; printf '\\230\\200\\n'", &json!({ "pty": true }));
    case.ends(&a, 0, "\u{1f600}\n");
    let value = case.run("head -c 65535 /dev/zero | tr '\\0' x; printf '\\342\\202\\254\\n'", &json!({}));
    let output = value["output"].as_str().unwrap();
    assert!(output.ends_with("x€\n") && !output.contains('\u{fffd}'), "{value}");
}
