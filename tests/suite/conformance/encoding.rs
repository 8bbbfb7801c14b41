//! Commands print what they like, and nothing of it is lost or makes anything fail.

use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("encoding-bytes", "bytes that are no text pass unchanged, and are shown as such", bytes),
    case("encoding-split", "a character that comes in two pieces is one", split),
    case("encoding-edges", "a character that lies across any buffer's edge is one", edges),
    case("encoding-unfinished", "a character that never ends is shown once the output has", unfinished),
    case("encoding-log", "a character that comes in two pieces is one in a background process's output", log),
    case("encoding-commands", "a command, its variables and its directory may be in any language", commands),
    case("encoding-names", "names and values that are no text last", names),
];

fn bytes(s: &Subject) {
    let ran = s.run("printf 'na\\357ve \\200\\201 fin\\n'; echo after; exit 2").exits(2);
    assert_eq!(ran.output, b"na\xefve \x80\x81 fin\nafter\n", "{ran:?}");
    assert_eq!(ran.kept.text, "na\u{fffd}ve \u{fffd}\u{fffd} fin\nafter\n", "{ran:?}");
    let ran = s.run("printf 'a\\0b\\n\\0'; printf '\\033]0;x\\007\\r\\n'").exits(0);
    assert_eq!(ran.output, b"a\0b\n\0\x1b]0;x\x07\r\n", "{ran:?}");
    let ran = s.run("head -c 200000 /dev/urandom | tee noise; cksum < noise > sum; exit 3").exits(3);
    assert_eq!(ran.output.len(), 200_000, "{ran:?}");
    let _ = s.run(Call::new("cksum | cmp - sum && echo same").stdin(ran.output)).prints("same\n");
}

fn split(s: &Subject) {
    for (first, second, whole) in [
        ("\\342\\202", "\\254", "€"),
        ("\\342", "\\202\\254", "€"),
        ("\\360\\237\\246", "\\200", "🦀"),
        ("e", "\\314\\201", "e\u{301}"),
    ] {
        let ran = s.run(format!("printf 'x {first}'; sleep 0.15; printf '{second} y\\n'")).exits(0);
        assert_eq!(ran.kept.text, format!("x {whole} y\n"), "{ran:?}");
    }
}

fn edges(s: &Subject) {
    for count in [4094, 4095, 16_383, 65_534, 65_535, 131_071, 262_142, 262_143, 524_287] {
        let ran =
            s.run(format!("head -c {count} /dev/zero | tr '\\0' x; printf '\\342\\202\\254\\n'")).exits(0);
        let text = &ran.kept.text;
        assert!(text.ends_with("x€\n") && text.len() == count + 4, "{count}: {} bytes", text.len());
    }
    // Where head and tail are cut out of it.
    for limit in 1000..1006 {
        let ran = s.run(Call::new("for i in $(seq 3000); do printf €; done").kept_only(limit)).exits(0);
        assert!(ran.kept.omitted > 0 && !ran.kept.text.contains('\u{fffd}'), "{limit}: {ran:?}");
    }
}

fn unfinished(s: &Subject) {
    let ran = s.run("printf 'end \\342\\202'").exits(0);
    assert_eq!(
        (ran.output.as_slice(), ran.kept.text.as_str()),
        (&b"end \xe2\x82"[..], "end \u{fffd}"),
        "{ran:?}"
    );
}

fn log(s: &Subject) {
    let number = s.unique();
    let script = format!("printf 'a\\360\\237'; read -r go; printf '\\246\\200\\n'; sleep 20.{number}");
    let id = s.background(Call::new(script).stdin(""));
    s.until_printed(&id, b"a\xf0\x9f");
    let view = s.poll(&id);
    assert_eq!(view.output_preview, "a", "{view:?}");
    s.processes().write(&id, b"go\n").unwrap();
    s.until_printed(&id, b"\x80\n");
    let view = s.poll(&id);
    assert_eq!(view.output_preview, "a🦀\n", "{view:?}");
    s.processes().kill(&id).unwrap();
    let view = s.wait(&s.background("printf 'caf\\351 \\377'; exit 4"));
    assert_eq!((view.exit_code, view.output.as_str()), (Some(4), "caf\u{fffd} \u{fffd}"), "{view:?}");
}

fn commands(s: &Subject) {
    let text = "grüße 🦀 日本 \u{202e}\u{200b}ß";
    let _ = s.run(format!("printf %s '{text}'")).prints(text);
    let _ = s.run(Call::new("printf %s \"$T\"; export KEPT=\"$T\"").env("T", text)).prints(text);
    let _ = s.run("printf %s \"$KEPT\"").prints(text);
    let _ = s.run(Call::new("cat").stdin(text)).prints(text);
    let ran = s.run("mkdir -p 'dé 🦀/ünter' && cd 'dé 🦀'").prints("");
    assert!(ran.cwd.as_deref().is_some_and(|cwd| cwd.ends_with("/dé 🦀")), "{ran:?}");
    let _ = s.run(Call::new("printf '%s\\n' \"${PWD##*/}\"").within("ünter")).prints("ünter\n");
    let _ = s.run("printf '%s\\n' \"${PWD##*/}\"").prints("dé 🦀\n");
}

fn names(s: &Subject) {
    let _ = s.run("export BAD=$'\\xff\\xfe \\xc3('; mkdir $'d\\xff' && cd $'d\\xff'").prints("");
    let _ = s
        .run("printf %s \"$BAD\" | od -An -tx1; printf %s \"${PWD##*/}\" | od -An -tx1")
        .prints(" ff fe 20 c3 28\n 64 ff\n");
    let _ = s.run("touch here; ls; f() { printf '\\xe9\\n'; }; cd ..").prints("here\n");
    assert_eq!(s.run("f").exits(0).output, b"\xe9\n");
}
