//! What a session has seen of files.
//!
//! A model that has lost its way reads the same lines again and again, and each time they take up its context. So what it has
//! been shown and what has not changed since is not shown a second time, and not even said a third time. The same knowledge tells
//! whether a file that is to be replaced is still the one that was read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::access::Digest;
use super::look::Range;

/// How many files are remembered. A session that touches more forgets all and begins anew.
const MOST_FILES: usize = 1000;

/// How many ranges of one file, or calls that failed, are.
const MOST_OF_ONE: usize = 200;

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The SHA-256 of what it holds.
    Sha256(String),
    /// Its size, number and times: of files that are too large to be read for this.
    Times(String),
}

impl State {
    /// Reads a state as a script prints it.
    pub(super) fn read(text: &str) -> Self {
        match text.strip_prefix("times ") {
            Some(times) => Self::Times(times.to_owned()),
            None => Self::Sha256(text.to_owned()),
        }
    }
}

impl From<&Digest> for State {
    fn from(digest: &Digest) -> Self {
        Self::Sha256(digest.sha256().to_owned())
    }
}

/// What is to be done with a read that would give what was given before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It is new: show it.
    No,
    /// It was shown: say so.
    Shown,
    /// That was said: refuse it.
    Said,
}

struct File {
    state: State,
    /// What was shown of it, and how often that was asked for again.
    shown: HashMap<Range, (u64, u32)>,
}

/// What a session has seen of files, by their paths without links.
#[derive(Default)]
pub(in crate::tools) struct Reads {
    files: HashMap<String, File>,
    failed: HashMap<(String, Range), (String, u32)>,
}

impl Reads {
    /// Takes note of lines that are to be shown, and returns whether they were before.
    pub(super) fn read(&mut self, path: &str, state: State, range: Range, content: &str) -> Repeat {
        self.make_room();
        let file = self.files.entry(path.to_owned());
        let file = file.or_insert_with(|| File { state: state.clone(), shown: HashMap::new() });
        if file.state != state || file.shown.len() >= MOST_OF_ONE {
            *file = File { state, shown: HashMap::new() };
        }
        // Times may be the same after a change, so contents count too.
        let content = hash(content);
        let (shown, times) = file.shown.entry(range).or_insert((content, 0));
        if *shown != content {
            (*shown, *times) = (content, 0);
        }
        *times += 1;
        match *times {
            1 => Repeat::No,
            2 => Repeat::Shown,
            _ => Repeat::Said,
        }
    }

    /// Takes note of a read that failed, and returns how often it did for that reason.
    pub(super) fn failed(&mut self, path: &str, range: Range, reason: &str) -> u32 {
        if self.failed.len() >= MOST_OF_ONE {
            self.failed.clear();
        }
        let (last, times) = self.failed.entry((path.to_owned(), range)).or_default();
        if last != reason {
            (*last, *times) = (reason.to_owned(), 0);
        }
        *times += 1;
        *times
    }

    /// Takes note of a read that went well: whatever failed before may go well now.
    pub(super) fn succeeded(&mut self, path: &str, range: Range) {
        self.failed.remove(&(path.to_owned(), range));
    }

    /// Takes note of what a file holds since the session wrote it.
    pub(super) fn wrote(&mut self, path: &str, digest: &Digest) {
        self.make_room();
        self.failed.clear();
        let file = File { state: State::from(digest), shown: HashMap::new() };
        self.files.insert(path.to_owned(), file);
    }

    /// Forgets a file that is no longer there.
    pub(super) fn forget(&mut self, path: &str) {
        self.failed.clear();
        self.files.remove(path);
    }

    /// Returns whether a file is not as the session has seen it last. What cannot be told is no.
    pub(super) fn has_changed(&self, path: &str, state: &State) -> bool {
        match (self.files.get(path).map(|file| &file.state), state) {
            (Some(State::Sha256(seen)), State::Sha256(now))
            | (Some(State::Times(seen)), State::Times(now)) => seen != now,
            _ => false,
        }
    }

    fn make_room(&mut self) {
        if self.files.len() >= MOST_FILES {
            self.files.clear();
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Range = Range { offset: 1, limit: 500 };
    const SOME: Range = Range { offset: 1, limit: 10 };

    fn state(text: &str) -> State {
        State::read(text)
    }

    #[test]
    fn what_was_shown_is_said_once_and_then_refused() {
        let mut reads = Reads::default();
        let read = |reads: &mut Reads, range| reads.read("/a", state("1"), range, "1|a");
        assert_eq!(read(&mut reads, ALL), Repeat::No);
        assert_eq!(read(&mut reads, ALL), Repeat::Shown);
        assert_eq!(read(&mut reads, ALL), Repeat::Said);
        assert_eq!(read(&mut reads, ALL), Repeat::Said);
        assert_eq!(read(&mut reads, SOME), Repeat::No);
        assert_eq!(reads.read("/b", state("1"), ALL, "1|a"), Repeat::No);
    }

    #[test]
    fn a_change_begins_anew() {
        let mut reads = Reads::default();
        assert_eq!(reads.read("/a", state("1"), ALL, "1|a"), Repeat::No);
        assert_eq!(reads.read("/a", state("2"), ALL, "1|a"), Repeat::No);
        assert_eq!(reads.read("/a", state("2"), ALL, "1|a"), Repeat::Shown);
        reads.wrote("/a", &Digest::of(b"a"));
        assert_eq!(reads.read("/a", State::from(&Digest::of(b"a")), ALL, "1|a"), Repeat::No);
        // Of a large file only the times are known.
        assert_eq!(reads.read("/l", state("times 1"), ALL, "1|a"), Repeat::No);
        assert_eq!(reads.read("/l", state("times 1"), ALL, "1|b"), Repeat::No);
    }

    #[test]
    fn it_is_known_whether_a_file_is_still_the_one_that_was_seen() {
        let mut reads = Reads::default();
        let now = State::from(&Digest::of(b"a"));
        assert!(!reads.has_changed("/a", &now));
        reads.read("/a", now.clone(), ALL, "1|a");
        assert!(!reads.has_changed("/a", &now));
        assert!(reads.has_changed("/a", &State::from(&Digest::of(b"b"))));
        assert!(!reads.has_changed("/a", &state("times 1")));
        reads.wrote("/a", &Digest::of(b"b"));
        assert!(reads.has_changed("/a", &now));
        reads.forget("/a");
        assert!(!reads.has_changed("/a", &now));
    }

    #[test]
    fn failures_are_counted_by_their_reason() {
        let mut reads = Reads::default();
        assert_eq!(reads.failed("a", ALL, "missing"), 1);
        assert_eq!(reads.failed("a", ALL, "missing"), 2);
        assert_eq!(reads.failed("a", ALL, "folder"), 1);
        assert_eq!(reads.failed("a", SOME, "folder"), 1);
        assert_eq!(reads.failed("a", ALL, "folder"), 2);
        reads.succeeded("a", ALL);
        assert_eq!(reads.failed("a", ALL, "folder"), 1);
        reads.wrote("/w/b", &Digest::of(b""));
        assert_eq!(reads.failed("a", ALL, "folder"), 1);
    }
}
