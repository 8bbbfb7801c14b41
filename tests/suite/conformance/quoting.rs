//! A command is one whole script: nothing is put in front of it, behind it, or into it.

use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("quoting-endings", "a command may end in anything", endings),
    case("quoting-grammar", "a command may be anything that the shell understands", grammar),
    case("quoting-literals", "no character of a command is changed", literals),
    case("quoting-stdin", "no character of the input is changed", stdin),
    case("quoting-errors", "an error of grammar is the command's, and tells nothing of the host's", errors),
    case("quoting-long", "a command may be as long as it likes", long),
    case("quoting-nul", "a command that no shell can run is refused", nul),
    case("quoting-background", "the same holds in the background", background),
];

/// Commands whose end could swallow what follows, or be swallowed by it.
const ENDINGS: &[(&str, &str)] = &[
    ("cat <<'EOT'\nfirst\n  $HOME\nEOT", "first\n  $HOME\n"),
    ("cat > f <<X\nbody\nX", ""),
    ("od -An -c f", "   b   o   d   y  \\n\n"),
    ("echo hi # tail note", "hi\n"),
    ("echo hi \\", "hi \\\n"),
    ("echo hi \\\n", "hi\n"),
    ("cat <<-T\n\tindented\n\tT", "indented\n"),
    ("cat <<A; cat <<'B'\na\nA\nb $x\nB", "a\nb $x\n"),
    ("echo a;", "a\n"),
    ("echo a;\n\n\n  ", "a\n"),
    ("echo a &&\necho b", "a\nb\n"),
    ("echo a |\ncat", "a\n"),
    ("{ echo a; }", "a\n"),
    ("(echo a)", "a\n"),
    ("echo a & wait", "a\n"),
    ("cat <<< here", "here\n"),
    ("echo a\r\n", "a\r\n"),
    ("echo \"$(cat <<E\nin\nE\n)\"", "in\n"),
];

fn endings(s: &Subject) {
    for (command, output) in ENDINGS {
        let ran = s.run(*command);
        assert_eq!((ran.code, ran.text().as_str()), (0, *output), "{command:?}: {ran:?}");
    }
    // A here-document without its end is bash's to complain of.
    let ran = s.run("cat <<E\nabc").exits(0);
    assert!(ran.text().ends_with("abc\n") || ran.text().ends_with("abc"), "{ran:?}");
    assert!(!ran.text().contains("hostel"), "{ran:?}");
}

fn grammar(s: &Subject) {
    for (command, output) in [
        (
            "if true; then echo y; fi; for i in 1 2; do echo $i; done; case x in x) echo c;; esac",
            "y\n1\n2\nc\n",
        ),
        ("f() { echo \"$1|$#\"; }; f 'a  b' c", "a  b|2\n"),
        ("echo \"$# [$*] $0\"; set -- a 'b c'; shift; echo \"$1\"", "0 [] bash\nb c\n"),
        (
            "[[ ab == a* ]] && echo glob; ! false && echo not; echo $((1 << 4)) {a,b}{1,2}",
            "glob\nnot\n16 a1 a2 b1 b2\n",
        ),
        ("arr=(1 '2 3'); printf '[%s]' \"${arr[@]}\"; declare -A m=([k]=v); echo ${m[k]}", "[1][2 3]v\n"),
        (
            "mapfile -t lines < <(printf 'a\\nb\\n'); echo ${#lines[@]}; exec 9<<< x; read -r l <&9; echo $l",
            "2\nx\n",
        ),
        ("alias now=echo\nnow expanded", "expanded\n"),
        ("echo 'line one\nline two'; echo $LINENO", "line one\nline two\n2\n"),
        ("eval 'echo a' ; bash -c 'echo \"$1\"' x 'b  c' ; sh -c 'echo $0' d", "a\nb  c\nd\n"),
        (
            "time -p true 2> /dev/null; coproc cat; echo hi >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l",
            "hi\n",
        ),
    ] {
        let ran = s.run(command);
        // What bash says of `time` is not asked for.
        let text = ran.text();
        assert!(ran.code == 0 && text.ends_with(output), "{command:?}: {ran:?}");
    }
}

/// Texts in which something could be escaped, unescaped or expanded on the way.
const LITERALS: &[&str] = &[
    "a != b",
    "!x",
    "wow!",
    "!!",
    "tab\there",
    "\"$HOME\"",
    "`date`",
    "$(date)",
    "a\\nb",
    "\\",
    "\\\\",
    "%d %s %%",
    "*?[a-z]",
    "~",
    "{a,b}",
    "#x",
    "&;|<>()",
    " leading and trailing ",
    "two\nlines",
    "\r",
    "\u{1b}[31m",
    "--",
    "-n",
    "^C",
    "ü\u{301}🦀",
    "\u{feff}x",
];

fn literals(s: &Subject) {
    for text in LITERALS {
        let script = format!("printf %s '{text}'; cat <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT");
        let _ = s.run(script).prints(&format!("{text}{text}\n"));
    }
    let script =
        "printf '%s|' \"a != b\" '!x' \"wow!\" $'tab\\there' 'it'\\''s' \"\\$HOME\" '`date`' 'a\\nb' \"%d\"";
    let _ = s.run(script).prints("a != b|!x|wow!|tab\there|it's|$HOME|`date`|a\\nb|%d|");
}

fn stdin(s: &Subject) {
    for text in LITERALS.iter().copied().chain(["!x \\! $HOME `date` \\n %s ' \"\n", "'\"'\"'", "\0\u{1}"]) {
        let variable = text.replace('\0', "");
        let call = Call::new("cat; printf %s \"$V\"").stdin(text).env("V", &variable);
        let _ = s.run(call).prints(&format!("{text}{variable}"));
    }
}

fn errors(s: &Subject) {
    for command in [
        "echo 'unbalanced",
        "(",
        "if true; then",
        "echo a; fi",
        "echo $(",
        "echo ${",
        "}",
        "case x in",
        "cat <(",
    ] {
        let ran = s.run(command).prompt();
        assert!(ran.code != 0 && ran.ended == "exited", "{command}: {ran:?}");
        assert!(!ran.text().contains("hostel"), "{command}: {ran:?}");
        let _ = s.run("echo next").prints("next\n");
    }
    let ran = s.run("echo one\n)\necho never");
    assert!(ran.code != 0 && ran.text().starts_with("one\n") && !ran.text().contains("never\n"), "{ran:?}");
}

fn long(s: &Subject) {
    // No program could be given either as one argument.
    let text = "x".repeat(300_000);
    let ran = s.run(format!("printf %s {text}")).exits(0);
    assert!(ran.text() == text, "{ran:?}");
    let lines = "echo l\n".repeat(20_000);
    let ran = s.run(format!("{lines}exit 3")).exits(3);
    assert_eq!(ran.output.len(), 40_000, "{ran:?}");
}

fn nul(s: &Subject) {
    let error = s.refuses("echo a\0; touch pwned");
    assert!(error.message().contains("NUL"), "{error}");
    let error = s.refuses(Call::new("touch pwned").env("A", "x\0y"));
    assert!(error.message().contains("NUL"), "{error}");
    let _ = s.run("ls -A").prints("");
}

fn background(s: &Subject) {
    for (command, output) in ENDINGS.iter().filter(|(command, _)| !command.contains(" f")).step_by(2) {
        let id = s.background(*command);
        let view = s.wait(&id);
        let log = s.logs(&id);
        assert_eq!(
            (view.exit_code, String::from_utf8_lossy(&log).as_ref()),
            (Some(0), *output),
            "{command:?}"
        );
    }
}
