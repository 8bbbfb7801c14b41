//! Patterns for the names of files, as `.gitignore` has them.
//!
//! Ripgrep, GNU find and busybox find read them differently, so they are judged here. The program that lists the files is only
//! told as much as it cannot misunderstand, so that it passes over most of what does not fit.

use super::braces::{expand, split};
use super::component::Component;

/// Some patterns: a name must fit one of those that are wanted, if there are any, and none of the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Globs {
    wanted: Vec<Glob>,
    unwanted: Vec<Glob>,
}

/// One pattern.
#[derive(Debug, Clone, PartialEq)]
struct Glob {
    /// The parts of the path; one alone is for the name, wherever it lies.
    parts: Vec<Part>,
    /// It has a slash, and is for the whole path.
    whole: bool,
    /// It began with a slash, so it may have been meant from the root of all folders.
    absolute: bool,
    /// A simpler pattern for the name that everything that fits fits too, for other programs.
    name: Option<String>,
}

/// A part of a path.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Any folders, or none.
    Deep,
    /// One folder or file.
    One(Component),
}

impl Globs {
    /// Reads patterns that are separated by commas; `!` stands before those that are not wanted.
    ///
    /// # Errors
    ///
    /// Fails if they are not sound.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut globs = Self::default();
        for pattern in split(text) {
            globs.add(pattern)?;
        }
        Ok(globs)
    }

    fn add(&mut self, pattern: &str) -> Result<(), String> {
        let (list, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (&mut self.unwanted, pattern),
            None => (&mut self.wanted, pattern),
        };
        for pattern in expand(pattern)? {
            list.push(Glob::new(&pattern)?);
        }
        Ok(())
    }

    /// Returns whether a file fits. `path` is from the folder on that is searched, and that is `base`.
    pub(super) fn fits(&self, path: &[u8], base: &[u8]) -> bool {
        let fits = |glob: &Glob| glob.fits(path, base);
        (self.wanted.is_empty() || self.wanted.iter().any(fits)) && !self.unwanted.iter().any(fits)
    }

    /// Returns patterns for names, one on each line, of which whatever fits must fit one; an empty text if nothing is known.
    pub(super) fn names(&self) -> String {
        let names: Option<Vec<&str>> = self.wanted.iter().map(|glob| glob.name.as_deref()).collect();
        plainer(&names.unwrap_or_default().join("\n"))
    }
}

/// Returns patterns without the colons that ripgrep takes for its own.
fn plainer(patterns: &str) -> String {
    patterns.replace(':', "?")
}

impl Glob {
    fn new(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let mut parts = Vec::new();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            match part {
                "**" if parts.last() == Some(&Part::Deep) => {}
                "**" => parts.push(Part::Deep),
                _ => parts.push(Part::One(Component::new(part)?)),
            }
        }
        if text.ends_with('/') && parts.last() != Some(&Part::Deep) {
            parts.push(Part::Deep);
        }
        let last = text.rsplit('/').next().unwrap_or_default();
        // A `?` is a byte to some, and backslashes and brackets are read in several ways.
        let simple = !last.is_empty() && !last.contains(['?', '[', ']', '\\', '{', '}', '!', '\n']);
        let name = simple.then(|| last.to_owned());
        Ok(Self { parts, whole: text.contains('/'), absolute: text.starts_with('/'), name })
    }

    fn fits(&self, path: &[u8], base: &[u8]) -> bool {
        let components: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if !self.whole {
            let name = components.last().map_or(&[][..], |name| name);
            return matches!(self.parts.as_slice(), [Part::Deep])
                || matches!(self.parts.as_slice(), [Part::One(component)] if component.fits(name));
        }
        if self.fits_all(&components) {
            return true;
        }
        let above = base.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        self.absolute && self.fits_all(&above.chain(components.iter().copied()).collect::<Vec<_>>())
    }

    /// Goes through the parts with all places that can be reached, so that many `**` take no longer than one.
    fn fits_all(&self, components: &[&[u8]]) -> bool {
        let mut reached = vec![false; components.len() + 1];
        reached[0] = true;
        for (index, part) in self.parts.iter().enumerate() {
            let mut next = vec![false; components.len() + 1];
            match part {
                Part::Deep => {
                    let last = index + 1 == self.parts.len();
                    let first = reached.iter().position(|reached| *reached).unwrap_or(next.len());
                    // At the end it stands for at least one: a folder is not in itself.
                    next.iter_mut().skip(first + usize::from(last)).for_each(|next| *next = true);
                }
                Part::One(pattern) => {
                    for (at, component) in components.iter().enumerate() {
                        next[at + 1] = reached[at] && pattern.fits(component);
                    }
                }
            }
            reached = next;
        }
        reached.last() == Some(&true)
    }
}

/// What the name of a file that is looked for must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// It contains this; so does the path if there is a slash in it.
    Containing(String),
    /// It fits these.
    Matching(Globs),
}

impl Wanted {
    /// Reads what to look for.
    ///
    /// # Errors
    ///
    /// Fails if it is not sound.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if !text.contains(['*', '?', '[', '{', '\\']) {
            return Ok(Self::Containing(text.strip_prefix("./").unwrap_or(text).to_owned()));
        }
        let mut globs = Globs::default();
        globs.add(text)?;
        Ok(Self::Matching(globs))
    }

    /// As [`Globs::fits`].
    pub(super) fn fits(&self, path: &[u8], base: &[u8]) -> bool {
        match self {
            Self::Matching(globs) => globs.fits(path, base),
            Self::Containing(text) if text.starts_with('/') => {
                contains(&[base, b"/", path].concat(), text.as_bytes())
            }
            Self::Containing(text) if text.contains('/') => contains(path, text.as_bytes()),
            Self::Containing(text) => {
                contains(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(), text.as_bytes())
            }
        }
    }

    /// As [`Globs::names`].
    pub(super) fn names(&self) -> String {
        match self {
            Self::Matching(globs) => globs.names(),
            Self::Containing(text) if text.is_empty() || text.contains(['/', ']', '}', '!', '\n']) => {
                String::new()
            }
            Self::Containing(text) => format!("*{}*", plainer(text)),
        }
    }
}

fn contains(name: &[u8], text: &[u8]) -> bool {
    text.is_empty() || name.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(globs: &str, path: &str) -> bool {
        Globs::new(globs).unwrap().fits(path.as_bytes(), b"/data/repo")
    }

    #[test]
    fn patterns_fit_names_or_paths() {
        for (globs, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("*.rs", "a.rs/b", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "other/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/x/y/a.rs", true),
            ("src/**/*.rs", "lib/a.rs", false),
            ("**/a.rs", "a.rs", true),
            ("**/x/**", "b/x/c/d", true),
            ("**/x/**", "b/x", false),
            ("src/", "src/a/b", true),
            ("src/", "src", false),
            ("./src/*.rs", "src/a.rs", true),
            ("/src/*.rs", "src/a.rs", true),
            ("/data/repo/src/*.rs", "src/a.rs", true),
            ("/data/repo/src/*.rs", "lib/a.rs", false),
            ("*.{ts,tsx}", "a.tsx", true),
            ("*.ts,*.js", "a.js", true),
            ("!*.min.js", "a.js", true),
            ("!*.min.js", "a.min.js", false),
            ("*.js,!*.min.js", "a.min.js", false),
            ("*.js,!vendor/", "vendor/a.js", false),
            ("", "anything", true),
            ("**", "a/b", true),
        ] {
            assert_eq!(fits(globs, path), expected, "{globs} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let globs = "**/a/".repeat(30) + "x";
        assert!(!fits(&globs, &("a/".repeat(60) + "y")));
        assert!(!fits(&("*a".repeat(40) + "x"), &"a".repeat(200)));
    }

    #[test]
    fn other_programs_are_told_what_is_simple() {
        for (globs, names) in [
            ("*.rs", "*.rs"),
            ("src/**/*.rs", "*.rs"),
            ("*.{ts,tsx}", "*.ts\n*.tsx"),
            ("*.rs,[ab]", ""),
            ("?.rs", ""),
            ("src/", ""),
            ("!*.rs", ""),
            ("*.js,!*.min.js", "*.js"),
            ("a:b.*", "a?b.*"),
        ] {
            assert_eq!(Globs::new(globs).unwrap().names(), names, "{globs}");
        }
    }

    #[test]
    fn plain_words_are_parts_of_names() {
        let wanted = |text: &str, path: &str| Wanted::new(text).unwrap().fits(path.as_bytes(), b"/data");
        assert!(wanted("test", "a/my_test.py") && !wanted("test", "tests/a.py"));
        assert!(wanted("tests/a", "x/tests/a.py") && wanted("", "x"));
        assert!(wanted("/data/x", "x/y") && wanted("*.py", "a/b.py") && !wanted("*.py", "a.pyc"));
        assert_eq!(Wanted::new("test").unwrap().names(), "*test*");
        assert_eq!(Wanted::new("a:b.txt").unwrap().names(), "*a?b.txt*");
    }
}
