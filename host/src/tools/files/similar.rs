//! Names that could have been meant where there is no file.

use super::protected::hidden;

/// How many are told.
const MOST: usize = 5;

/// How alike a name must be, from 0 to 1.
const ALIKE: f64 = 0.6;

/// Returns the paths that are most like one that is missing, the likeliest first. `wanted` is what is missing in `folder`, in which
/// `names` are; `path` is how the caller named it all.
pub(super) fn similar(path: &str, folder: &str, wanted: &str, names: &[String]) -> Vec<String> {
    let first = wanted.split('/').next().unwrap_or(wanted);
    // What stands before the name stays as the caller has it.
    let before = match path.strip_suffix(wanted) {
        Some(before) if before.is_empty() || before.ends_with('/') => before.to_owned(),
        _ => format!("{}/", folder.trim_end_matches('/')),
    };
    let is_told = |name: &&String| !hidden(&format!("{folder}/{name}"), "/nonexistent");
    let mut rated: Vec<(f64, &String)> =
        names.iter().filter(is_told).map(|name| (alike(first, name), name)).collect();
    rated.retain(|(rating, _)| *rating >= ALIKE);
    rated.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    rated.into_iter().take(MOST).map(|(_, name)| format!("{before}{name}")).collect()
}

/// Returns how alike two names are. One that only differs in case, or what it ends in, is more alike than its letters say.
fn alike(one: &str, other: &str) -> f64 {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    if one == other {
        return 1.0;
    }
    let of_letters = strsim::normalized_damerau_levenshtein(&one, &other);
    let stem = |name| str::rsplit_once(name, '.').map_or(name, |(stem, _)| stem);
    let (one, other) = (stem(&one), stem(&other));
    if !one.is_empty() && one == other {
        return of_letters.max(0.9);
    }
    let is_part = one.len() >= 3 && other.len() >= 3 && (other.contains(one) || one.contains(other));
    if is_part { of_letters.max(0.7) } else { of_letters }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, wanted: &str, names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        similar(path, "/w/src", wanted, &names)
    }

    #[test]
    fn the_likeliest_comes_first_as_the_caller_can_use_it() {
        let names = ["main.rs", "mian.py", "Main.PY", "main_test.py", "README.md", "x"];
        let expected = ["src/Main.PY", "src/main.rs", "src/mian.py", "src/main_test.py"];
        assert_eq!(told("src/main.py", "main.py", &names), expected);
        assert_eq!(told("main.py", "main.py", &["main.rs"]), ["main.rs"]);
        assert_eq!(told("../w/src/../src/mani.py", "main.py", &["main.py"]), ["/w/src/main.py"]);
        assert_eq!(told("src/tolls/files.rs", "tolls/files.rs", &["tools", "lib.rs"]), ["src/tools"]);
        assert!(told("src/main.py", "main.py", &["zebra", ""]).is_empty());
    }

    #[test]
    fn no_more_than_five_and_none_that_are_protected() {
        let many: Vec<String> = (0..9).map(|number| format!("file{number}.txt")).collect();
        assert_eq!(similar("file.txt", "/w", "file.txt", &many).len(), 5);
        assert_eq!(told("src/.envv", ".envv", &[".env", ".envrc"]), ["src/.envrc"]);
    }
}
