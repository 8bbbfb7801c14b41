//! O-11, O-12, O-17 and O-18: bytes that are no text, text that comes in pieces, and the text of a command.

use std::time::Duration;

use hostel_tests::call::Call;
use hostel_tests::kernel::eventually;
use hostel_tests::provider::Subject;

use super::super::case::{Case, case};

pub(in super::super) const ENCODING: &[Case] = &[
    case(
        "o-11",
        "bytes that are no text are shown as such, and nothing behind them is missing",
        o_11_bytes_that_are_no_text,
    ),
    case("o-12", "a character in two pieces is one", o_12_a_character_in_two_pieces),
];

pub(in super::super) const QUOTING: &[Case] = &[
    case("o-17", "the last line of a command is its last line", o_17_the_last_line_of_a_command),
    case("o-18", "nothing is escaped or unescaped on the way", o_18_nothing_is_rewritten),
];

fn o_11_bytes_that_are_no_text(s: &Subject) {
    let script = "printf 'caf\\351 \\377\\376 end\\n'; echo tail; exit 2";
    let ran = s.run(script).exits(2);
    assert_eq!(ran.kept.text, "caf\u{fffd} \u{fffd}\u{fffd} end\ntail\n", "{ran:?}");
    let view = s.wait(&s.background(script));
    assert_eq!(view.output, "caf\u{fffd} \u{fffd}\u{fffd} end\ntail\n", "{view:?}");
}

fn o_12_a_character_in_two_pieces(s: &Subject) {
    let ran = s.run("printf 'price \\342\\202'; sleep 0.5; printf '\\254 5\\n'").exits(0);
    assert_eq!(ran.kept.text, "price € 5\n", "{ran:?}");
    let a = s.background(Call::new("printf '\\360\\237'; read -r go; printf '\\230\\200\\n'").stdin(""));
    assert!(eventually(Duration::from_secs(10), || s.logs(&a) == b"\xf0\x9f"), "{:?}", s.logs(&a));
    assert_eq!(s.poll(&a).output_preview, "");
    s.processes().write(&a, b"\n").unwrap();
    let view = s.wait(&a);
    assert_eq!((view.exit_code, view.output.as_str()), (Some(0), "\u{1f600}\n"), "{view:?}");
    let ran = s.run("head -c 65535 /dev/zero | tr '\\0' x; printf '\\342\\202\\254\\n'").exits(0);
    assert!(ran.kept.text.ends_with("x€\n") && !ran.kept.text.contains('\u{fffd}'), "{ran:?}");
}

fn o_17_the_last_line_of_a_command(s: &Subject) {
    for (command, output) in [
        ("cat <<'END'\nalpha\n  $HOME\nEND", "alpha\n  $HOME\n"),
        ("cat > f.txt <<X\nbody\nX", ""),
        ("od -c f.txt | head -n 1", "0000000   b   o   d   y  \\n\n"),
        ("echo hi # tail note", "hi\n"),
        ("echo hi \\", "hi \\\n"),
        ("cat <<-T\n\tindented\n\tT", "indented\n"),
    ] {
        let _ = s.run(command).prints(output);
    }
    let view = s.wait(&s.background("cat <<'END'\nbg\nEND"));
    assert_eq!((view.exit_code, view.output.as_str()), (Some(0), "bg\n"), "{view:?}");
}

fn o_18_nothing_is_rewritten(s: &Subject) {
    let script = "printf '%s|' \"a != b\" '!x' \"wow!\" $'tab\\there' 'it'\\''s' \"\\$HOME\" '`date`' 'a\\nb' \"%d\"\n";
    let _ = s.run(script).prints("a != b|!x|wow!|tab\there|it's|$HOME|`date`|a\\nb|%d|");
    let text = "!x \\! $HOME `date` \\n %s ' \"\n";
    let _ = s.run(Call::new("cat").stdin(text)).prints(text);
}
