//! Values of variables are data, on the way out and on the way back.

use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("values-last", "every value lasts as it is, and none of it is run", last),
    case("values-copied", "a value that was made of another one lasts as well", copied),
    case("values-huge", "a value that no program can be given does not end the session", huge),
];

/// Values that would be something else to whoever reads them as code, or line by line.
const VALUES: &[&str] = &[
    "",
    " ",
    "first\ntouch pwned\n$(touch pwned)",
    "\n\n\n",
    "ends in a newline\n",
    "a'; touch pwned; '\n`touch pwned`",
    "a\"; touch pwned; \"$(touch pwned)",
    "() { :; }; touch pwned",
    "$'\\x41' \\ \\\\ \\n !x !! %s *",
    "declare -x OTHER=\"1\"",
    "\nOTHER=1\nexport OTHER=1\nend\n",
    "tab\there\rand\u{1b}[2J\u{7f}\u{1}",
    "trailing backslash \\",
    "ünï € 🦀",
    "'",
    "\"",
    "=",
    "a=b=c",
    "#",
    "~",
];

fn last(s: &Subject) {
    for (number, value) in VALUES.iter().enumerate() {
        let _ = s.run(Call::new(format!("export V{number}=\"$GIVEN\"")).env("GIVEN", value)).prints("");
    }
    for (number, value) in VALUES.iter().enumerate() {
        let script = format!(
            "printf %s \"$V{number}\"; bash -c 'printf %s \"$V{number}\"'; [ \"$V{number}\" = \"$GIVEN\" ] && echo same"
        );
        let _ = s.run(Call::new(script).env("GIVEN", value)).prints(&format!("{value}{value}same\n"));
    }
    let _ = s
        .again()
        .run("printf %s \"$V2$V7\"; echo \"${OTHER-none}\"; ls -A")
        .prints(&format!("{}{}none\n", VALUES[2], VALUES[7]));
}

fn copied(s: &Subject) {
    let _ = s.run("export NOTE=$'x\\ntouch pwned\\n$(touch pwned2)\\\\\\''").prints("");
    let _ = s
        .run("export ROOM=\"$NOTE\"'\"\\'; alias now=\"echo '$NOTE'\"; f() { printf %s \"$NOTE\"; }; ls -A")
        .prints("");
    let wanted = "x\ntouch pwned\n$(touch pwned2)\\'";
    let _ = s.run("printf %s \"$ROOM\"; f; ls -A").prints(&format!("{wanted}\"\\{wanted}"));
}

fn huge(s: &Subject) {
    let _ = s.run("export BIG=$(head -c 200000 /dev/zero | tr '\\0' x) SMALL=s").prints("");
    let ran = s.run("echo $SMALL").prints("s\n");
    assert!(ran.warnings.iter().any(|line| line.contains("BIG")), "{ran:?}");
    let ran = s.run("echo $SMALL; ls > /dev/null && echo fine").prints("s\nfine\n");
    assert!(ran.warnings.is_empty(), "it is told once: {ran:?}");
    let script =
        "for i in $(seq 30); do export M$i=$(head -c 100000 /dev/zero | tr '\\0' m); done 2> /dev/null; true";
    let _ = s.run(script);
    let _ = s.run("echo $SMALL; ls > /dev/null && echo fine").prints("s\nfine\n");
}
