//! Shows what was changed, as a unified diff.

use std::time::Duration;

use similar::TextDiff;

use super::files::Text;

/// No more than this many characters are shown of all diffs of a call.
const MOST: usize = 40_000;

/// After this long a diff need no longer be the shortest.
const LIMIT: Duration = Duration::from_secs(1);

/// A file before or after.
pub(super) struct Side<'a> {
    pub(super) path: &'a str,
    pub(super) bytes: &'a [u8],
}

/// Returns the difference between two states of a file, either of which may not be there.
pub(super) fn unified(old: Option<&Side>, new: Option<&Side>) -> String {
    let name = |side: Option<&Side>, letter| {
        side.map_or_else(|| "/dev/null".to_owned(), |side| format!("{letter}/{}", header(side.path)))
    };
    let (old_name, new_name) = (name(old, 'a'), name(new, 'b'));
    let mut diff = String::new();
    if let (Some(old), Some(new)) = (old, new)
        && old.path != new.path
    {
        diff = format!("rename from {}\nrename to {}\n", header(old.path), header(new.path));
    }
    let bytes = |side: Option<&Side<'_>>| side.map_or_else(Vec::new, |side| side.bytes.to_vec());
    let (old, new) = (bytes(old), bytes(new));
    if old == new {
        return diff;
    }
    let (Some(old), Some(new)) = (Text::decode(&old), Text::decode(&new)) else {
        return diff + &format!("Binary files {old_name} and {new_name} differ\n");
    };
    let (old, new) = (old.shown(&old.text), new.shown(&new.text));
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let lines = TextDiff::configure().timeout(LIMIT).newline_terminated(true).diff_slices(&old, &new);
    diff + &lines.unified_diff().header(&old_name, &new_name).to_string()
}

/// Returns a path as it stands in a header, which is one line.
fn header(path: &str) -> String {
    let path = path.trim_start_matches('/');
    if path.contains(char::is_control) { path.escape_debug().to_string() } else { path.to_owned() }
}

/// Returns the beginning of a diff, if it is too long to be shown.
pub(super) fn bounded(diff: String) -> String {
    let Some((cut, _)) = diff.char_indices().nth(MOST) else { return diff };
    let end = diff[..cut].rfind('\n').map_or(cut, |end| end + 1);
    let more = diff[end..].lines().count();
    format!("{}[{more} more lines of the diff are not shown]\n", &diff[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: Option<(&str, &[u8])>, new: Option<(&str, &[u8])>) -> String {
        let side = |(path, bytes)| Side { path, bytes };
        unified(old.map(side).as_ref(), new.map(side).as_ref())
    }

    #[test]
    fn files_are_named_as_git_does() {
        assert_eq!(
            diff(Some(("x/m.py", b"a\r\nb\r\n")), Some(("x/m.py", b"a\r\nc\r\n"))),
            "--- a/x/m.py\n+++ b/x/m.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        );
        assert_eq!(
            diff(None, Some(("/new", b"a"))),
            "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"
        );
        assert_eq!(diff(Some(("x", b"a\n")), Some(("y", b"a\n"))), "rename from x\nrename to y\n");
        assert_eq!(diff(Some(("x", b"\0")), None), "Binary files a/x and /dev/null differ\n");
        assert_eq!(
            diff(Some(("x", b"a\rb\xff\n")), None),
            "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\rb\u{fffd}\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let long = "+line\n".repeat(10_000);
        let cut = bounded(long.clone());
        assert_eq!(cut.lines().next_back().unwrap(), "[3334 more lines of the diff are not shown]");
        assert_eq!(bounded("short".to_owned()), "short");
    }
}
