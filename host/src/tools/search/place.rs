//! The folder that is searched, as the sandbox knows it.

use super::names::shown;
use super::records::{answer, field, text};
use crate::tools::files::{hidden_beside, own_home};
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// Where a search takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The one file that is searched, by its own name. None for a folder.
    pub(super) file: bool,
    /// The folder, absolute and without links.
    pub(super) base: Vec<u8>,
    /// The file without links.
    real: Vec<u8>,
    /// The home, as it is called and without links.
    homes: [Vec<u8>; 2],
    /// What stands before the names in results, with its slash; for a file, how it is shown.
    prefix: Vec<u8>,
}

/// Hostel's own home, as it is called and without links, which a sandbox may share.
pub(super) struct Own([String; 2]);

impl Own {
    /// Knows the one that `session` has.
    pub(super) fn of(session: &Session) -> Self {
        Self(own_home(session))
    }
}

impl Place {
    /// Reads what the program printed first. `path` is what the caller wrote.
    ///
    /// # Errors
    ///
    /// Fails if nothing can be searched there.
    pub(super) fn read(path: &str, printed: &mut &[u8]) -> Result<Self, Failure> {
        let whole = *printed;
        let begun = text(printed);
        if begun.as_deref() == Some("no") {
            return Err(refused(path, printed));
        }
        let place = (begun.as_deref() == Some("ok")).then(|| Self::fields(path, printed)).flatten();
        place.ok_or_else(|| not_begun(whole))
    }

    fn fields(path: &str, printed: &mut &[u8]) -> Option<Self> {
        let file = field(printed)? == b"file";
        let base = answer(printed)?.to_vec();
        let real = answer(printed)?.to_vec();
        let home = field(printed)?.to_vec();
        let real_home = answer(printed)?.to_vec();
        let prefix = prefix(path, file, &home);
        Some(Self { file, base, real, homes: [home, real_home], prefix })
    }

    /// Returns how a file of the folder is shown: so that the caller can use it where it stands.
    pub(super) fn shown(&self, name: &[u8]) -> String {
        if self.file { shown(&self.prefix) } else { shown(&[&self.prefix, name].concat()) }
    }

    /// Returns whether nothing is told of a file of the folder.
    pub(super) fn is_hidden(&self, name: &[u8], own: &Own) -> bool {
        let named =
            if self.base == b"/" { [b"/", name].concat() } else { [&self.base, &b"/"[..], name].concat() };
        self.is_protected(&named, own) || self.file && self.is_protected(&self.real, own)
    }

    /// Returns whether nothing is told of the folder or the file itself.
    pub(super) fn is_hidden_itself(&self, own: &Own) -> bool {
        self.is_protected(if self.file { &self.real } else { &self.base }, own)
    }

    fn is_protected(&self, path: &[u8], own: &Own) -> bool {
        let path = String::from_utf8_lossy(path);
        let known = self.homes.iter().filter(|home| home.starts_with(b"/"));
        let mut homes: Vec<_> = known.map(|home| String::from_utf8_lossy(home)).collect();
        if homes.is_empty() {
            homes.push("/".into());
        }
        homes.dedup();
        homes.iter().any(|home| own.0.iter().any(|own| hidden_beside(&path, home, own)))
    }
}

/// Returns what stands before names: the caller's path without what means nothing.
fn prefix(path: &str, file: bool, home: &[u8]) -> Vec<u8> {
    let mut prefix = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => [home, rest.as_bytes()].concat(),
        _ => path.as_bytes().to_vec(),
    };
    let absolute = prefix.first() == Some(&b'/');
    while prefix.starts_with(b"./") {
        let slashes = prefix[1..].iter().take_while(|byte| **byte == b'/').count();
        prefix.drain(..=slashes);
    }
    if file {
        return prefix;
    }
    while prefix.last() == Some(&b'/') || prefix.ends_with(b"/.") {
        prefix.pop();
    }
    match prefix.as_slice() {
        b"" if !absolute => prefix,
        b"." => Vec::new(),
        _ => {
            prefix.push(b'/');
            prefix
        }
    }
}

/// Says why nothing can be searched, as the program has printed it behind a `no`.
pub(super) fn refused(path: &str, printed: &mut &[u8]) -> Failure {
    let reason = text(printed).unwrap_or_default();
    let said = text(printed).unwrap_or_default();
    let path = path.escape_debug();
    match reason.as_ref() {
        "missing" => {
            let why = last_part(&said).filter(|why| *why != "No such file or directory");
            Failure::new(why.map_or_else(
                || format!("`{path}` does not exist"),
                |why| format!("`{path}` cannot be searched: {why}"),
            ))
            .with_hint("a relative `path` starts where the session stands")
        }
        "dangling" => Failure::new(format!("`{path}` is a link to what does not exist")),
        "special" => Failure::new(format!("`{path}` is neither a folder nor a plain file"))
            .with_hint("search the folder in which it lies"),
        "unreadable" => {
            let why = last_part(&said).unwrap_or("permission denied");
            Failure::new(format!("`{path}` cannot be searched: {why}"))
        }
        "program" => Failure::new(format!("`{said}` is missing in the environment"))
            .with_hint("install ripgrep there, or grep, findutils and coreutils"),
        "translation" => Failure::new(format!(
            "`pattern` holds {said}, which neither ripgrep nor a grep with `-P` is there to understand"
        ))
        .with_hint("write it without, or install ripgrep in the environment"),
        _ => {
            let (engine, said) = said.split_once(':').unwrap_or(("", &said));
            let engine = if engine == "rg" { "ripgrep" } else { "grep" };
            Failure::new(format!("{engine} does not understand `pattern`: {}", complaint(said))).with_hint(
                r"put a backslash before what is meant literally, such as `\[`, `\(`, `\{` or `\\`",
            )
        }
    }
}

/// Returns what a program said last behind a colon: the reason, without its own name and that of the file.
fn last_part(said: &str) -> Option<&str> {
    said.trim().rsplit(": ").next().filter(|part| !part.is_empty())
}

/// Returns the line in which a program says what is wrong with a pattern.
fn complaint(said: &str) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.starts_with("error: ")).or_else(|| lines.next());
    let line = line.unwrap_or("it does not say why");
    ["error: ", "grep: ", "rg: "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line).to_owned()
}

/// Says that there is not even a beginning: no shell, or one that ended.
fn not_begun(printed: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(&printed[..printed.len().min(300)]).replace('\0', " ");
    let said = said.trim();
    let message = "the search could not be started in the environment".to_owned();
    Failure::new(if said.is_empty() { message } else { format!("{message}: {said}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_the_caller_can_use_them() {
        for (path, expected) in [
            (".", "a"),
            ("./", "a"),
            ("././/src/", "src/a"),
            ("src", "src/a"),
            ("src/.", "src/a"),
            ("..", "../a"),
            ("/", "/a"),
            ("/data//", "/data/a"),
            ("~", "/home/me/a"),
            ("~/x", "/home/me/x/a"),
            ("~x", "~x/a"),
            (".git", ".git/a"),
        ] {
            let shown = [prefix(path, false, b"/home/me"), b"a".to_vec()].concat();
            assert_eq!(String::from_utf8(shown).unwrap(), expected, "{path}");
        }
        assert_eq!(prefix("./-n.txt", true, b""), b"-n.txt");
    }

    #[test]
    fn the_beginning_says_where_or_why_not() {
        let mut printed = &b"ok\0folder\0/data\n\0\0/home/me\0/home/me\n\0rest"[..];
        let place = Place::read("src", &mut printed).unwrap();
        assert_eq!((place.base.as_slice(), place.file, printed), (&b"/data"[..], false, &b"rest"[..]));
        assert_eq!(place.shown(b"a\nb"), "src/a\nb");
        for (printed, expected) in [
            (&b"no\0missing\0ls: cannot access './x': No such file or directory\0"[..], "`x` does not exist"),
            (b"no\0missing\0ls: ./x: Not a directory\0", "`x` cannot be searched: Not a directory"),
            (b"no\0special\0\0", "`x` is neither a folder nor a plain file"),
            (
                b"no\0pattern\0rg:regex parse error:\n    [\n    ^\nerror: unclosed character class\0",
                "ripgrep does not understand `pattern`: unclosed character class",
            ),
            (
                b"no\0pattern\0extended:grep: Unmatched [, [^\nUsage\0",
                "grep does not understand `pattern`: Unmatched [, [^",
            ),
            (b"sh: not found\n", "the search could not be started in the environment: sh: not found"),
            (b"", "the search could not be started in the environment"),
        ] {
            assert_eq!(Place::read("x", &mut { printed }).unwrap_err().message, expected);
        }
    }
}
