//! O-17, O-18 and O-27: the text of a command reaches the shell as it is, and data is not taken for commands.

use hostel_tests::by_both_roads;
use hostel_tests::tools::Road;
use serde_json::json;

use super::case::{Case, is};

by_both_roads! { o_17_the_last_line_of_a_command o_18_nothing_is_rewritten o_27_harmless_text_that_looks_dangerous }

fn o_17_the_last_line_of_a_command(road: Road) {
    let case = Case::by(road);
    case.x("cat <<'END'\nalpha\n  $HOME\nEND", 0, "alpha\n  $HOME");
    case.x("cat > f.txt <<X\nbody\nX", 0, "");
    assert_eq!(case.bytes("f.txt"), b"body\n");
    case.x("od -c f.txt | head -n 1", 0, "0000000   b   o   d   y  \\n");
    case.x("echo hi # tail note", 0, "hi");
    case.x("echo hi \\", 0, "hi \\");
    case.x("cat <<-T\n\tindented\n\tT", 0, "indented");
    case.ends(&case.bg("cat <<'END'\nbg\nEND", &json!({})), 0, "bg\n");
    for (command, output) in [
        ("cat > f.txt <<X\nbody\nX", ""),
        ("echo hi # tail note", "hi\n"),
        ("echo hi \\", "hi \\\n"),
        ("cat <<-T\n\tindented\n\tT", "indented\n"),
    ] {
        case.ends(&case.bg(command, &json!({})), 0, output);
    }
}

fn o_18_nothing_is_rewritten(road: Road) {
    let case = Case::by(road);
    let script = "printf '%s|' \"a != b\" '!x' \"wow!\" $'tab\\there' 'it'\\''s' \"\\$HOME\" '`date`' 'a\\nb' \"%d\"\n";
    let wanted = "a != b|!x|wow!|tab\there|it's|$HOME|`date`|a\\nb|%d|";
    case.x(script, 0, wanted);
    case.ends(&case.bg(script, &json!({})), 0, wanted);
}

fn o_27_harmless_text_that_looks_dangerous(road: Road) {
    let case = Case::by(road);
    case.x("mkdir -p farm emptydir && touch farm/barn", 0, "");
    let commit = "git init -q . && git -c user.name=n -c user.email=n@example.org \
                  commit --allow-empty -q -m \"explain why rm -rf / is a bad idea\"";
    case.x(commit, 0, "");
    let line = "never run: rm -rf / or git clean -fdx or mkfs.ext4 on a server";
    case.x(&format!("cat > notes.md <<'EOF'\n{line}\nEOF"), 0, "");
    case.x("grep -n 'rm -rf' notes.md", 0, &format!("1:{line}"));
    case.x("printf '%s\\n' \"shutdown -h now\"", 0, "shutdown -h now");
    case.x("python3 - <<'EOF'\nprint(0o755 & 0o777)\nEOF", 0, "493");
    case.x("echo \"a & b\" ; rmdir emptydir 2>/dev/null ; ls farm", 0, "a & b\nbarn");
    is(&case.run("ls", &json!({})), 0, "farm\nnotes.md");
}
